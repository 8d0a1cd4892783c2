"""The pipeline of components without TFX: compiled by every kfp, and run by kfp itself."""

import re
import warnings
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml

import darkroom
from darkroom.errors import UsageError

from ..trees import read_files

pytest.importorskip("kfp", reason="needs the extra [kfp]")

import kfp
from google.protobuf import json_format
from kfp import compiler
from kfp.pipeline_spec import pipeline_spec_pb2

from darkroom.kfp import make_pipeline


def compile_pipeline(tmp_path, *args, **options):
    path = tmp_path / "pipeline.yaml"
    compiler.Compiler().compile(make_pipeline(*args, **options), str(path))
    [spec] = yaml.safe_load_all(path.read_text())
    json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    return spec


def test_what_a_run_may_change_is_an_input_and_the_rest_is_constant(tmp_path):
    spec = compile_pipeline(tmp_path, "tf:1", core_image="core:1", epochs=3, num_threads=2,
                            required_splits=["train"], image_size=(32, 32))  # fmt: skip
    inputs = spec["root"]["inputDefinitions"]["parameters"]
    assert inputs.keys() == {
        "data", "seed", "max_rejects", "model", "image_size", "batch_size",
        "epochs", "learning_rate", "min_accuracy",
    }  # fmt: skip
    assert "defaultValue" not in inputs["data"]
    assert inputs["epochs"]["defaultValue"] == 3
    assert inputs["image_size"]["defaultValue"] == [32, 32]
    tasks = spec["root"]["dag"]["tasks"]
    given = tasks["train-classifier"]["inputs"]["parameters"]
    assert given["num_threads"] == {"runtimeValue": {"constant": 2.0}}
    assert given["epochs"] == {"componentInputParameter": "epochs"}
    executors = spec["deploymentSpec"]["executors"]
    images = {name: each["container"]["image"] for name, each in executors.items()}
    assert images == {
        "exec-convert-images": "core:1",
        "exec-evaluate-classifier": "tf:1",
        "exec-train-classifier": "tf:1",
        "exec-validate-dataset": "core:1",
        "exec-validation-gate": "core:1",
    }


def test_inputs_are_what_parameters_names_and_what_is_not_given(tmp_path):
    named = {"parameters": ["policies", "resize_short_side"], "augment": "none", "epochs": 3}
    spec = compile_pipeline(tmp_path, **named)
    inputs = spec["root"]["inputDefinitions"]["parameters"]
    assert inputs.keys() == {"data", "policies", "resize_short_side"}
    assert inputs["resize_short_side"]["defaultValue"] == 0
    trained = spec["root"]["dag"]["tasks"]["train-classifier"]["inputs"]["parameters"]
    constants = {name: each["runtimeValue"]["constant"] for name, each in trained.items()}
    assert constants == {"augment": "none", "epochs": 3.0}
    spec = compile_pipeline(tmp_path, parameters=[], data="s3://photos/list.csv")
    assert "inputDefinitions" not in spec["root"]
    spec = compile_pipeline(tmp_path, parameters=["data"], cached=True)
    inputs = spec["root"]["inputDefinitions"]["parameters"]
    assert inputs.keys() == {"data", "source_fingerprint"}
    with pytest.raises(UsageError, match="no cache would look at it"):
        compile_pipeline(tmp_path, parameters=["source_fingerprint"])


@pytest.mark.parametrize("name", ["epoch", "num_threads", "fail"])
def test_an_input_that_a_run_cannot_change_is_refused(tmp_path, name):
    with pytest.raises(UsageError, match=f"parameters has '{name}', which a run cannot change"):
        compile_pipeline(tmp_path, parameters=["data", name])


def test_the_gate_waits_for_the_report_and_training_for_the_gate(tmp_path):
    tasks = compile_pipeline(tmp_path)["root"]["dag"]["tasks"]
    judge, gate = tasks["validate-dataset"], tasks["validation-gate"]
    assert judge["inputs"]["parameters"]["fail"]["runtimeValue"] == {"constant": False}
    assert gate["inputs"]["artifacts"]["report"]["taskOutputArtifact"] == {
        "producerTask": "validate-dataset",
        "outputArtifactKey": "validation_report",
    }
    assert "validation-gate" in tasks["train-classifier"]["dependentTasks"]
    # The gate judges the rejects, so a conversion with some does not fail.
    rejects = tasks["convert-images"]["inputs"]["parameters"]["max_rejects"]
    assert rejects == {"runtimeValue": {"constant": 1.0}}


def test_the_graph_is_small_and_each_name_is_in_it_once(tmp_path):
    """At its smallest zoom Kubeflow's UI shows 15 nodes of a graph: tasks and artifacts."""
    spec = compile_pipeline(tmp_path)
    tasks = [spec["components"][f"comp-{name}"] for name in spec["root"]["dag"]["tasks"]]
    outputs = [each.get("outputDefinitions", {}).get("artifacts", {}) for each in tasks]
    names = [name for each in outputs for name in each]
    assert len(names) == len(set(names))
    assert len(tasks) + len(names) == 19
    compared = [name for each in outputs for name, artifact in each.items()
                if artifact["artifactType"]["schemaTitle"] == "system.Metrics"]  # fmt: skip
    assert sorted(compared) == ["evaluation_metrics", "training_metrics"]


def test_a_registry_adds_a_task_that_waits_for_the_evaluation(tmp_path):
    spec = compile_pipeline(tmp_path, registry="vertex://shop/europe-west4", data="gs://b/l.csv")
    tasks = spec["root"]["dag"]["tasks"]
    # Else a registry that was down would never get the model.
    cached = [name for name, each in tasks.items() if each["cachingOptions"].get("enableCache")]
    assert "train-classifier" in cached
    assert "register-model" not in cached
    task = tasks["register-model"]
    assert task["dependentTasks"] == ["evaluate-classifier", "train-classifier"]
    given = task["inputs"]["parameters"]
    assert {name: each["runtimeValue"]["constant"] for name, each in given.items()} == {
        "registry": "vertex://shop/europe-west4", "model_name": "darkroom-images",
        "run": "{{$.pipeline_job_uuid}}",
    }  # fmt: skip
    with pytest.raises(UsageError, match="registry is 'shop', expected the address"):
        compile_pipeline(tmp_path, registry="shop")


def test_a_webhook_is_told_by_the_gate_and_by_a_task_that_runs_at_the_end(tmp_path):
    named = []
    spec = compile_pipeline(tmp_path, "a:1", notify="", configure=lambda t: named.append(t.name))
    tasks = spec["root"]["dag"]["tasks"]
    assert tasks.keys() == {"exit-handler-1", "notify"}
    last = tasks["notify"]
    assert last["triggerPolicy"] == {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"}
    assert last["dependentTasks"] == ["exit-handler-1"]
    assert not last["cachingOptions"].get("enableCache")
    given = last["inputs"]["parameters"]
    assert given.pop("status") == {"taskFinalStatus": {"producerTask": "exit-handler-1"}}
    values = {name: each["runtimeValue"]["constant"] for name, each in given.items()}
    assert values == {
        "url": "",
        "pipeline": "darkroom-images",
        "run": "{{$.pipeline_job_name}}",
        "run_id": "{{$.pipeline_job_uuid}}",
    }
    inner = spec["components"]["comp-exit-handler-1"]["dag"]["tasks"]
    assert inner["validation-gate"]["inputs"]["parameters"] == given
    assert {*named} == {*inner, "notify"}
    with pytest.raises(UsageError, match="is not http://HOST or https://HOST"):
        compile_pipeline(tmp_path, notify="ftp://example.com/hook")
    with pytest.raises(UsageError, match="seems to contain a credential: Slack webhook"):
        compile_pipeline(tmp_path, notify="https://hooks.slack.com/services/T01/B01/abcdef")


@pytest.mark.parametrize("cached", [False, True])
def test_a_conversion_is_cached_only_when_asked_for(tmp_path, cached):
    tasks = compile_pipeline(tmp_path, cached=cached)["root"]["dag"]["tasks"]
    options = tasks["convert-images"]["cachingOptions"]
    assert options.get("enableCache", False) is cached
    assert tasks["train-classifier"]["cachingOptions"]["enableCache"] is True


def test_the_configuration_of_the_guide_fits_namespaces_with_rules(tmp_path, monkeypatch):
    """Each task has limits, and says that it does not run as root."""
    guide = (Path(__file__).parents[2] / "docs/guides/kfp-components.md").read_text("utf-8")
    [code] = [
        each for each in re.findall(r"```python\n(.*?)```", guide, re.S) if "configure(" in each
    ]
    kubernetes = Mock()  # kfp-kubernetes is another package
    monkeypatch.setattr(kfp, "kubernetes", kubernetes, raising=False)
    names = {"make_pipeline": make_pipeline}  # of the first example
    exec(code, names)
    path = tmp_path / "pipeline.yaml"
    compiler.Compiler().compile(names["pipeline"], str(path))
    executors = yaml.safe_load(path.read_text())["deploymentSpec"]["executors"]
    limits = {n: each["container"]["resources"]["memoryLimit"] for n, each in executors.items()}
    assert len(limits) == 5
    assert {n for n, limit in limits.items() if limit == 32.0} == {"exec-train-classifier"}
    assert {n for n, limit in limits.items() if limit == 8.0} == limits.keys() - {
        "exec-train-classifier"
    }
    context = kubernetes.set_security_context.call_args_list
    assert {call.args[0].name for call in context} == {n.removeprefix("exec-") for n in executors}
    assert all(call.kwargs == {"run_as_non_root": True} for call in context)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epoch": 3}, "The pipeline has no option 'epoch'. Did you mean epochs?"),
        ({"epochs": "3"}, "The parameter epochs is '3', expected a whole number."),
        ({"epochs": 0}, "epochs is 0, expected a whole number of at least 1."),
        ({"policies": {"leak": "warn"}}, "Unknown check 'leak'"),
        ({"split_ratios": "80/30"}, "Split ratios are three numbers that add up to 100"),
        ({"transfer": "both"}, "transfer is 'both', expected one of launcher, direct."),
        ({"min_recall": 1.5}, "min_recall is 1.5, expected a number from 0 to 1."),
        ({"data": "file:///photos"}, "data is 'file:///photos', which no container can see."),
        ({"allowed_roots": ["photos"]}, "allowed_roots is 'photos', which no container can see."),
    ],
)
def test_a_wrong_option_is_named(options, message):
    with pytest.raises(UsageError) as caught:
        make_pipeline(**options)
    assert str(caught.value).startswith(message)


def test_places_that_a_container_may_see_are_right(tmp_path):
    spec = compile_pipeline(
        tmp_path, data="s3://photos/$x*.csv", expected_labels=["5$"], weights="imagenet",
        exclude="gs://b/out.parquet",
        model="efficientnet-lite0", label_map="/mnt/photos/labels.txt", output_dir="",
    )  # fmt: skip
    assert spec["root"]["inputDefinitions"]["parameters"]["data"]["defaultValue"] == (
        "s3://photos/$x*.csv"
    )


@pytest.mark.parametrize(
    ("options", "place", "found"),
    [
        ({"expected_labels": ["a", "$$cash"]}, "expected_labels[1] is '$$cash'", "$$"),
        ({"columns": {"$(HOME)": "path"}}, "A key of columns is '$(HOME)'", "$("),
        (
            {"configure": lambda task: task.set_env_variable("NOTE", "a$$b")},
            "env of convert-images.NOTE is 'a$$b'",
            "$$",
        ),
    ],
    ids=["label", "key", "environment"],
)
def test_a_text_that_would_reach_the_task_changed_is_refused(tmp_path, options, place, found):
    with pytest.raises(UsageError) as caught:
        compile_pipeline(tmp_path, "r/d:1", **options)
    assert str(caught.value).startswith(f"{place}. Kubernetes replaces {found} on the way to")
    assert list(tmp_path.iterdir()) == []


TOKEN = "ghp_" + "a1" * 18


def set_token(name, value):
    return lambda task: task.set_env_variable(name, value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": f"s3://photos/{TOKEN}.csv"}, "data seems to contain a credential"),
        ({"configure": set_token("NOTE", TOKEN)}, "env of convert-images.NOTE seems to contain"),
        (
            {"configure": set_token("AWS_SECRET_ACCESS_KEY", "x")},
            "env of convert-images.AWS_SECRET_ACCESS_KEY is the name of a credential.",
        ),
    ],
    ids=["data", "environment", "name"],
)
def test_a_credential_does_not_get_into_a_file(tmp_path, options, message):
    with pytest.raises(UsageError) as caught:
        compile_pipeline(tmp_path, **options)
    assert str(caught.value).startswith(message)
    assert TOKEN not in str(caught.value)
    assert "use_secret_as_env" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def find_task(root: Path, name: str) -> Path:
    [run] = root.iterdir()
    return run / name


@pytest.mark.newest
def test_a_pipeline_is_run_by_kfp_and_writes_what_the_core_writes(run_here, jpeg_set, tmp_path):
    pytest.importorskip("tensorflow")
    run = make_pipeline(epochs=1, image_size=[8, 8], batch_size=8, min_class_images=1)
    run(data=str(jpeg_set.csv))
    darkroom.convert(jpeg_set.csv, tmp_path / "here")
    records = find_task(run_here, "convert-images") / "dataset"
    assert read_files(records) == read_files(tmp_path / "here")
    assert "Passed" in (find_task(run_here, "validate-dataset") / "validation_page").read_text()
    trained = find_task(run_here, "train-classifier")
    assert (trained / "trained_model" / "saved_model.pb").exists()
    assert (
        "Confusion" in (find_task(run_here, "evaluate-classifier") / "evaluation_page").read_text()
    )
    scored = darkroom.evaluate(trained / "trained_model", records, "eval")
    assert (trained / "accuracy").read_text() == str(scored.accuracy)


def test_a_gpu_for_an_image_without_cuda_is_a_warning(tmp_path):
    def configure(task):
        if task.name == "train-classifier":
            task.set_accelerator_type("nvidia.com/gpu").set_accelerator_limit(1)

    warned = "train-classifier asks for nvidia.com/gpu, .* says nothing of CUDA: tf:1"
    with pytest.warns(UserWarning, match=warned):
        compile_pipeline(tmp_path, "tf:1", configure=configure)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        compile_pipeline(tmp_path, "tf:1-cuda", core_image="core:1", configure=configure)
