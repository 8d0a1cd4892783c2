"""The components as KFP knows them, and their YAML files.

Without `from __future__ import annotations`: kfp reads the types of a user's component as they are.
"""

import runpy
import subprocess
import sys

import pytest
import yaml

from darkroom.errors import UsageError
from darkroom.steps.known import STEPS

kfp = pytest.importorskip("kfp", reason="needs the extra [kfp]")

from google.protobuf import json_format  # noqa: E402
from kfp import compiler, components, dsl  # noqa: E402
from kfp.pipeline_spec import pipeline_spec_pb2  # noqa: E402

import darkroom.kfp  # noqa: E402
from darkroom.kfp.components import make_component  # noqa: E402
from darkroom.kfp.yaml_files import FOLDER, encode_component, main  # noqa: E402

IMAGE = "registry.example.com/darkroom:1"
OURS = f"darkroom:{darkroom.__version__}"
TYPES = {str: "STRING", int: "NUMBER_INTEGER", float: "NUMBER_DOUBLE", bool: "BOOLEAN",
         list: "LIST", dict: "STRUCT"}  # fmt: skip


def compile_text(component, tmp_path) -> dict:
    path = tmp_path / "compiled.yaml"
    compiler.Compiler().compile(component, str(path))
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize("name", STEPS)
def test_a_component_has_the_types_of_its_interface(name, tmp_path):
    spec = compile_text(make_component(name, IMAGE), tmp_path)
    json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    step = STEPS[name]
    label = name.replace("_", "-")
    found = spec["components"][f"comp-{label}"]
    parameters = found["inputDefinitions"].get("parameters", {})
    assert {key: each["parameterType"] for key, each in parameters.items()} == {
        each.name: "TASK_FINAL_STATUS" if each.is_status else TYPES[each.kind]
        for each in step.parameters
    }
    for each in step.parameters:
        assert parameters[each.name].get("isOptional", False) != each.is_required
        if not each.is_required and not each.is_status:
            assert parameters[each.name]["defaultValue"] == each.default
        assert parameters[each.name]["description"].split() == each.help.split()
    artifacts = found["inputDefinitions"].get("artifacts", {})
    assert {key: each["artifactType"]["schemaTitle"] for key, each in artifacts.items()} == {
        each.name: f"system.{each.kind}" for each in step.inputs
    }
    made = found.get("outputDefinitions", {})
    assert {key: each["artifactType"] for key, each in made.get("artifacts", {}).items()} == {
        each.name: {"schemaTitle": f"system.{each.kind}", "schemaVersion": "0.0.1"}
        for each in step.outputs
    }
    assert {k: e["parameterType"] for k, e in made.get("parameters", {}).items()} == {
        each.name: TYPES[each.kind] for each in step.results
    }
    assert spec["deploymentSpec"]["executors"][f"exec-{label}"]["container"] == {
        "image": IMAGE,
        "command": ["python3", "-m", "darkroom.kfp.task", name],
        "args": ["--executor_input", "{{$}}"],
    }


@pytest.fixture
def fresh_package(monkeypatch):
    """The package as it is after its import: a component is made when it is first used."""
    for name in STEPS:
        monkeypatch.delitem(vars(darkroom.kfp), name, raising=False)


@pytest.mark.parametrize(
    ("variables", "images"),
    [
        ({}, [OURS, OURS]),
        ({"DARKROOM_IMAGE": "a:1"}, ["a:1", "a:1"]),
        ({"DARKROOM_IMAGE": "a:1", "DARKROOM_CORE_IMAGE": "b:1"}, ["b:1", "a:1"]),
    ],
)
def test_the_package_has_the_components_and_their_image_comes_from_the_environment(
    fresh_package, monkeypatch, variables, images
):
    for name in ("DARKROOM_IMAGE", "DARKROOM_CORE_IMAGE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert dir(darkroom.kfp) == sorted([*STEPS, "make_component", "make_pipeline"])
    made = (darkroom.kfp.convert_images, darkroom.kfp.train_classifier)
    assert [each.component_spec.implementation.container.image for each in made] == images


def test_a_task_is_cached_where_its_values_say_what_it_reads(tmp_path):
    convert_images, verify_dataset, predict_images = (
        make_component(name, IMAGE)
        for name in ("convert_images", "verify_dataset", "predict_images")
    )
    data = "s3://photos/list.csv"

    @dsl.pipeline(name="all")
    def every(place: str, state: str, model: dsl.Input[dsl.Model]):
        convert_images(data=data)
        convert_images(data=place)
        convert_images(data=data, source_fingerprint=state, output_dir=place, update=True)
        predict_images(images=["s3://photos/new"], model=model)
        verify_dataset(dataset_uri=place)
        verify_dataset(dataset_uri="s3://photos/records")
        # The cache may answer for these.
        made = convert_images(data=data, source_fingerprint=state)
        verify_dataset(dataset=made.outputs["dataset"])
        verify_dataset(dataset_uri=made.outputs["dataset_uri"])
        verify_dataset(dataset_uri="s3://photos/records#2b72")
        # Whoever knows better says so.
        convert_images(data=data).set_caching_options(True)

    tasks = compile_text(every, tmp_path)["root"]["dag"]["tasks"]
    cached = {name for name, each in tasks.items() if each["cachingOptions"].get("enableCache")}
    assert cached == {
        *("convert-images-4", "verify-dataset-3", "verify-dataset-4", "verify-dataset-5"),
        "convert-images-5",
    }


def test_an_image_without_a_name_and_an_unknown_component():
    with pytest.raises(UsageError, match="image is 'a b', expected the name of a container image"):
        make_component("convert_images", "a b")
    with pytest.raises(UsageError, match="There is no component 'convert'"):
        make_component("convert")


@pytest.mark.parametrize(
    "code",
    [
        "from darkroom.kfp import make_pipeline; make_pipeline('r/d')",
        "from darkroom.kfp import convert_images",
        "from darkroom.kfp.yaml_files import write_components; write_components('made', 'r/d')",
    ],
    ids=["pipeline", "import", "files"],
)
def test_a_moving_image_is_one_warning_at_the_line_of_the_user(
    code, tmp_path, fresh_package, monkeypatch
):
    script = tmp_path / "mine.py"
    script.write_text(f"\n{code}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DARKROOM_IMAGE", "r/d")
    with pytest.warns(UserWarning, match="image is 'r/d', which is the tag latest") as caught:
        runpy.run_path(str(script))
    # What another test has left open may be collected meanwhile.
    said = [each for each in caught if each.category is not ResourceWarning]
    assert [(each.filename, each.lineno) for each in said] == [(str(script), 2)]


def test_a_pipeline_with_two_moving_images_warns_of_both():
    with pytest.warns(UserWarning, match="which is the tag latest") as caught:
        darkroom.kfp.make_pipeline("r/d", core_image="r/core")
    found = sorted(str(each.message).split("'")[1] for each in caught)
    assert found == ["r/core", "r/d"]
    assert {each.filename for each in caught} == {__file__}


@pytest.mark.parametrize("name", STEPS)
def test_the_file_of_a_component_is_what_the_code_says(name):
    path = FOLDER / f"{name}.yaml"
    assert path.read_text("utf-8") == encode_component(name, OURS)
    loaded = components.load_component_from_file(str(path))
    assert loaded.component_spec.inputs.keys() == {
        *(each.name for each in STEPS[name].parameters),
        *(each.name for each in STEPS[name].inputs),
    }


def test_there_is_a_file_for_each_component():
    assert {path.stem for path in FOLDER.iterdir()} == {*STEPS}


def test_files_of_others_are_not_replaced(tmp_path, capsys):
    (tmp_path / "convert_images.yaml").write_text("mine")
    assert main([str(tmp_path)]) == 4
    assert (tmp_path / "convert_images.yaml").read_text() == "mine"
    said = capsys.readouterr().err
    assert said.startswith(f"darkroom: {tmp_path}")
    assert said.count("\n") == 2


def test_components_from_files_go_with_those_of_others(tmp_path):
    @dsl.component(base_image="python:3.12")
    def count(dataset: dsl.Input[dsl.Dataset]) -> int:
        return int(dataset.metadata["records"])

    convert = components.load_component_from_file(str(FOLDER / "convert_images.yaml"))
    validate = components.load_component_from_file(str(FOLDER / "validate_dataset.yaml"))

    @dsl.pipeline(name="own")
    def own(data: str) -> int:
        made = convert(data=data)
        judged = validate(dataset=made.outputs["dataset"], fail=False)
        with dsl.If(judged.outputs["passed"] == True):  # noqa: E712
            made_again = darkroom.kfp.inspect_dataset(dataset=made.outputs["dataset"])
            made_again.set_cpu_limit("1")
        return count(dataset=made.outputs["dataset"]).output

    spec = compile_text(own, tmp_path)
    json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    condition = spec["root"]["dag"]["tasks"]["condition-1"]["triggerPolicy"]["condition"]
    assert condition.endswith("== true")


def test_without_kfp_there_is_one_clear_sentence():
    code = """
import sys
class NoKfp:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] == "kfp":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, NoKfp())
import darkroom.kfp
print(dir(darkroom.kfp), hasattr(darkroom.kfp, "convert_images"))
from darkroom.errors import MissingExtraError
try:
    from darkroom.kfp import convert_images
except MissingExtraError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == "[] False"
    assert second.startswith("The module kfp needs the extra 'kfp', which is not installed. ")


def compile_tasks(tmp_path, **given):
    """Compiles a pipeline in which a training takes its values from anywhere."""
    train = make_component("train_classifier", IMAGE)
    convert = make_component("convert_images", IMAGE)

    @dsl.pipeline(name="own")
    def own(bucket: str = "photos", epochs: int = 3, model: str = "efficientnet-lite0") -> None:
        run_time = {"epochs": epochs, "model": model}
        options = {
            key: run_time.get(key) if value is ... else value for key, value in given.items()
        }
        converted = convert(data=f"s3://{bucket}/{dsl.PIPELINE_JOB_NAME_PLACEHOLDER}.csv")
        train(dataset_uri=converted.outputs["dataset_uri"], **options)

    return compile_text(own, tmp_path)


def test_values_that_only_a_run_knows_pass(tmp_path):
    spec = compile_tasks(tmp_path, epochs=..., model=..., fine_tune_epochs=2, freeze="base")
    given = spec["root"]["dag"]["tasks"]["train-classifier"]["inputs"]["parameters"]
    assert given["model"] == {"componentInputParameter": "model"}
    assert given["fine_tune_epochs"] == {"runtimeValue": {"constant": 2.0}}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epochs": 0}, "epochs is 0, expected a whole number of at least 1."),
        ({"epochs": ..., "batch_size": 0}, "batch_size is 0, expected a whole number"),
        ({"freeze": "base", "model": "small_cnn"}, "freeze is 'base', but small_cnn has no base"),
        ({"weights": "s3://b/my.weights.h5"}, "weights is 's3://b/my.weights.h5', which no"),
        ({"model": "glpat-" + "a1" * 10}, "model seems to contain a credential"),
    ],
    ids=["count", "beside one of the run", "together", "store", "credential"],
)
def test_a_constant_is_checked_when_a_pipeline_is_made(tmp_path, given, message):
    with pytest.raises(UsageError) as caught:
        compile_tasks(tmp_path, **given)
    assert caught.value.message.startswith(message)
