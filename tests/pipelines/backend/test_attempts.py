"""Tasks that fail, are tried again or are ended, as the launcher and ML Metadata see them."""

from __future__ import annotations

import json
import os
import signal
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd
from PIL import Image

from darkroom.pipelines.config import PipelineConfig

from ...warm_python import WarmProcess, WarmPython
from ..launcher import Launcher, PodKilledError, compile_spec, run_in_process
from .driver import LOGS
from .release import RELEASES, V2_5, V2_17, Release
from .task_run import TaskRun

pytestmark = pytest.mark.tfx

ROOT = "minio://mlpipeline/v2/artifacts"
TASK_ROOT = f"{ROOT}/darkroom/run-1/ManifestGen/5a17"


@pytest.fixture(scope="module")
def spec() -> dict[str, Any]:
    return compile_spec(
        PipelineConfig(
            data="s3://photos/images.csv",
            root=ROOT,
            image="example.com/darkroom:1",
            source_fingerprint="state-1",
        )
    )


class Processes:
    """Starts the processes of tasks, and keeps them."""

    def __init__(self, warm_python: WarmPython) -> None:
        self._warm_python = warm_python
        self.started: list[WarmProcess] = []

    def start(self, command: list[str], environment: dict[str, str], log: Path) -> WarmProcess:
        """Starts a process; what it prints goes to the log."""
        with log.open("wb") as file:
            streams = {"stdout": file.fileno(), "stderr": file.fileno()}
            environment = {**os.environ, **environment}
            self.started.append(self._warm_python.start(*command[1:], env=environment, **streams))
        return self.started[-1]

    def run(self, command: list[str], environment: dict[str, str], log: Path) -> int:
        """Runs a process to its end."""
        return self.start(command, environment, log).wait()


@pytest.fixture
def processes(warm_python: WarmPython) -> Processes:
    return Processes(warm_python)


def read_execution(launcher: Launcher, run: TaskRun) -> mlmd.Execution:
    """Returns the execution of a task, which is its only one."""
    found = launcher.store.client.get_executions_by_type("system.ContainerExecution")
    [execution] = [each for each in found if each.id == run.execution]
    names = [each.custom_properties["task_name"].string_value for each in found]
    assert names.count(execution.custom_properties["task_name"].string_value) == 1
    return execution


def list_made(launcher: Launcher, run: TaskRun) -> list[tuple[str, str]]:
    """Returns key and URI of everything that a task made, in the order of its events."""
    events = launcher.store.client.get_events_by_execution_ids([run.execution])
    made = [event for event in events if event.type == mlmd.Event.OUTPUT]
    uris = [launcher.store.read_artifact(event.artifact_id)["uri"] for event in made]
    return [(event.path.steps[0].key, uri) for event, uri in zip(made, uris, strict=True)]


def list_bucket(launcher: Launcher) -> list[str]:
    """Returns the keys of all objects of the store."""
    bucket = launcher.find_bucket_path(f"{ROOT}/x").parent
    return sorted(str(path.relative_to(bucket)) for path in bucket.rglob("*") if path.is_file())


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_each_of_three_attempts_is_a_pod_with_empty_folders_and_the_same_uris(
    release: Release, spec: dict[str, Any], tmp_path: Path, processes: Processes
):
    def look(name: str, attempt: int, places: dict[str, Path]) -> None:
        [mounts] = (tmp_path / "containers").iterdir()
        pods.append(mounts.name)
        assert [path for path in mounts.rglob("*") if path.is_file()] == []
        given.append({key: str(place.relative_to(mounts)) for key, place in places.items()})
        assert places["manifest"].is_relative_to(mounts)

    given: list[dict[str, str]] = []
    pods: list[str] = []
    launcher = Launcher(
        spec,
        ROOT,
        tmp_path,
        processes.run,
        parameters={"data": str(tmp_path / "no such list.csv")},
        retries=2,
        before_attempt=look,
        release=release,
    )
    runs = launcher.run({"ManifestGen", "ImageToTFRecord"})
    run = runs["ManifestGen"]
    assert (run.state, run.codes, run.task_codes) == ("FAILED", [1, 1, 1], [3, 3, 3])
    assert runs["ImageToTFRecord"].state == "NOT_TRIGGERED"
    assert pods == [f"run-1-manifestgen-{attempt}" for attempt in range(3)]
    logs = [each.pop(LOGS) for each in given]
    assert given[0] == given[1] == given[2]
    key = f"{TASK_ROOT}/{LOGS}"
    uris = [f"{key}-{attempt}" if release is V2_17 else key for attempt in range(3)]
    assert [f"minio://{log.removeprefix('minio/')}" for log in logs] == uris
    for log in run.logs:
        line = log.splitlines()[-2]
        assert json.loads(line)["error"]["code"] == "environment"
        assert "no such list.csv" in line

    execution = read_execution(launcher, run)
    assert execution.last_known_state == mlmd.Execution.FAILED
    assert "outputs" not in execution.custom_properties
    kept = [(LOGS, uri) for uri in uris] if release is V2_17 else []
    assert list_made(launcher, run) == kept
    assert list_bucket(launcher) == [uri.removeprefix(f"{ROOT}/") for _, uri in kept]
    for (_, uri), log in zip(kept, run.logs, strict=False):
        # The launcher's own line is in the log of the pod alone.
        own = launcher.find_bucket_path(uri).read_text()
        assert log == f"{own}failed to execute component: exit status 3\n"


def test_a_signal_to_a_pod_ends_all_at_once_and_nothing_is_kept(
    spec: dict[str, Any], tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
):
    def run(command: list[str], environment: dict[str, str], log: Path) -> int:
        process = processes.start(command, environment, log)
        connection, _ = server.accept()  # the task reads its source, and waits for the answer
        os.kill(process.pid, signal.SIGTERM)
        codes.append(process.wait())
        connection.close()
        raise PodKilledError

    codes: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(120)
        environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.getsockname()[1]}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }
        launcher = Launcher(spec, ROOT, tmp_path, run, retries=2, environment=environment)
        runs = launcher.run({"ManifestGen", "ImageToTFRecord"})
    assert codes == [143]
    run_of_task = runs["ManifestGen"]
    assert (run_of_task.state, run_of_task.codes, run_of_task.outputs) == ("FAILED", [143], {})
    assert run_of_task.log.endswith("Ended by SIGTERM.\n")
    assert runs["ImageToTFRecord"].state == "NOT_TRIGGERED"
    # The launcher has no handler, so nobody says that the task has ended.
    execution = read_execution(launcher, run_of_task)
    assert execution.last_known_state == mlmd.Execution.RUNNING
    assert execution.custom_properties["pod_name"].string_value == "run-1-manifestgen-0"
    assert list_made(launcher, run_of_task) == []
    assert list_bucket(launcher) == []


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A list of four images."""
    for number in range(4):
        Image.new("RGB", (8, 8), (60 * number, 0, 0)).save(tmp_path / f"{number}.png")
    rows = [f"{'train' if number % 2 else 'eval'},{number}.png,a\n" for number in range(4)]
    (tmp_path / "images.csv").write_text("split,image_uri,label\n" + "".join(rows))
    return tmp_path / "images.csv"


@pytest.mark.parametrize("release", [V2_5, V2_17], ids=lambda release: release.version)
def test_files_swept_from_the_store_are_missed_though_the_cache_knows_them(
    release: Release, spec: dict[str, Any], source: Path, tmp_path: Path, capfd
):
    launcher = Launcher(
        spec,
        ROOT,
        tmp_path,
        run_in_process,
        parameters={"data": str(source)},
        release=release,
    )
    first = launcher.run({"ManifestGen", "ImageToTFRecord"})
    assert {name: each.state for name, each in first.items()} == {
        "ManifestGen": "SUCCEEDED",
        "ImageToTFRecord": "SUCCEEDED",
    }
    manifest = first["ManifestGen"].outputs["manifest"]["uri"]
    for path in launcher.find_bucket_path(manifest).iterdir():
        path.unlink()
    launcher.cache.popitem()  # that of ImageToTFRecord
    second = replace(launcher, run_id="run-2").run({"ManifestGen", "ImageToTFRecord"})
    assert second["ManifestGen"].state == "CACHED"
    assert second["ManifestGen"].outputs["manifest"]["uri"] == manifest
    failed = second["ImageToTFRecord"]
    assert (failed.state, failed.codes, failed.task_codes) == ("FAILED", [1], [3])
    error = json.loads(capfd.readouterr().err.strip().splitlines()[-1])["error"]
    assert error["code"] == "environment"
    assert error["message"] == f"The store no longer has any file of the input {manifest}."
    assert "--set cache=false" in error["hint"]
    [execution] = launcher.store.client.get_executions_by_id([failed.execution])
    assert execution.last_known_state == mlmd.Execution.FAILED
    assert failed.outputs.keys() == ({LOGS} if release is V2_17 else set())


@pytest.mark.parametrize("release", [V2_5, V2_17], ids=lambda release: release.version)
def test_a_task_whose_store_takes_nothing_fails_after_its_work_and_leaves_no_log(
    release: Release, spec: dict[str, Any], source: Path, tmp_path: Path
):
    def run(command: list[str], environment: dict[str, str], log: Path) -> int:
        codes.append(run_in_process(command, environment, log))
        return codes[-1]

    (tmp_path / "buckets").mkdir()
    (tmp_path / "buckets/minio").touch()  # no folder can be made here
    codes: list[int] = []
    launcher = Launcher(
        spec,
        ROOT,
        tmp_path,
        run,
        parameters={"data": str(source)},
        retries=1,
        release=release,
    )
    runs = launcher.run({"ManifestGen", "ImageToTFRecord"})
    assert codes == [0, 0]
    failed = runs["ManifestGen"]
    assert (failed.state, failed.codes, failed.task_codes) == ("FAILED", [1, 1], [0, 0])
    assert "failed to execute component: failed to upload output artifact" in failed.log
    assert runs["ImageToTFRecord"].state == "NOT_TRIGGERED"
    assert read_execution(launcher, failed).last_known_state == mlmd.Execution.FAILED
    assert list_made(launcher, failed) == []
    assert launcher.cache == {}
