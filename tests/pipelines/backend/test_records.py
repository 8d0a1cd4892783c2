"""A run in the emulator hands over, downloads and records what a run of Kubeflow's own did.

No task works here: each "task" leaves the ExecutorOutput that was recorded, and files of the names
that later tasks downloaded.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd

from ..launcher import Launcher
from .driver import as_recorded
from .metadata import read_properties
from .recorded import PIPELINE_ROOT, Recorded, read_recorded
from .release import RELEASES, V2_5, V2_15, V2_17, Release

pytestmark = pytest.mark.tfx

LOG = "what the task printed\n"


class Replay:
    """The processes of tasks, which do what the recorded ones did.

    Attributes:
        given: The command of each task by name, as its process gets it.
        files: The files of inputs that each one finds, below the root of the run.
    """

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded
        self.given: dict[str, list[str]] = {}
        self.files: dict[str, list[str]] = {}
        self._all_files = {each for task in recorded.tasks.values() for each in task["files"]}

    def run(self, command: list[str], environment: dict[str, str], log: Path) -> int:
        """Does what a task did."""
        log.write_text(LOG)
        [text] = [each for each in command if each.startswith('{"inputs"')]
        [name] = [
            name
            for name, expected in self.recorded.commands.items()
            if [each if each != text else "{{$}}" for each in command] == expected
        ]
        mounts = environment["DARKROOM_MOUNTS"]
        self.given[name] = [each.replace(f'"{mounts}/', '"/') for each in command]
        root = Path(mounts + self.recorded.run["pipeline_root"].replace("minio://", "/minio/"))
        files = [path for path in root.rglob("*") if path.is_file() and path != log]
        self.files[name] = sorted(str(path.relative_to(root)) for path in files)
        for file in self._all_files:
            if file.startswith(f"{name}/"):
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_text(file)
        output = json.loads(text)["outputs"]["outputFile"]
        Path(output).write_text(json.dumps(self.recorded.tasks[name]["output"]))
        return 0


@pytest.fixture(scope="module", params=RELEASES, ids=lambda release: release.version)
def release(request: pytest.FixtureRequest) -> Release:
    found: Release = request.param
    return found


@pytest.fixture(scope="module")
def recorded(release: Release) -> Recorded:
    return read_recorded(release)


@pytest.fixture(scope="module")
def replay(recorded: Recorded) -> Replay:
    return Replay(recorded)


@pytest.fixture(scope="module")
def launcher(
    release: Release,
    recorded: Recorded,
    replay: Replay,
    tmp_path_factory: pytest.TempPathFactory,
) -> Launcher:
    folder = tmp_path_factory.mktemp("cluster")
    launcher = Launcher(recorded.spec, PIPELINE_ROOT, folder, replay.run, release=release)
    launcher.run()
    return launcher


def rename_ids(text: str, launcher: Launcher, recorded: Recorded) -> str:
    """Gives artifacts the ids that they were recorded with; ids depend on chance."""
    given = json.loads(text)
    real = {each["uri"]: each["id"] for each in recorded.artifacts.values()}
    for each in given["inputs"].get("artifacts", {}).values():
        [artifact] = each["artifacts"]
        [known] = launcher.store.client.get_artifacts_by_uri(artifact["uri"])
        assert artifact["name"] == str(known.id)
        artifact["name"] = real[artifact["uri"]]
    return json.dumps(given)


def test_the_process_of_a_task_gets_the_same_command(
    launcher: Launcher, replay: Replay, recorded: Recorded
):
    assert {name: run.state for name, run in launcher.runs.items()} == dict.fromkeys(
        recorded.tasks, "SUCCEEDED"
    )
    for name, expected in recorded.commands.items():
        command = [
            rename_ids(each, launcher, recorded) if each.startswith('{"inputs"') else each
            for each in replay.given[name]
        ]
        text = json.dumps(recorded.tasks[name]["input"])
        assert command == [each if each != "{{$}}" else text for each in expected]


def test_the_same_files_are_downloaded(launcher: Launcher, replay: Replay, recorded: Recorded):
    assert launcher.runs.keys() == replay.files.keys()
    expected = {name: task["files"] for name, task in recorded.tasks.items()}
    assert replay.files == expected
    assert sum(map(len, expected.values())) > 50


def test_before_2_17_an_input_brings_its_siblings():
    found = {}
    for release in RELEASES:
        files = read_recorded(release).tasks["Evaluator"]["files"]
        found[release] = sum(each.startswith("Trainer/5a17/model_run/") for each in files)
    assert found == {V2_5: 10, V2_15: 10, V2_17: 0}


def test_the_metadata_of_the_run_are_the_same(launcher: Launcher, recorded: Recorded):
    run = launcher.store.client.get_context_by_type_and_name("system.PipelineRun", "run-1")
    assert read_properties(run) == recorded.run
    [pipeline] = launcher.store.client.get_parent_contexts_by_context(run.id)
    assert (pipeline.name, pipeline.type) == ("darkroom", "system.Pipeline")
    assert len(launcher.store.client.get_executions_by_context(run.id)) == 12
    made = launcher.store.client.get_artifacts_by_context(run.id)
    assert len(made) == len(recorded.artifacts)


def test_the_executions_of_the_tasks_are_the_same(launcher: Launcher, recorded: Recorded):
    client = launcher.store.client
    executions = {launcher.dag: "root"}
    executions |= {run.execution: name for name, run in launcher.runs.items()}
    keys = {artifact: name for name, artifact in _list_artifacts(launcher).items()}
    found = {}
    for execution in client.get_executions_by_id([*executions]):
        events = client.get_events_by_execution_ids([execution.id])
        read = [event for event in events if event.type == mlmd.Event.INPUT]
        found[executions[execution.id]] = {
            "type": execution.type,
            "name": execution.name,
            "state": mlmd.Execution.State.Name(execution.last_known_state),
            "properties": read_properties(execution),
            "inputs": {event.path.steps[0].key: keys[event.artifact_id] for event in read},
        }
    for name in launcher.runs:
        properties = found[name]["properties"]
        assert properties.pop("pod_name") == f"run-1-{name.lower()}-0"
        assert properties.pop("pod_uid")
        given = recorded.tasks[name]["input"]["inputs"].get("parameterValues", {})
        assert properties.pop("inputs") == given
        assert properties["parent_dag_id"] == launcher.dag
        properties["parent_dag_id"] = "root"
    expected = copy.deepcopy(recorded.executions)
    for name in launcher.runs:
        # It is of the inputs' ids, so test_driver.py alone can compare it.
        here = found[name]["properties"].pop("cache_fingerprint", "")
        assert len(here) == len(expected[name]["properties"].pop("cache_fingerprint", ""))
    assert found == expected
    assert found["root"]["properties"]["inputs"]["learning_rate"] == 0.001


def _list_artifacts(launcher: Launcher) -> dict[str, int]:
    """Returns the ids of all artifacts by TASK.KEY."""
    return {
        f"{name}.{key}": artifact
        for name, run in launcher.runs.items()
        for key, artifact in launcher.store.find_outputs(run.execution).items()
    }


def test_the_artifacts_are_the_same(launcher: Launcher, recorded: Recorded):
    found: dict[str, Any] = {}
    for name, artifact_id in _list_artifacts(launcher).items():
        [artifact] = launcher.store.client.get_artifacts_by_id([artifact_id])
        found[name] = {
            "id": recorded.artifacts[name]["id"],
            "type": artifact.type,
            "state": mlmd.Artifact.State.Name(artifact.state),
            "uri": artifact.uri,
            "properties": read_properties(artifact),
        }
    assert found == recorded.artifacts
    kinds = launcher.store.client.get_artifact_types()
    assert all(not kind.properties for kind in kinds)
    assert {"darkroom.ImageManifest", "tfx.Examples", "system.HTML"} <= {e.name for e in kinds}


def test_numbers_come_back_with_six_digits_after_the_point(launcher: Launcher):
    metadata = {
        "accuracy": 0.3499999940395355,
        "all": {"rate": 1e-7, "rows": 2.0},
        "last": [1e-7, 3],
        "passed": True,
        "rate": 1e-7,
        "rows": 400,
    }
    kind = {"schemaTitle": "system.Metrics"}
    artifact = {"uri": "minio://mlpipeline/x", "type": kind, "metadata": metadata}
    made = launcher.store.record_artifact("metrics", artifact, "{}")
    given_back = {
        "accuracy": 0.35,
        "all": {"struct": {"rate": 1e-7, "rows": 2}},
        "display_name": "metrics",
        "last": {"list": [1e-7, 3]},
        "passed": 1,
        "rate": 0,
        "rows": 400,
        "store_session_info": "{}",
    }
    found = launcher.store.read_artifact(made)["metadata"]
    assert json.dumps(found) == json.dumps(given_back)
    defaults = {"display_name": "metrics", "store_session_info": "{}"}
    assert as_recorded({**defaults, **metadata}) == found  # what tests/kfp has in its place


def test_the_same_run_again_takes_what_it_can_from_the_cache(
    launcher: Launcher, recorded: Recorded, release: Release, tmp_path: Path
):
    again = Launcher(
        recorded.spec,
        PIPELINE_ROOT,
        tmp_path,
        Replay(recorded).run,
        release=release,
        store=launcher.store,
        cache=launcher.cache,
        run_id="run-2",
    )
    states = {name: each.state for name, each in again.run().items()}
    if release is not V2_17:
        # There ManifestGen has no fingerprint and makes a new manifest, so all others run, too.
        assert states == dict.fromkeys(recorded.tasks, "SUCCEEDED")
        return
    assert states == dict.fromkeys(recorded.tasks, "CACHED")
    for name, each in again.runs.items():
        first = launcher.runs[name]
        assert (each.codes, each.outputs.keys()) == ([], first.outputs.keys())
        [execution] = again.store.client.get_executions_by_id([each.execution])
        assert execution.last_known_state == mlmd.Execution.CACHED
        properties = read_properties(execution)
        assert properties["cached_execution_id"] == str(first.execution)
        assert (properties["pod_name"], properties["namespace"]) == ("", "")  # there was no pod
        assert again.store.find_outputs(each.execution) == again.store.find_outputs(first.execution)
