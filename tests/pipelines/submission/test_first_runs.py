"""The guides to a first run: their commands, as they are there, on servers on loopback."""

from __future__ import annotations

import json
import logging
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

from darkroom.cli import main
from darkroom.version import hash_code

pytestmark = [pytest.mark.tfx, pytest.mark.usefixtures("no_waiting")]

DOCS = Path(__file__).parents[3] / "docs"
PAGES = {"kubeflow": "first-run-kubeflow.md", "vertex": "vertex.md"}
BUCKET = "mlpipeline"
NEEDED_FINDINGS = {"leakage": "warn", "label_conflicts": "warn"}


def _read_blocks(target: str, language: str) -> list[str]:
    text = (DOCS / "guides" / PAGES[target]).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.S | re.M)


def _find_command(target: str, name: str) -> list[str]:
    """Returns the words of the first command of that name on the page, without `darkroom`."""
    lines = "\n".join(_read_blocks(target, "bash")).splitlines()
    line = next(line for line in lines if line.startswith(f"darkroom {name} "))
    return shlex.split(line.partition(" #")[0])[1:]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of an S3 store with Kubeflow's bucket, which the environment names."""
    boto3 = pytest.importorskip("boto3")
    emulator = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    emulator.start()
    host, port = emulator.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "secret-of-the-test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    yield client
    emulator.stop()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the commands are run, with the examples and images as of the demo."""
    (tmp_path / "docs").symlink_to(DOCS)
    images = tmp_path / "demo/images"
    for number in range(4):
        path = images / f"drawings/{number % 2}/{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), number).save(path)
    rows = [
        f"TRAIN,{path.relative_to(images)},{path.parent.name}" for path in images.rglob("*.png")
    ]
    (images / "drawings.csv").write_text("\n".join(rows))
    (images / ".darkroom-files.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_data_is_uploaded_and_the_pipeline_submitted_to_kubeflow(folder, store, server, capsys):
    [upload] = _read_blocks("kubeflow", "python")
    exec(upload, {})
    pages = store.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    keys = {each["Key"] for page in pages for each in page["Contents"]}
    files = {path for path in (folder / "demo/images").rglob("[!.]*.*") if path.is_file()}
    assert len(files) == 5
    assert keys == {f"shared/drawings/{path.relative_to(folder / 'demo/images')}" for path in files}

    assert main(_find_command("kubeflow", "compile")) == 0
    spec, platform = yaml.safe_load_all((folder / "first.yaml").read_text())
    containers = [each["container"] for each in spec["deploymentSpec"]["executors"].values()]
    assert {each["image"] for each in containers} == {"darkroom:first"}
    executors = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    secrets = {name: each.get("secretAsEnv") for name, each in executors.items()}
    assert secrets["ManifestGen_executor"][0]["secretName"] == "mlpipeline-minio-artifact"
    keyless = {name.removesuffix("_executor") for name, found in secrets.items() if not found}
    assert keyless == {"SchemaGen", "ExampleValidator", "ValidationGate", "ModelReport"}
    capsys.readouterr()

    submit = _find_command("kubeflow", "submit")
    submit[submit.index("--host") + 1] = server.url
    assert main([*submit, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["state"], told["notes"]) == ("SUCCEEDED", [])
    [run] = server.runs.values()
    assert run["display_name"] == "first"
    spec = run["pipeline_spec"]["pipeline_spec"]
    sent = spec["root"]["inputDefinitions"]["parameters"]
    assert sent["data"]["defaultValue"] == "s3://mlpipeline/shared/drawings/drawings.csv"
    assert _find_policies(spec).items() >= NEEDED_FINDINGS.items()
    tasks = spec["root"]["dag"]["tasks"]
    state = tasks["ManifestGen"]["inputs"]["parameters"]["source_fingerprint"]
    assert state["runtimeValue"]["constant"].startswith(hash_code())


def _find_policies(spec):
    given = spec["root"]["dag"]["tasks"]["ImageValidator"]["inputs"]["parameters"]["options"]
    return json.loads(given["runtimeValue"]["constant"])["policies"]


def test_the_pipeline_is_compiled_for_vertex(folder):
    assert main(_find_command("vertex", "compile")) == 0
    job = json.loads((folder / "first.json").read_text())
    assert job["runtimeConfig"]["gcsOutputDirectory"] == "gs://my-bucket/darkroom"
    spec = job["pipelineSpec"]
    sent = spec["root"]["inputDefinitions"]["parameters"]
    assert sent["data"]["defaultValue"] == "gs://my-bucket/drawings/drawings.csv"
    assert _find_policies(spec).items() >= NEEDED_FINDINGS.items()
    image = "europe-west4-docker.pkg.dev/my-project/ml/darkroom:first"
    executors = spec["deploymentSpec"]["executors"].values()
    assert {each["container"]["image"] for each in executors} == {image}
