"""The command of a container: what it takes, what it hands back, how it fails."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.dsl.components.base.base_executor import BaseExecutor

from darkroom.components import entrypoint, executor_io
from darkroom.errors import DataError, UsageError
from darkroom.steps.places import find_mount

pytestmark = pytest.mark.tfx

REJECTS = {"instanceSchema": "title: darkroom.Rejects\ntype: object\n"}
HTML = {"schemaTitle": "system.HTML", "schemaVersion": "0.0.1"}
LOGS = {"schemaTitle": "system.Artifact"}
CALLS: list[tuple[Any, ...]] = []


class Writer(BaseExecutor):
    """Writes a file, marks its output, and remembers what it was given."""

    def Do(self, inputs, outputs, properties):  # noqa: N802
        CALLS.append((inputs, outputs, properties))
        [artifact] = outputs["rejects"]
        assert list(Path(artifact.uri).iterdir()) == []
        Path(artifact.uri, "new").write_text("new")
        artifact.set_int_custom_property("rejected", 3)
        artifact.set_string_custom_property("source", artifact.uri.replace("rejects", "manifest"))
        if "html" in outputs:
            [page] = outputs["html"]
            page.uri += "/report.html"
            Path(page.uri).write_text("<!doctype html>")


class BeamWriter(Writer, BaseBeamExecutor):
    """The same for the eyes of the entrypoint, with Beam."""


class Fails(BaseExecutor):
    error: Exception

    def Do(self, inputs, outputs, properties):  # noqa: N802
        raise self.error


@pytest.fixture
def mounts(tmp_path: Path, monkeypatch) -> Path:
    CALLS.clear()
    monkeypatch.setenv("DARKROOM_MOUNTS", str(tmp_path))
    # TFX imports executors by name; this module's own depends on how pytest found it.
    monkeypatch.setitem(sys.modules, "executors_of_the_test", sys.modules[__name__])
    return tmp_path


def make_input(mounts: Path, scheme: str = "minio", **outputs: Any) -> dict[str, Any]:
    root = f"{scheme}://bucket/root/Task"
    kinds = {"rejects": REJECTS, "executor-logs": LOGS, **outputs}
    return {
        "inputs": {"parameterValues": {}, "artifacts": {}},
        "outputs": {
            "artifacts": {
                key: {"artifacts": [{"name": key, "uri": f"{root}/{key}", "type": kind}]}
                for key, kind in kinds.items()
            },
            "outputFile": f"{mounts}/{scheme}/bucket/root/Task/output_metadata.json",
        },
    }


def run(
    given: dict[str, Any], *extra: str, executor: str = "Writer", spec: Any = None
) -> tuple[int, dict[str, Any]]:
    output = Path(given["outputs"]["outputFile"])
    output.parent.mkdir(parents=True, exist_ok=True)
    code = entrypoint.main(
        [
            *("--target", "kubeflow"),
            *("--executor_class_path", f"executors_of_the_test.{executor}"),
            *("--json_serialized_invocation_args", json.dumps(given)),
            *("--json_serialized_inputs_spec_args", json.dumps(spec or {})),
            *extra,
        ]
    )
    return code, json.loads(output.read_text()) if code == 0 else {}


def read_error(capfd) -> dict[str, Any]:
    return json.loads(capfd.readouterr().err.strip().splitlines()[-1])["error"]


@pytest.mark.parametrize(("scheme", "folder"), [("minio", "minio"), ("s3", "s3"), ("gs", "gcs")])
def test_the_executor_writes_to_the_launchers_folder_and_returns_the_uri(
    mounts: Path, scheme: str, folder: str
):
    code, output = run(make_input(mounts, scheme, html=HTML))
    assert code == 0
    task = mounts / folder / "bucket/root/Task"
    assert (task / "rejects/new").read_text() == "new"
    assert (task / "html/report.html").exists()
    assert sorted(output["artifacts"]) == ["html", "rejects"]
    [rejects] = output["artifacts"]["rejects"]["artifacts"]
    assert rejects["uri"] == f"{scheme}://bucket/root/Task/rejects"
    assert rejects["metadata"]["rejected"] == 3.0
    # Metadata outlives the container with its folders.
    assert rejects["metadata"]["source"] == f"{scheme}://bucket/root/Task/manifest"
    [page] = output["artifacts"]["html"]["artifacts"]
    assert page["uri"] == f"{scheme}://bucket/root/Task/html/report.html"
    # The UI lists the metadata of metrics among them.
    assert "tfx_version" in rejects["metadata"]
    assert "tfx_version" not in page["metadata"]


def test_an_input_is_read_from_the_launchers_folder_with_its_type_and_properties(mounts: Path):
    given = make_input(mounts)
    given["inputs"]["artifacts"]["examples"] = {
        "artifacts": [
            {
                "name": "7",
                "uri": "minio://other/examples",
                # Kubeflow's driver asks its metadata store, and has forgotten the type.
                "type": {"instanceSchema": ""},
                "metadata": {"split_names": '["train"]', "records": 5.0, "display_name": "x"},
            }
        ]
    }
    declared = {"instanceSchema": "title: tfx.Examples\ntype: object\n"}
    (mounts / "minio/other/examples").mkdir(parents=True)
    (mounts / "minio/other/examples/labels.txt").write_text("a")
    assert run(given, spec={"artifacts": {"examples": {"artifactType": declared}}})[0] == 0
    [examples] = CALLS[0][0]["examples"]
    assert examples.uri == f"{mounts}/minio/other/examples"
    assert (type(examples).__name__, examples.split_names) == ("Examples", '["train"]')
    assert examples.get_int_custom_property("records") == 5


@pytest.mark.parametrize("kind", ["absent", "empty", "empty folders", "file"])
def test_an_input_without_files_stops_the_task_before_anything_is_deleted(
    mounts: Path, capfd, kind: str
):
    given = make_input(mounts)
    page = {"name": "7", "uri": "minio://other/run/page.html", "type": HTML}
    given["inputs"]["artifacts"]["page"] = {"artifacts": [page]}
    kept = mounts / "minio/bucket/root/Task/rejects/kept"
    kept.parent.mkdir(parents=True)
    kept.write_text("of an attempt before")
    place = mounts / "minio/other/run/page.html"
    if kind == "file":
        place.parent.mkdir(parents=True)
        place.touch()  # even an empty one
        assert run(given)[0] == 0
        return
    if kind != "absent":
        (place / "inside" if kind == "empty folders" else place).mkdir(parents=True)
    assert run(given)[0] == 3
    error = read_error(capfd)
    assert (error["code"], error["exit_code"]) == ("environment", 3)
    assert error["message"] == (
        "The store no longer has any file of the input minio://other/run/page.html."
    )
    assert error["hint"] == (
        "Run again with caching off (--set cache=false) to make it again, or restore its files."
    )
    assert kept.exists()
    assert CALLS == []


def test_a_retry_finds_no_files_of_the_failed_attempt(mounts: Path):
    given = make_input(mounts)
    task = mounts / "minio/bucket/root/Task"
    for name in ("rejects/Split-train/old", "rejects/old", "executor-logs"):
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text("old")
    # A whole output of an attempt that was killed late; TFX would take it for a driver's.
    Path(given["outputs"]["outputFile"]).write_text('{"parameterValues": {"old": "old"}}')
    assert run(given)[0] == 0
    assert [path.name for path in (task / "rejects").iterdir()] == ["new"]
    assert (task / "executor-logs").read_text() == "old"  # the launcher's, not ours
    assert CALLS[0][2] == {}


def test_what_the_driver_of_an_example_gen_wrote_reaches_the_executor(mounts: Path):
    given = make_input(mounts)
    given["inputs"]["parameterValues"] = {"input_config": "span-{SPAN}"}
    found = {"input_fingerprint": "a1", "input_config": "span-2", "span": 2.0}
    path = Path(given["outputs"]["outputFile"])
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"parameterValues": found}))
    code, output = run(given)
    assert (code, CALLS[0][2]) == (0, found)
    assert [*output] == ["artifacts"]


def test_a_property_of_ones_own_may_have_the_name_of_a_parameter(mounts: Path, capfd):
    given = make_input(mounts)
    given["inputs"]["parameterValues"] = {"epochs": 3.0, "policies": "{", "data": "rows"}
    spec = {"parameters": {"epochs": {"parameterType": "NUMBER_INTEGER"}}}
    assert run(given, spec=spec)[0] == 2
    assert "takes no parameter 'epochs'" in read_error(capfd)["message"]
    assert run(given, "--own-pipeline", spec=spec)[0] == 0
    assert CALLS[0][2] == {"epochs": 3, "policies": "{", "data": "rows"}
    assert type(CALLS[0][2]["epochs"]) is int


@pytest.mark.parametrize(
    "uri",
    [
        "minio://",
        "minio://bucket",
        "minio://bucket/",
        "minio://bucket//root",
        "minio:///minio/bucket/root/Task/rejects",  # a path, without bucket
        "minio://bucket/root/Task/../../other/rejects",
        "minio://bucket/root/Before",  # where the input lies
        "minio://bucket/root/Before/rejects/",  # the input itself
        "minio://bucket/root/Before/rejects/part",
        "minio://bucket/root/Task",  # where the other output lies
        "/",
        "/minio/bucket",
        "file:///home/user/photos/holiday",
    ],
)
def test_only_the_place_of_an_output_is_emptied(mounts: Path, capfd, uri: str):
    given = make_input(mounts, html=HTML)
    given["outputs"]["artifacts"]["rejects"]["artifacts"][0]["uri"] = uri
    before = {"name": "7", "uri": "minio://bucket/root/Before/rejects", "type": REJECTS}
    given["inputs"]["artifacts"]["rejects"] = {"artifacts": [before]}
    kept = mounts / "minio/bucket/root/Before/rejects/rejects.parquet"
    kept.parent.mkdir(parents=True)
    kept.write_text("kept")
    assert run(given)[0] == 2
    assert f"The output {uri!r} cannot be emptied" in read_error(capfd)["message"]
    assert kept.read_text() == "kept"
    assert CALLS == []


def test_an_output_on_this_machine_must_be_empty(mounts: Path, tmp_path: Path, capfd):
    """Nothing proves whose files are there; a store's URI is made for one task."""
    given = make_input(mounts)
    kept = tmp_path / "photos" / "holiday" / "1.jpg"
    kept.parent.mkdir(parents=True)
    kept.write_text("kept")
    given["outputs"]["artifacts"]["rejects"]["artifacts"][0]["uri"] = str(kept.parent)
    assert run(given)[0] == 2
    assert "has files but is not in a store" in read_error(capfd)["message"]
    assert kept.read_text() == "kept"
    assert CALLS == []
    kept.unlink()
    assert run(given)[0] == 0


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (3.0, "NUMBER_INTEGER", 3),
        (3.0, "NUMBER_DOUBLE", 3.0),
        ("4.0", "NUMBER_INTEGER", 4),
        (True, "NUMBER_INTEGER", 1),
        ("007", "STRING", "007"),
        ({"a": [1.0, {"b": None}]}, "STRING", '{"a": [1.0, {"b": null}]}'),
        (["x"], "STRING", '["x"]'),
    ],
)
def test_a_value_has_the_type_of_the_interface(mounts: Path, value: Any, kind: str, expected: Any):
    given = make_input(mounts)
    given["inputs"]["parameterValues"] = {"found": value, "absent": None}
    assert run(given, spec={"parameters": {"found": {"parameterType": kind}}})[0] == 0
    [(name, found)] = CALLS[0][2].items()
    assert (name, found, type(found)) == ("found", expected, type(expected))


@pytest.mark.parametrize("value", ["many", 3.5, "nan", [3]])
def test_a_value_that_is_not_a_whole_number_is_named(mounts: Path, capfd, value: Any):
    given = make_input(mounts)
    given["inputs"]["parameterValues"] = {"whole": value}
    spec = {"parameters": {"whole": {"parameterType": "NUMBER_INTEGER"}}}
    assert run(given, spec=spec)[0] == 2
    error = read_error(capfd)
    assert (error["code"], error["exit_code"]) == ("usage", 2)
    assert "The parameter whole is" in error["message"]
    assert CALLS == []


@pytest.mark.parametrize(
    ("error", "code", "name"),
    [
        (DataError("Nothing is left.", "Fix it."), 1, "data"),
        (UsageError("No.", ""), 2, "usage"),
        (PermissionError("not yours"), 3, "environment"),
        (ModuleNotFoundError("no", name="tensorflow"), 3, "missing-extra"),
        (KeyError("x\ny"), 70, "internal"),
        (MemoryError(), 3, "environment"),
        (tf.errors.NotFoundError(None, None, "schema.pbtxt; No such file"), 3, "environment"),
        (tf.errors.InternalError(None, None, "bug"), 70, "internal"),
    ],
)
def test_an_error_ends_with_its_exit_code_and_one_line_of_json(
    mounts: Path, capfd, monkeypatch, error: Exception, code: int, name: str
):
    monkeypatch.setattr(Fails, "error", error, raising=False)
    assert run(make_input(mounts), executor="Fails")[0] == code
    printed = capfd.readouterr().err
    *text, last = printed.strip().splitlines()
    found = json.loads(last)["error"]
    assert (found["code"], found["exit_code"]) == (name, code)
    assert found["executor"] == "executors_of_the_test.Fails"
    if code == 1:
        assert (found["message"], found["hint"]) == ("Nothing is left.", "Fix it.")
        # Said once for people: no place in the code explains it.
        assert text == ["Nothing is left.", "Fix it."]
    elif code != 2:
        assert type(error).__name__ in "\n".join(text)
        assert "Traceback (most recent call last)" in printed


def test_a_message_names_artifacts_by_their_uri(mounts: Path, capfd, monkeypatch):
    page, other = mounts / "minio/bucket/run/report.html", mounts / "minion/bucket"
    error = DataError(f"It is blocked. See {page}, not {other}.", f"Open '{page}'.")
    monkeypatch.setattr(Fails, "error", error, raising=False)
    assert run(make_input(mounts), executor="Fails")[0] == 1
    found = read_error(capfd)
    assert found["message"] == (f"It is blocked. See minio://bucket/run/report.html, not {other}.")
    assert found["hint"] == "Open 'minio://bucket/run/report.html'."


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ([], "--target"),
        (["--target", "gke", "--executor_class_path", "a.B"], "invalid choice: 'gke'"),
        *[
            (
                [
                    *("--target", "vertex", "--executor_class_path", path),
                    *("--json_serialized_invocation_args", "{}"),
                ],
                f"The image has no executor {path}",
            )
            for path in ("no.such.Executor", "subprocess.Popen", "os.environ")
        ],
        (
            [
                *("--target", "vertex"),
                *("--executor_class_path", "executors_of_the_test.Writer"),
                *("--json_serialized_invocation_args", "{{$}}"),
            ],
            "not an ExecutorInput",
        ),
    ],
)
def test_wrong_arguments_are_errors(mounts: Path, capfd, argv: list[str], expected: str):
    assert entrypoint.main(argv) == 2
    error = read_error(capfd)
    assert error["code"] == "usage"
    assert expected in error["message"]


@pytest.mark.parametrize(
    "given",
    [
        *("[" * 100_000, "[]", '{"outputs": {}}'),
        '{"inputs": {"artifacts": {"a": 3}}, "outputs": {"outputFile": "a"}}',
        '{"outputs": {"outputFile": "a", "artifacts": {"b": {"artifacts": [{"name": "c"}]}}}}',
    ],
)
def test_text_that_is_not_an_executor_input_is_an_error(given: str):
    with pytest.raises(UsageError, match="not an ExecutorInput"):
        executor_io.parse_input(given, "", str)


@pytest.mark.parametrize("spec", ["{", '{"parameters": {"epochs": 3}}'])
def test_text_that_is_not_an_inputs_spec_is_an_error(mounts: Path, spec: str):
    with pytest.raises(UsageError, match="not a ComponentInputsSpec"):
        executor_io.parse_input(json.dumps(make_input(mounts)), spec, str)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ({"instanceSchema": "title: tfx.Examples\n"}, "tfx.types.standard_artifacts.Examples"),
        (REJECTS, "darkroom.Rejects"),
        (HTML, "darkroom.components.system_artifacts.HTML"),
        (
            {"instanceSchema": "title: system.Metrics\ntype: object\n"},
            "darkroom.components.system_artifacts.Metrics",
        ),
        (LOGS, None),
        ({"schemaTitle": "darkroom.DarkroomError"}, None),
        ({"schemaTitle": "darkroom.Missing"}, None),
        ({}, None),
    ],
)
def test_artifact_types_become_classes_that_tfx_can_import(
    kind: dict[str, str], expected: str | None
):
    assert executor_io.find_class_path(kind) == expected


IN_POD = ["/gcs/b/k", "/s3/b/k", "/minio/b/k"]


@pytest.mark.parametrize(
    ("target", "runner", "uses_beam", "places"),
    [
        # Workers elsewhere open the store.
        ("kubeflow", "FlinkRunner", True, ["gs://b/k", "s3://b/k", "s3://b/k"]),
        ("vertex", "FlinkRunner", True, ["gs://b/k", "s3://b/k", "minio://b/k"]),
        # This process reads: in a pod, what the launcher has copied.
        ("kubeflow", "", True, IN_POD),
        ("kubeflow", "apache_beam.runners.direct.DirectRunner", True, IN_POD),
        ("kubeflow", "FlinkRunner", False, IN_POD),
        ("vertex", "", True, ["gs://b/k", "s3://b/k", "minio://b/k"]),
    ],
)
def test_the_runner_and_the_target_decide_where_a_task_finds_a_uri(
    target: str, runner: str, uses_beam: bool, places: list[str], monkeypatch
):
    monkeypatch.delenv("DARKROOM_MOUNTS", raising=False)
    locate = executor_io.choose_places(target, runner, uses_beam=uses_beam)
    assert [locate(f"{scheme}://b/k") for scheme in ("gs", "s3", "minio")] == places


def test_the_runner_of_beam_decides_about_the_places(mounts: Path, monkeypatch):
    places = []
    monkeypatch.setattr(
        executor_io,
        "choose_places",
        lambda *given, uses_beam: places.append((*given, uses_beam)) or find_mount,
    )
    # With an image named, TFX builds no source package of itself.
    flink = ("--runner=FlinkRunner", "--sdk_container_image=local")
    assert run(make_input(mounts, "gs"), *flink, executor="BeamWriter")[0] == 0
    assert run(make_input(mounts, "gs"), *flink)[0] == 0
    assert run(make_input(mounts, "gs"), executor="BeamWriter")[0] == 0
    # No executor of ours: what it reads and writes with on workers elsewhere may open no s3://.
    assert run(make_input(mounts, "minio"), *flink, executor="BeamWriter")[0] == 0
    monkeypatch.setattr(BeamWriter, "__module__", entrypoint.__name__)
    monkeypatch.setattr(entrypoint, "BeamWriter", BeamWriter, raising=False)
    assert run(make_input(mounts, "minio"), *flink, executor="BeamWriter")[0] == 0
    assert places == [
        ("kubeflow", "FlinkRunner", True),
        ("kubeflow", "FlinkRunner", False),
        ("kubeflow", "", True),
        ("kubeflow", "FnApiRunner", True),
        ("kubeflow", "FlinkRunner", True),
    ]


SIGNALLED = """
import os, signal, time
from tfx.dsl.components.base.base_executor import BaseExecutor

class Executor(BaseExecutor):
    def Do(self, *_):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
"""


def test_a_signal_ends_the_process_of_a_task_with_its_exit_code(mounts: Path, warm_python):
    """Of a container the process is the first one, which a signal does not end by itself."""
    (mounts / "signalled.py").write_text(SIGNALLED)
    given = make_input(mounts)
    Path(given["outputs"]["outputFile"]).parent.mkdir(parents=True)
    done = warm_python.run(
        *("-m", "darkroom.components.entrypoint", "--target", "kubeflow"),
        *("--executor_class_path", "signalled.Executor"),
        *("--json_serialized_invocation_args", json.dumps(given)),
        *("--json_serialized_inputs_spec_args", "{}"),
        env={**os.environ, "PYTHONPATH": str(mounts)},
    )
    assert done.returncode == 143
    assert done.stderr.endswith("Ended by SIGTERM.\n")
