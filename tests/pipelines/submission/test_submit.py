"""`darkroom submit` from its arguments to what a service gets, and what its cache makes of that."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from darkroom import storage
from darkroom.cli import main
from darkroom.components.state_driver import TAKEN_BY_EACH_RUN
from darkroom.decisions.saved import FORM
from darkroom.errors import AccessError, DataError, UsageError
from darkroom.manifest import chunks, fingerprint
from darkroom.pipelines.config import PipelineConfig, make_config
from darkroom.pipelines.submission import cache_states
from darkroom.pipelines.submission.runs import PreparedRun, read_documents
from darkroom.pipelines.submission.submit import submit_pipeline
from darkroom.version import hash_code

from ..compiled import format_pipeline
from ..kubeflow_server import Server
from ..service_cache import ServiceCache

pytestmark = [pytest.mark.tfx, pytest.mark.usefixtures("no_waiting", "volume")]

ROOT = "minio://mlpipeline/darkroom"
AFTER_TRAINING = {"Trainer", "Evaluator", "Pusher"}


@pytest.fixture
def volume(mounted: Path) -> Path:
    """A volume that is mounted here and in the containers, with a source on it."""
    for name in ("a", "b"):
        (mounted / f"{name}.png").write_bytes(name.encode())
    (mounted / "images.csv").write_text("TRAIN,a.png,cat\nTEST,b.png,dog\n")
    (mounted / "w.weights.h5").write_bytes(b"1")
    return mounted


@pytest.fixture(scope="module")
def values(mounted: Path) -> dict[str, Any]:
    return {
        "data": f"{mounted}/images.csv",
        "root": ROOT,
        "image": "registry/darkroom:1",
        "volumes": {str(mounted): "images"},
    }


@pytest.fixture(scope="module")
def compiled(values: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    return _compile(make_config(values), tmp_path_factory.mktemp("compiled") / "pipeline.yaml")


@pytest.fixture(scope="module")
def weighted(values: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A compiled file whose runs may name weights."""
    config = make_config({**values, "parameters": ["data", "push_to", "weights"]})
    return _compile(config, tmp_path_factory.mktemp("weighted") / "pipeline.yaml")


# It cannot know what is in the folder where it pushes.
NEVER_CACHED = {"Pusher"}


def _compile(config: PipelineConfig, path: Path) -> str:
    """Writes the compiled file of a configuration; returns its path."""
    path.write_text(format_pipeline(config, "kubeflow"))
    return str(path)


def _submit(server: Server, *arguments: str) -> dict[str, Any]:
    """Submits a compiled file by the command; returns the run as the server has it."""
    before = set(server.runs)
    code = main(["submit", "--target=kubeflow", f"--host={server.url}", *arguments])
    assert code == 0
    [name] = set(server.runs) - before
    return server.runs[name]


def _submit_values(server: Server, values: dict[str, Any], target: str = "kubeflow") -> None:
    """Submits values that no command line can have."""
    given = {"target": target, "wait": False, "host": server.url, **values}
    assert submit_pipeline(given, as_json=False) == 0


def _find_spec(run: dict[str, Any]) -> dict[str, Any]:
    documents = run["pipeline_spec"]
    return documents.get("pipeline_spec", documents)


def _find_state(spec: Mapping[str, Any]) -> str:
    """Returns the state of the source that the cache compares."""
    given = spec["root"]["dag"]["tasks"]["ManifestGen"]["inputs"]["parameters"]
    return given["source_fingerprint"]["runtimeValue"]["constant"]


def _work(cache: ServiceCache, run: dict[str, Any]) -> set[str]:
    return cache.run(_find_spec(run), run["runtime_config"]["parameters"])


def _list_tasks(path: str) -> set[str]:
    return set(read_documents(path)[0]["root"]["dag"]["tasks"])


def test_unchanged_tasks_are_reused_and_changed_tasks_run_again(server, volume, compiled, capsys):
    cache, everything = ServiceCache(), _list_tasks(compiled)
    submit = [f"--pipeline={compiled}", "--shared-paths"]
    assert _work(cache, _submit(server, *submit)) == everything
    again = _submit(server, *submit)
    assert again["runtime_config"]["pipeline_root"] == ROOT
    assert _work(cache, again) == NEVER_CACHED
    assert "Unchanged tasks are reused." in capsys.readouterr().out
    assert _find_state(_find_spec(again)).startswith(f"{hash_code()}-")

    (volume / "b.png").write_bytes(b"another image")
    assert _work(cache, _submit(server, *submit)) == everything
    (volume / "images.csv").write_text("TRAIN,a.png,cat\nTEST,b.png,cow\n")
    assert _work(cache, _submit(server, *submit)) == everything
    assert _work(cache, _submit(server, *submit)) == NEVER_CACHED


def test_a_changed_parameter_runs_only_the_tasks_that_use_it(server, compiled):
    cache = ServiceCache()
    submit = [f"--pipeline={compiled}", "--shared-paths"]
    _work(cache, _submit(server, *submit))
    run = _submit(server, *submit, "--set=epochs=3")
    assert run["runtime_config"]["parameters"]["epochs"] == 3
    worked = _work(cache, run)
    assert worked >= AFTER_TRAINING
    assert worked.isdisjoint({"ManifestGen", "ImageToTFRecord", "ImageValidator"})
    assert "ManifestGen" in _work(cache, _submit(server, *submit, "--set=seed=5"))


def test_changed_weights_are_trained_again(server, volume, weighted):
    cache = ServiceCache()
    submit = [f"--pipeline={weighted}", "--shared-paths", f"--set=weights={volume}/w.weights.h5"]
    _work(cache, _submit(server, *submit))
    assert _work(cache, _submit(server, *submit)) == NEVER_CACHED
    (volume / "w.weights.h5").write_bytes(b"22")
    worked = _work(cache, _submit(server, *submit))
    assert worked >= AFTER_TRAINING
    assert "ImageToTFRecord" not in worked


def test_a_source_that_cannot_be_read_here_is_read_again(server, volume, weighted, capsys):
    cache, everything = ServiceCache(), _list_tasks(weighted)
    for _ in range(2):
        run = _submit(server, f"--pipeline={weighted}", f"--set=weights={volume}/w.weights.h5")
        assert _work(cache, run) == everything
    assert _find_state(_find_spec(run)) == TAKEN_BY_EACH_RUN
    printed = capsys.readouterr()
    for what, path in (("source", volume / "images.csv"), ("model", volume / "w.weights.h5")):
        line, _ = [each for each in printed.err.splitlines() if f"Reading the {what}" in each]
        assert "failed after" in line
        assert f", {path} is a path in its container" in line
    output = printed.out
    assert "ManifestGen runs again" in output
    assert "Trainer runs again" in output
    assert "--shared-paths" in output


def test_without_the_cache_all_tasks_run_again(server, compiled, values, tmp_path, capsys):
    cache, everything = ServiceCache(), _list_tasks(compiled)
    without = _compile(make_config({**values, "cache": False}), tmp_path / "without.yaml")
    for arguments in ([f"--pipeline={compiled}", "--set=cache=false"], [f"--pipeline={without}"]):
        for _ in range(2):
            run = _submit(server, *arguments, "--shared-paths")
            assert _work(cache, run) == everything
        assert "All tasks run again." in capsys.readouterr().out


def test_a_pipeline_is_compiled_from_options_when_no_file_is_given(
    server, values, tmp_path, capsys
):
    config = tmp_path / "run.toml"
    config.write_text(
        "\n".join(f"{k} = {json.dumps(v)}" for k, v in values.items() if k != "volumes")
    )
    with config.open("a") as file:
        file.write(f'\n[volumes]\n"{next(iter(values["volumes"]))}" = "images"\n')
    run = _submit(
        server, f"--config={config}", "--set=epochs=4", "--shared-paths", "--json", "--wait"
    )
    sent = run["pipeline_spec"]["pipeline_spec"]
    assert sent["root"]["inputDefinitions"]["parameters"]["epochs"]["defaultValue"] == 4
    assert run["runtime_config"]["pipeline_root"] == ROOT
    executors = run["pipeline_spec"]["platform_spec"]["platforms"]["kubernetes"]["deploymentSpec"]
    assert "images" in json.dumps(executors)
    told = json.loads(capsys.readouterr().out)
    assert told["url"] == f"{server.url}/#/runs/details/run-1"
    assert told["state"] == "SUCCEEDED"
    assert told["parameters"] == {}
    assert _find_state(sent).startswith(hash_code())


def test_a_run_without_a_root_leaves_it_to_the_server(server, values, tmp_path):
    path = _compile(make_config({**values, "root": ""}, "kubeflow"), tmp_path / "rootless.yaml")
    assert "pipeline_root" not in _submit(server, f"--pipeline={path}")["runtime_config"]
    given = _submit(server, f"--pipeline={path}", "--set=root=minio://mlpipeline/mine")
    assert given["runtime_config"]["pipeline_root"] == "minio://mlpipeline/mine"


def test_a_run_that_fails_ends_with_1_and_names_its_tasks(server, compiled, capsys):
    server.states, server.errors = ["FAILED"], {"ValidationGate": "leakage: 3 images"}
    arguments = ["submit", "--target=kubeflow", f"--host={server.url}", f"--pipeline={compiled}"]
    assert main([*arguments, "--wait"]) == 1
    output = capsys.readouterr().out
    assert "State      failed" in output
    assert "Failed     ValidationGate: leakage: 3 images" in output
    assert f"{server.url}/#/runs/details/run-1" in output
    assert main([*arguments, "--wait", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["state"], told["errors"]) == ("FAILED", {"ValidationGate": "leakage: 3 images"})
    assert told["error"] == {
        "code": "data",
        "message": "The run ended as failed.",
        "hint": f"See {told['url']}",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--project=p"], "--project is not for --target kubeflow"),
        (["--set=learning_rate=nan", "--set=cache=false"], "learning_rate is nan"),
        (["--set=data=images.csv"], "data is 'images.csv', which no container can see"),
        (
            ["--set=data=s3://ann:geheim-geheim@b/images.csv"],
            "data seems to contain a credential",
        ),
        (["--set=weights=/mnt/w.h5"], "--set parameters=weights,batch_size,data,"),
        (["--require-digest"], "The image of Evaluator is "),
        (["--set=image=other:2"], "image is part of the compiled file"),
        (["--set=num_shards=2"], "or give one of batch_size, data, "),
        (["--set=root=file:///runs"], "root is 'file:///runs', which kubeflow cannot keep"),
        (["--run-name=ya29.aaaaaaaaaaaaaaaaaaaaaaaaaa"], "--run-name seems to contain"),
    ],
)
def test_wrong_options_are_errors_before_a_request_is_sent(
    server, compiled, arguments, message, capsys
):
    common = ["submit", "--target=kubeflow", f"--host={server.url}", f"--pipeline={compiled}"]
    assert main([*common, *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "geheim" not in error
    assert "ya29" not in error
    assert server.requests == []


@pytest.mark.parametrize(("name", "value"), [("epochs", 2.5), ("model", 3)])
def test_a_parameter_of_another_type_is_an_error(server, compiled, name: str, value: Any):
    with pytest.raises(UsageError, match=f"The parameter {name} is {value!r}, expected"):
        _submit_values(server, {"pipeline": compiled, name: value})
    assert server.requests == []


def test_retries_are_not_logged(server, compiled, caplog):
    arguments = ["submit", "--target=kubeflow", "--host=http://127.0.0.1:1", "--set=cache=false"]
    assert main([*arguments, f"--pipeline={compiled}"]) == 3
    assert "Retrying" not in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image_size = 5", "image_size is 5"),
        ("data = ['a']", "data is ['a'], expected text"),
        ("root = 5", "kubeflow cannot keep artifacts"),
    ],
)
def test_a_wrong_value_in_a_file_is_an_error(server, compiled, tmp_path, text, message):
    (tmp_path / "run.toml").write_text(text)
    given = {"pipeline": compiled, "config": str(tmp_path / "run.toml")}
    with pytest.raises(UsageError) as error:
        _submit_values(server, given)
    assert message in str(error.value)


def test_weights_in_a_store_are_an_error(server, weighted):
    with pytest.raises(UsageError, match=r"weights is 's3://b/w\.h5', which no container"):
        _submit_values(server, {"pipeline": weighted, "weights": "s3://b/w.h5"})


def test_a_path_on_a_volume_of_the_compiled_file_is_accepted(server, weighted, volume):
    given = {"pipeline": weighted, "data": f"{volume}/others.csv", "cache": False}
    _submit_values(server, {**given, "push_to": "", "weights": ""})
    sent = server.runs["run-1"]["runtime_config"]["parameters"]
    assert sent == {"data": f"{volume}/others.csv", "push_to": "", "weights": ""}


def test_a_pipeline_that_darkroom_did_not_compile_is_an_error(server, compiled, tmp_path):
    [spec, _] = read_documents(compiled)
    del spec["root"]["dag"]["tasks"]["Evaluator"]
    (tmp_path / "p.yaml").write_text(json.dumps(spec))
    with pytest.raises(UsageError, match="has no task Evaluator, so darkroom did not compile it"):
        _submit_values(server, {"pipeline": str(tmp_path / "p.yaml")})


@pytest.mark.parametrize(
    "text",
    ["a: [", "3", "\0", "root: {}", "[" * 100_000],
    ids=lambda text: repr(text[:20]),
)
def test_a_file_that_is_not_a_pipeline_is_an_error(server, tmp_path, text):
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(UsageError, match="is not a compiled pipeline"):
        _submit_values(server, {"pipeline": str(tmp_path / "p.yaml")})


def test_a_client_that_is_not_installed_is_a_missing_extra(compiled, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "darkroom.pipelines.submission.kubeflow", raising=False)
    monkeypatch.delattr("darkroom.pipelines.submission.kubeflow", raising=False)
    monkeypatch.setitem(sys.modules, "kfp.client", None)
    given = ["--target=kubeflow", "--host=http://x", f"--pipeline={compiled}"]
    assert main(["submit", *given]) == 3
    assert "submit --target kubeflow needs the extra 'tfx'" in capsys.readouterr().err


# Run in a process of its own: what is loaded stays loaded.
_ASK = """
import json, sys
from darkroom.cli import main
codes = [main(arguments) for arguments in json.load(sys.stdin)]
print(codes, sorted({"tfx", "tensorflow", "kfp"} & set(sys.modules)))
"""


def test_wrong_options_are_errors_before_tfx_is_loaded(compiled, tmp_path, light_beam):
    submit = ["submit", "--target=kubeflow", "--host=http://x"]
    cases = {
        "none.yaml": [*submit, f"--pipeline={tmp_path}/none.yaml"],
        "was not compiled for vertex": ["submit", "--target=vertex", f"--pipeline={compiled}"],
        "image is part of the compiled": [*submit, f"--pipeline={compiled}", "--set=image=a"],
        "epochs is 0": [*submit, f"--pipeline={compiled}", "--set=epochs=0"],
        "kubeflow cannot keep artifacts": [
            *submit,
            "--set=image=a",
            "--set=data=gs://b/a",
            "--set=root=runs",
        ],
        "nowhere.csv does not exist": ["run", "--data=nowhere.csv", f"--root={tmp_path}/run"],
    }
    done = subprocess.run(
        [sys.executable, "-c", _ASK],
        input=json.dumps(list(cases.values())),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[3, 2, 2, 2, 2, 3] []\n"
    told = [line for line in done.stderr.splitlines() if line.startswith("darkroom: ")]
    for text, line in zip(cases, told, strict=True):
        assert text in line
    assert not (tmp_path / "run").exists()


# What is seen from here


@pytest.fixture
def run(compiled: str) -> PreparedRun:
    return PreparedRun(read_documents(compiled), ROOT)


def _pin(run: PreparedRun, *, shared_paths: bool = True) -> PreparedRun:
    return cache_states.pin_states(run, shared_paths=shared_paths)


def _is_cached(run: PreparedRun, task: str = "ManifestGen") -> bool:
    return bool(run.tasks[task]["cachingOptions"]["enableCache"])


def test_remote_images_are_part_of_the_state_and_unreadable_ones_are_noted(
    run, volume, monkeypatch
):
    (volume / "images.csv").write_text("TRAIN,s3://b/a.jpg,cat\nTEST,s3://b/b.jpg,dog\n")
    states: dict[str, Any] = {"s3://b/a.jpg": "1", "s3://b/b.jpg": FileNotFoundError("none")}

    def stat(uri: str) -> storage.FileInfo:
        if isinstance(state := states[uri], Exception):
            raise state
        return storage.FileInfo(5, state)

    fake = SimpleNamespace(**{**vars(storage), "stat_file": stat})
    monkeypatch.setattr(chunks, "storage", fake)
    monkeypatch.setattr(fingerprint, "storage", fake)
    missing = _pin(run)
    states["s3://b/b.jpg"] = "1"
    present = _pin(run)
    assert _is_cached(missing)
    assert _is_cached(present)
    assert _find_state(missing.spec) != _find_state(present.spec)
    states["s3://b/b.jpg"] = AccessError("forbidden")
    unseen = _pin(run)
    assert not _is_cached(unseen)
    assert "The state of s3://b/b.jpg is unknown: forbidden" in unseen.notes[0]


def test_local_images_of_a_remote_list_are_not_read_here(run, volume, monkeypatch):
    (volume / "images.csv").write_text(f"TRAIN,{volume}/a.png,cat\n")
    is_remote = storage.is_remote
    fake = SimpleNamespace(
        **{**vars(storage), "is_remote": lambda p: p.endswith(".csv") or is_remote(p)}
    )
    monkeypatch.setattr(cache_states, "storage", fake)
    unseen = _pin(run, shared_paths=False)
    assert not _is_cached(unseen)
    assert f"{volume}/a.png is a path in its container" in unseen.notes[0]


def test_a_source_that_is_missing_here_is_noted(run, volume):
    (volume / "images.csv").unlink()
    unseen = _pin(run)
    assert not _is_cached(unseen)
    assert "its source cannot be read from here" in unseen.notes[0]


def test_a_source_that_cannot_be_used_is_an_error(run, volume):
    (volume / "images.csv").write_text("image_uri,label\n")
    with pytest.raises(DataError, match="has no rows"):
        _pin(run)


def test_an_s3_endpoint_that_is_not_set_here_is_noted(values, tmp_path, monkeypatch):
    config = make_config({**values, "env": {"AWS_ENDPOINT_URL": "http://minio:9000"}})
    run = PreparedRun(read_documents(_compile(config, tmp_path / "endpoint.yaml")), ROOT)
    assert "AWS_ENDPOINT_URL is not set here" in _pin(run).notes[0]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:9000")
    assert _is_cached(_pin(run))


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("exclude", "a.png\n", "b.png\n"), ("label_map", "cat\ndog\n", "dog\ncat\n")],
)
def test_a_list_that_tasks_read_is_part_of_the_state(values, volume, tmp_path, name, before, after):
    path = volume / "list.txt"
    path.write_text(before)
    config = dataclasses.replace(make_config(values), **{name: str(path)})
    run = PreparedRun(read_documents(_compile(config, tmp_path / "list.yaml")), ROOT)
    state = _find_state(_pin(run).spec)
    path.write_text(after)
    assert _find_state(_pin(run).spec) != state
    # Compiled in, it is an input of the pipeline, and a run gets its own.
    config = dataclasses.replace(config, source_fingerprint="1")
    run = PreparedRun(read_documents(_compile(config, tmp_path / "given.yaml")), ROOT)
    assert _pin(run).parameters["source_fingerprint"] not in ("1", state)


def test_decisions_about_a_dataset_that_is_not_seen_here_are_noted(values, volume, tmp_path):
    saved = {"form": FORM, "dataset": "a" * 64, "records": "/gone", "decisions": []}
    (volume / "saved.json").write_text(json.dumps(saved))
    config = dataclasses.replace(make_config(values), decisions=f"{volume}/saved.json")
    run = PreparedRun(read_documents(_compile(config, tmp_path / "decided.yaml")), ROOT)
    unseen = _pin(run)
    assert not _is_cached(unseen)
    assert "its decisions cannot be resolved from here" in unseen.notes[0]


def test_a_compiled_file_without_parameters_reads_the_source_each_time(compiled):
    cache, spec = ServiceCache(), read_documents(compiled)[0]
    everything = _list_tasks(compiled)
    assert [cache.run(spec, {}, run_id=run) for run in ("1", "2")] == [everything] * 2
