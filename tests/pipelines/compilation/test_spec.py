from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.cloud.aiplatform_v1.types import AcceleratorType

from darkroom.components.parameters import PARAMETERS
from darkroom.errors import OutputError, StorageError, UsageError
from darkroom.options.input import RESIZES
from darkroom.pipelines import resources
from darkroom.pipelines.compilation import spec as spec_module
from darkroom.pipelines.compilation.files import run_compile
from darkroom.pipelines.compilation.job import make_platform_spec
from darkroom.pipelines.compilation.text import format_documents
from darkroom.pipelines.config import PipelineConfig, make_config, merge_file_options

from ..compiled import check_config, compile_pipeline, format_pipeline
from ..service_cache import ServiceCache

pytestmark = pytest.mark.tfx

ROOT = Path(__file__).parents[3]
GOLDEN = Path(__file__).parent / "golden"
FILES = {"kubeflow": "kubeflow.yaml", "vertex": "vertex.json"}
IMAGE = "registry.example.com/ml/darkroom:1.0"
PINNED = f"{IMAGE}@sha256:{'0' * 64}"


def _example(target: str) -> PipelineConfig:
    path = str(ROOT / f"docs/examples/{target}.toml")
    return make_config(merge_file_options({"config": path}), target)


def _config(**options: Any) -> PipelineConfig:
    values = {"data": "gs://photos/images.csv", "root": "gs://artifacts/run", "image": IMAGE}
    return PipelineConfig(**{**values, **options})


def _mask(text: str) -> str:
    """Masks what differs between the lines of TFX: the comment and the SDK's version."""
    text = re.sub(r"^# Compiled with .*", "# Compiled with", text, flags=re.M)
    text = re.sub(r'(tfx_version"?: "?)[0-9a-z-]+', r"\1", text)
    text = re.sub(r'(tfx_py_version"?: "?)[0-9-]+', r"\1", text)
    return re.sub(r'(sdkVersion"?: "?)tfx-[0-9.]+', r"\1", text)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {target: format_pipeline(_example(target), target) for target in FILES}


@pytest.fixture(scope="module")
def specs(texts: dict[str, str]) -> dict[str, dict[str, Any]]:
    job = json.loads(texts["vertex"])
    return {"kubeflow": next(yaml.safe_load_all(texts["kubeflow"])), "vertex": job["pipelineSpec"]}


def _containers(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    executors = spec["deploymentSpec"]["executors"]
    return {label.removesuffix("_executor"): e["container"] for label, e in executors.items()}


@pytest.mark.parametrize("target", FILES)
def test_the_file_is_the_golden_one(target: str, texts: dict[str, str]):
    golden = GOLDEN / FILES[target]
    if not golden.exists():  # to write it again, delete it: the test then fails once
        golden.write_text(_mask(texts[target]))
        pytest.fail(f"{golden} was written again: look at it, then commit it")
    assert _mask(texts[target]) == golden.read_text()


def test_other_parameters_can_be_named_and_fingerprints_are_there_where_they_are_compiled_in():
    spec = compile_pipeline(_config(epochs=7, parameters=("policies", "resize")), "kubeflow")
    inputs = spec["root"]["inputDefinitions"]["parameters"]
    assert set(inputs) == {"policies", "resize"}
    given = spec["root"]["dag"]["tasks"]["Trainer"]["inputs"]["parameters"]
    assert json.loads(given["custom_config"]["runtimeValue"]["constant"])["darkroom"]["epochs"] == 7
    assert "epochs" not in given
    with pytest.raises(UsageError, match="parameters has 'name', which a run cannot change") as no:
        _config(parameters=("epochs", "name"))
    assert "epochs" in no.value.hint
    with pytest.raises(UsageError, match="'source_fingerprint', and the cache would not look at"):
        _config(parameters=("source_fingerprint",))
    given = {"parameters": ("source_fingerprint",), "source_fingerprint": "1"}
    spec = compile_pipeline(_config(**given, model_fingerprint="2"), "kubeflow")
    inputs = spec["root"]["inputDefinitions"]["parameters"]
    assert {name: each["defaultValue"] for name, each in inputs.items()} == {
        "source_fingerprint": "1",
        "model_fingerprint": "2",
    }


def test_what_a_run_sets_is_in_no_property_beside_it(specs):
    """The UI shows both, and only one of them would be right."""
    inputs = specs["kubeflow"]["root"]["inputDefinitions"]["parameters"]
    tasks = specs["kubeflow"]["root"]["dag"]["tasks"]
    for parameter in PARAMETERS:
        given = tasks[parameter.component]["inputs"]["parameters"]
        if parameter.path and parameter.name in inputs:
            assert parameter.name in given
            value = given[parameter.key]["runtimeValue"]["constant"]
            for key in parameter.path[:-1]:
                value = (json.loads(value) if isinstance(value, str) else value)[key]
            value = json.loads(value) if isinstance(value, str) else value
            assert parameter.path[-1] not in value


@pytest.mark.parametrize(("kfp", "has_lists"), [("2.15", False), ("2.16", True)])
def test_choices_are_lists_where_the_server_knows_them(kfp: str, has_lists: bool):
    spec = compile_pipeline(_config(parameters=("resize", "epochs"), kfp=kfp), "kubeflow")
    inputs = spec["root"]["inputDefinitions"]["parameters"]
    assert inputs["resize"].get("literals") == (list(RESIZES) if has_lists else None)
    assert "literals" not in inputs["epochs"]


def test_the_graph_has_few_nodes_and_no_two_of_a_name(specs):
    """At the smallest zoom of Kubeflow's UI, a window shows a dozen nodes; it shows names alone."""
    spec = specs["kubeflow"]
    artifacts = [
        name
        for task in spec["root"]["dag"]["tasks"].values()
        for name in spec["components"][task["componentRef"]["name"]]
        .get("outputDefinitions", {})
        .get("artifacts", {})
    ]
    assert len(set(artifacts)) == len(artifacts)
    assert len(spec["root"]["dag"]["tasks"]) + len(artifacts) == 30


def _is_cached(config: PipelineConfig, node: str) -> bool:
    tasks = compile_pipeline(config, "kubeflow")["root"]["dag"]["tasks"]
    return bool(tasks[node]["cachingOptions"].get("enableCache", False))


def test_tasks_that_read_a_path_are_cached_only_with_its_state():
    config = _config(schema="gs://photos/schema.pbtxt")
    assert not _is_cached(config, "ManifestGen")
    assert not _is_cached(config, "ImportSchemaGen")
    assert _is_cached(config, "ImageToTFRecord")
    assert _is_cached(dataclasses.replace(config, source_fingerprint="1234"), "ManifestGen")
    assert not _is_cached(dataclasses.replace(config, cache=False), "Trainer")
    config = _config(source_fingerprint="1234", weights="gs://photos/w.weights.h5")
    assert not _is_cached(config, "Trainer")
    assert _is_cached(dataclasses.replace(config, model_fingerprint="5678"), "Trainer")


def test_weights_that_only_a_run_names_are_read_again_in_each_run():
    config = _config(source_fingerprint="1234")
    cache, weights = ServiceCache(), {"weights": "gs://photos/w.weights.h5"}
    spec = compile_pipeline(config, "kubeflow")
    cache.run(spec, weights, run_id="1")
    assert "Trainer" in cache.run(spec, weights, run_id="2")
    spec = compile_pipeline(dataclasses.replace(config, model_fingerprint="5678"), "kubeflow")
    cache.run(spec, weights, run_id="3")
    assert cache.run(spec, weights, run_id="4") == {"Pusher"}  # it is never cached


def test_a_registry_adds_a_node_that_is_never_cached_and_knows_its_run():
    config = _config(registry="http://registry:8080", name="pets")
    tasks = compile_pipeline(config, "kubeflow")["root"]["dag"]["tasks"]
    given = tasks["ModelRegistrar"]["inputs"]["parameters"]
    assert {name: each["runtimeValue"]["constant"] for name, each in given.items()} == {
        "registry": "http://registry:8080", "model_name": "pets", "run": "{{$.pipeline_job_uuid}}"
    }  # fmt: skip
    assert not _is_cached(config, "ModelRegistrar")


def test_vertex_knows_every_accelerator_that_we_name():
    known = {each.name for each in AcceleratorType}
    assert set(resources._ON_VERTEX.values()) <= known


def test_a_value_that_a_table_leaves_open_is_that_of_default():
    shared = {
        "cpu": 2,
        "memory_gb": 8,
        "cpu_request": 0.5,
        "retries": 2,
        "timeout_seconds": 60,
        "runs_as_root": True,
        "node_selector": {"pool": "small"},
    }
    own = {"Trainer": {"cpu": 8, "retries": 0}, "Pusher": {"runs_as_root": False}}
    own["ImageValidator"] = {"node_selector": {}}
    own["ValidationGate"] = {"cpu": 1}  # and default's retries are not for it
    config = _config(resources={"default": shared, **own})
    spec = compile_pipeline(config, "kubeflow")
    found = {name: each.get("resources") for name, each in _containers(spec).items()}
    requested = {"cpuRequest": 0.5, "memoryLimit": 8.0}
    assert found["Trainer"] == {"memoryLimit": 8.0, "cpuLimit": 8.0}
    assert found["Evaluator"] == found["Pusher"] == {**requested, "cpuLimit": 2.0}
    retries = {
        name: each["retryPolicy"]["maxRetryCount"]
        for name, each in spec["root"]["dag"]["tasks"].items()
        if "retryPolicy" in each
    }
    assert retries == dict.fromkeys({*found} - {"Trainer", "ValidationGate"}, 2)
    platform = make_platform_spec(config, spec)["platforms"]["kubernetes"]
    pods = platform["deploymentSpec"]["executors"]
    ends, small = {"activeDeadlineSeconds": "60"}, {"nodeSelector": {"labels": {"pool": "small"}}}
    assert pods["Trainer_executor"] == {**ends, **small}
    assert pods["Pusher_executor"] == {**ends, **small, "securityContext": {"runAsNonRoot": True}}
    assert pods["ImageValidator_executor"] == ends


def test_all_tasks_have_the_keys_where_kubeflow_copies_artifacts_with_those():
    config = _config(root="s3://artifacts/run", secret_env={"AWS_ACCESS_KEY_ID": "keys/id"})
    platform = make_platform_spec(config, compile_pipeline(config, "kubeflow"))
    executors = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"].values()
    assert {each["secretAsEnv"][0]["secretName"] for each in executors} == {"keys"}


def test_a_request_of_default_is_not_inherited_under_a_limit_of_the_component():
    """250 thousandths of a core would put a task of 6 cores on a small node."""
    default = {"cpu_request": 0.25, "memory_gb_request": 1, "retries": 2}
    config = _config(resources={"default": default, "Trainer": {"cpu": 6, "memory_gb": 16}})
    containers = _containers(compile_pipeline(config, "kubeflow"))
    assert containers["Trainer"]["resources"] == {"cpuLimit": 6.0, "memoryLimit": 16.0}
    assert containers["Pusher"]["resources"] == {"cpuRequest": 0.25, "memoryRequest": 1.0}
    # Each kind by itself.
    config = _config(resources={"default": default, "Trainer": {"cpu": 6, "cpu_request": 3}})
    found = _containers(compile_pipeline(config, "kubeflow"))["Trainer"]["resources"]
    assert found == {"cpuLimit": 6.0, "cpuRequest": 3.0, "memoryRequest": 1.0}


def test_without_options_of_kubernetes_there_is_one_document():
    config = _config(resources={"default": {"runs_as_root": True}})
    assert len(list(yaml.safe_load_all(format_pipeline(config, "kubeflow")))) == 1
    assert make_platform_spec(config, compile_pipeline(config, "kubeflow")) is None


@pytest.mark.parametrize("text", ["1e-3", "1.5e3", "0o17", "08", "-1e3", ".5e1", "~"])
def test_a_text_that_a_newer_yaml_takes_for_a_number_is_quoted(text: str):
    document = {"pipelineInfo": {"name": "n"}, "sdkVersion": "1", "a": text, "b": "yes"}
    written = format_documents([document], "kubeflow")
    assert f"\na: '{text}'\n" in written
    assert yaml.safe_load(written) == document


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("kubeflow", {"image": ""}, "expected the container image"),
        ("kubeflow", {"image": "a b"}, "expected the container image"),
        (
            "kubeflow",
            {"image": "a:1@sha256:00ff", "require_digest": True},
            "image is 'a:1@sha256:00ff', and require_digest wants one",
        ),
        (
            "kubeflow",
            {"image": PINNED, "require_digest": True, "beam_args": ("--sdk_container_image=a:1",)},
            "--sdk_container_image of Evaluator is 'a:1', and require_digest",
        ),
        ("kubeflow", {"root": "runs/first"}, "kubeflow cannot keep artifacts"),
        ("vertex", {"root": "s3://bucket/run"}, "vertex cannot keep artifacts"),
        ("kubeflow", {"root": "minio://b/../../data"}, "kubeflow cannot keep artifacts"),
        ("vertex", {"root": "gs:///run"}, "vertex cannot keep artifacts"),
        ("kubeflow", {"data": "/home/me/images.csv"}, "which no container can see"),
        ("kubeflow", {"data": "minio://b/images.csv"}, "Write s3://b/images.csv"),
        ("kubeflow", {"data": "https://host/images.csv"}, "Give a path of gs:// or s3://"),
        ("kubeflow", {"schema": "s3://b/schema.pbtxt"}, "schema is 's3://b/schema.pbtxt'"),
        ("vertex", {"data": "/mnt/photos/images.csv"}, "/gcs (Vertex)"),
        ("vertex", {"volumes": {"/mnt/photos": "photos"}}, "volumes is for Kubernetes"),
        ("kubeflow", {"secret_env": {"A": "b/c/d"}}, "secret_env.A does not name a key"),
        ("kubeflow", {"secret_env": {"A": "b/c"}, "env": {"A": "d"}}, "A is in env and in"),
        ("kubeflow", {"volumes": {"photos": "photos"}}, "volumes mounts 'photos'"),
        ("kubeflow", {"volumes": {"//.": "photos"}, "data": "/a"}, "expected an absolute path"),
        *[
            ("kubeflow", {"volumes": {folder: "photos"}}, "which Kubeflow or the image needs")
            for folder in (
                *("/minio", "/minio/x", "/s3", "/gcs/bucket", "/kfp-launcher/", "/tmp", "/usr"),
                *("/usr/local", "/opt/darkroom", "/opt", "/etc", "/var", "/var/run/secrets"),
                *("/var/run/secrets/kubernetes.io/x", "/mnt/../tmp", "/.cache", "//etc", "//tmp"),
            )
        ],
        ("kubeflow", {"env": {"A": "cost$$"}}, "env.A is 'cost$$'. Kubernetes replaces $$"),
        ("vertex", {"beam_args": ("--name=$(A)",)}, "beam_args[0] is '--name=$(A)'. Vertex may"),
        ("kubeflow", {"resources": {"Trainr": {"cpu": 1}}}, "not a component of the pipeline"),
        ("kubeflow", {"resources": {"Trainer": {"accelerator": "NVIDIA"}}}, "no accelerator"),
        ("vertex", {"resources": {"Trainer": {"accelerator": "amd.com/gpu"}}}, "no accelerator"),
        ("kubeflow", {"beam_args": ("--runner=DataflowRunner",)}, "needs project and region and"),
        ("kubeflow", {"beam_args": ("--runner=FlinkRunner",)}, "the image has no Java"),
        ("kubeflow", {"beam_args": ("--runner=PortableRunner",)}, "address of a job server"),
        ("kubeflow", {"beam_args": ("--s3_region_name=x",)}, "Beam's options for s3://"),
        ("kubeflow", {"beam_args": ("runner",)}, "is not an option"),
        ("kubeflow", {"beam_args": ("--runner PortableRunner",)}, "is not an option"),
        ("kubeflow", {"model": "keras.applications:MobilNet"}, "Did you mean MobileNet or"),
        ("sparkle", {}, "no target 'sparkle'"),
    ],
)
def test_options_that_cannot_work_on_the_target_are_rejected(
    target: str, options: dict[str, Any], message: str
):
    with pytest.raises(UsageError) as error:
        compile_pipeline(_config(**options), target)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("kubeflow", {"data": "/mnt/photos/images.csv", "volumes": {"/mnt/photos/": "photos"}}),
        ("vertex", {"data": "/gcs/photos/images.csv"}),
        ("kubeflow", {"allowed_roots": ("/mnt/a",), "volumes": {"/mnt": "photos"}}),
        ("kubeflow", {"volumes": {"/tmp/photos": "a", "/minio-photos": "b", "/opt/photos": "c"}}),
        ("vertex", {"allowed_roots": ("/gcs/photos", "gs://photos/more")}),
        ("kubeflow", {"root": "s3://bucket/run", "push_to": "s3://bucket/models"}),
        ("kubeflow", {"image": "localhost:5000/darkroom:1.0-py3@sha256:00ff"}),
        ("kubeflow", {"image": PINNED, "require_digest": True}),
    ],
)
def test_options_that_work_on_the_target_are_accepted(target: str, options: dict[str, Any]):
    check_config(_config(**options), target)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], ["--environment_type=EXTERNAL", "--environment_config=localhost:50000"]),
        (["--environment_type=PROCESS", '--environment_config={"command": "/opt/worker"}'], []),
    ],
)
def test_a_job_server_takes_the_jobs_of_a_compiled_pipeline(given: list[str], expected: list[str]):
    args = ["--runner=PortableRunner", "--job_endpoint=flink:8099", *given]
    containers = _containers(compile_pipeline(_config(beam_args=tuple(args)), "kubeflow"))
    for name in ("ImageToTFRecord", "ImageStatisticsGen", "Evaluator"):
        found = containers[name]["args"]
        assert found[found.index("--runner=PortableRunner") :] == [
            *args,
            f"--sdk_container_image={IMAGE}",
            *expected,
        ]


@pytest.mark.parametrize(
    ("output", "kind", "message"),
    [
        ("missing/p.json", StorageError, "missing does not exist"),
        ("folder.json", OutputError, "is a folder"),
        ("a\0.json", UsageError, "is not a path"),
        ("p.yaml", UsageError, r"must end in \.json"),
    ],
)
def test_an_output_that_cannot_be_written_is_an_error_before_compiling(
    tmp_path: Path, monkeypatch, output: str, kind: type[Exception], message: str
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(spec_module, "make_documents", pytest.fail)
    (tmp_path / "folder.json").mkdir()
    config = str(ROOT / "docs/examples/vertex.toml")
    with pytest.raises(kind, match=message):
        run_compile({"target": "vertex", "output": output, "config": config}, as_json=True)


def test_the_command_replaces_the_file(tmp_path: Path, texts: dict[str, str], capsys):
    output, mine = tmp_path / "pipeline.json", tmp_path / "mine"
    mine.write_text("mine")
    output.symlink_to(mine)  # it is replaced, and not written through
    config = str(ROOT / "docs/examples/vertex.toml")
    values = {"target": "vertex", "output": str(output), "config": config}
    assert run_compile(values, as_json=True) == 0
    assert (output.read_text(), mine.read_text()) == (texts["vertex"], "mine")
    printed = capsys.readouterr()
    assert json.loads(printed.out)["output"] == str(output)
    steps = [line.partition(" in ")[0] for line in printed.err.splitlines()]
    assert steps == ["Loading TFX done", "Compiling done"]


def test_kubeflow_compares_with_the_newest_push_because_it_runs_no_resolvers():
    with pytest.raises(UsageError, match="Kubeflow cannot look for the last one that passed"):
        compile_pipeline(_config(max_accuracy_drop=0.1), "kubeflow")
    for options in ({"push_to": "s3://models/p"}, {"baseline_model": "s3://models/p"}):
        spec = compile_pipeline(_config(max_accuracy_drop=0.1, **options), "kubeflow")
        given = spec["root"]["dag"]["tasks"]["Evaluator"]["inputs"]["parameters"]
        assert given["baseline"] == {"runtimeValue": {"constant": "s3://models/p"}}


def test_vertex_looks_for_the_last_model_that_passed():
    job = compile_pipeline(_config(max_recall_drop=0.1), "vertex")
    tasks = job["pipelineSpec"]["root"]["dag"]["tasks"]
    found = tasks["Evaluator"]["inputs"]["artifacts"]["baseline_model"]["taskOutputArtifact"]
    assert found["producerTask"] == "latest_blessed_model-model-resolver"
    executors = job["pipelineSpec"]["deploymentSpec"]["executors"]
    assert "resolver" in executors["latest_blessed_model-model-resolver_executor"]
    compared = compile_pipeline(
        _config(max_recall_drop=0.1, baseline_model="gs://models/p/3"), "vertex"
    )
    assert not [name for name in compared["pipelineSpec"]["root"]["dag"]["tasks"] if "_" in name]


@pytest.mark.parametrize("target", FILES)
def test_a_small_number_stays_a_number_and_a_text_like_one_a_text(target: str):
    values = {"number": 1e-05, "text": "1e-3", "list": [2e-07]}
    spec = {"pipelineInfo": {"name": "a"}, "sdkVersion": "tfx-1.16.0", "values": values}
    text = format_documents([spec], target)
    assert yaml.safe_load(text)["values"] == values
    assert {"'1e-3'", '"1e-3"'} & {*text.split(), *text.replace(",", "").split()}
