"""The guide and the examples of components without TFX: their code, as it is there."""

import inspect
import re
import runpy
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import Mock, create_autospec

import pytest
import yaml

pytest.importorskip("kfp", reason="needs the extra [kfp]")

import kfp
import pyarrow as pa
import pyarrow.parquet as pq
from kfp import compiler

from darkroom.dataset.keys import make_key
from darkroom.decisions.lines import Decision, format_decisions
from darkroom.kfp import yaml_files

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/guides/kfp-components.md"
EXAMPLE = ROOT / "examples/kfp_pipeline.py"
IMAGE = "registry.example.com/darkroom:7"


def read_blocks(heading: str, language: str = "python") -> list[str]:
    """Returns the code of a section of the guide."""
    _, _, text = GUIDE.read_text("utf-8").partition(f"\n## {heading}\n")
    return re.findall(rf"^```{language}\n(.*?)^```$", text.partition("\n## ")[0], re.S | re.M)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder in which the code is run; kfp-kubernetes is another package than kfp."""
    monkeypatch.setattr(kfp, "kubernetes", Mock(), raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_executors(path: Path) -> dict:
    spec = yaml.safe_load(path.read_text("utf-8"))
    executors = spec["deploymentSpec"]["executors"]
    return {name: each["container"] for name, each in executors.items()}


def find_accelerators(path: Path) -> dict[str, dict]:
    return {
        name: each["resources"]["accelerator"]
        for name, each in read_executors(path).items()
        if "accelerator" in each.get("resources", {})
    }


def test_the_example_asks_for_an_accelerator_only_by_its_third_argument(folder, monkeypatch):
    plain, gpu = folder / "plain.yaml", folder / "gpu.yaml"
    for words in ([IMAGE, plain], [f"{IMAGE}-cuda", gpu, "nvidia.com/gpu"]):
        monkeypatch.setattr(sys, "argv", [EXAMPLE, *map(str, words)])
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert find_accelerators(plain) == {}
    [(name, found)] = find_accelerators(gpu).items()
    assert name == "exec-train-classifier"
    assert "nvidia.com/gpu" in found.values()


def test_a_gpu_of_the_guide_is_for_the_training_in_the_image_with_cuda(folder):
    [code] = read_blocks("A GPU")
    names: dict = {}
    exec(code, names)
    compiler.Compiler().compile(names["pipeline"], "gpu.yaml")
    assert find_accelerators(folder / "gpu.yaml").keys() == {"exec-train-classifier"}
    images = {name: each["image"] for name, each in read_executors(folder / "gpu.yaml").items()}
    assert images["exec-train-classifier"].endswith("-cuda")
    assert not images["exec-convert-images"].endswith("-cuda")


def test_the_first_run_on_kubeflow_is_compiled_and_sent(folder, monkeypatch):
    compiling, sending = read_blocks("A first run on Kubeflow")
    exec(compiling, {})
    found = read_executors(folder / "first.yaml")
    assert {each["image"] for each in found.values()} == {"darkroom:first"}
    assert find_accelerators(folder / "first.yaml") == {}
    assert len(found) == 5
    [given] = kfp.kubernetes.use_secret_as_env.call_args_list
    assert given.args[0].name == "convert-images"
    client = create_autospec(kfp.Client)
    monkeypatch.setattr(kfp, "Client", client)
    exec(sending, {})
    sent = client.return_value.create_run_from_pipeline_package
    assert Path(sent.call_args.args[0]) == Path("first.yaml")
    assert "arguments" in inspect.signature(kfp.Client.create_run_from_pipeline_package).parameters


def test_the_first_run_on_vertex_is_compiled_and_sent(folder, monkeypatch):
    compiling, sending = read_blocks("A first run on Vertex")
    exec(compiling, {})
    assert len(read_executors(folder / "first.yaml")) == 5
    aiplatform = pytest.importorskip("google.cloud.aiplatform")
    credentials = pytest.importorskip("google.auth.credentials").AnonymousCredentials()
    monkeypatch.setattr("google.auth.default", lambda *_, **__: (credentials, "my-project"))
    submit, wait = Mock(), Mock()
    monkeypatch.setattr(aiplatform.PipelineJob, "submit", submit)
    monkeypatch.setattr(aiplatform.PipelineJob, "wait", wait)
    names: dict = {}
    exec(sending, names)
    job = names["job"].to_dict()
    assert job["runtimeConfig"]["gcsOutputDirectory"] == "gs://my-bucket/darkroom"
    assert job["runtimeConfig"]["parameterValues"]["epochs"] == 8
    assert submit.call_args.kwargs.keys() == {"service_account"}
    wait.assert_called_once_with()


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def served(folder):
    """The address of a web server with the files of the components, for one image."""
    assert yaml_files.main(["components", "--image", IMAGE]) == 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_components_are_loaded_from_the_url_of_their_files(served, folder):
    [code] = [each for each in read_blocks("Your own pipeline") if "from_url" in each]
    assert "darkroom" not in code  # it needs kfp alone
    (folder / "look.py").write_text(code.replace("https://files.example.com", served))
    runpy.run_path("look.py")
    found = read_executors(folder / "look.yaml")
    assert {name: each["image"] for name, each in found.items()} == {
        "exec-convert-images": IMAGE,
        "exec-inspect-dataset": IMAGE,
    }
    commands = {tuple(each["command"]) for each in found.values()}
    assert ("python3", "-m", "darkroom.kfp.task", "convert_images") in commands


def test_the_state_that_a_cached_run_is_given_knows_the_lists_of_its_pipeline(folder):
    [code] = read_blocks("The cache")
    code = code.replace("s3://photos", str(folder))
    (folder / "images.csv").write_text("image_uri,label\na.png,cat\nb.png,dog\n")
    (folder / "decisions.jsonl").write_text("")
    pq.write_table(pa.table({"key": ["0" * 32]}), folder / "duplicates.parquet")

    def take_state() -> str:
        names: dict = {}
        exec(code, names)
        return names["state"]

    found = {take_state()}
    line = Decision(action="drop", key=make_key("a.png"))
    (folder / "decisions.jsonl").write_bytes(format_decisions([line]))
    found.add(take_state())
    pq.write_table(pa.table({"key": [make_key("b.png")]}), folder / "duplicates.parquet")
    assert len(found | {take_state(), take_state()}) == 3
