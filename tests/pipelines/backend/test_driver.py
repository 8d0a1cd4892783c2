"""The emulated driver makes what Kubeflow's own driver made of the same pipeline."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from .driver import (
    LOGS,
    as_protojson,
    as_recorded,
    find_parameters,
    find_task,
    list_tasks,
    make_cache_key,
    make_fingerprint,
    make_input,
)
from .process import format_command
from .recorded import RecordedTasks, find_recorded, read_tasks
from .release import V2_5, V2_17, Release

RUNS = [(kind, release) for kind in ("tfx", "native") for release in (V2_5, V2_17)]


@pytest.fixture(params=RUNS, ids=lambda run: f"{run[0]}-{run[1].version}")
def run(request: pytest.FixtureRequest) -> tuple[RecordedTasks, Release]:
    kind, release = request.param
    return read_tasks(kind, release), release


def make_inputs(run: tuple[RecordedTasks, Release]) -> dict[str, dict[str, Any]]:
    """Returns what the driver makes of the outputs that the real tasks had, by task."""
    recorded, release = run
    return {
        name: make_input(
            find_task(recorded.spec, name),
            find_parameters(recorded.spec, {}),
            partial(find_recorded, recorded.artifacts),
            recorded.run["pipeline_root"],
            release,
        )
        for name in recorded.tasks
    }


def test_all_tasks_were_recorded(run):
    recorded, _ = run
    tasks = {task.name: task for task in list_tasks(recorded.spec)}
    assert recorded.tasks.keys() == recorded.fingerprints.keys() == tasks.keys()
    assert len(tasks) in (11, 6)
    cached = {name for name, fingerprint in recorded.fingerprints.items() if fingerprint}
    assert cached == {name for name, task in tasks.items() if task.is_cached}


def test_tasks_get_the_same_input(run):
    recorded, release = run
    for name, given in make_inputs(run).items():
        expected = recorded.tasks[name]
        # As text: so the order of the keys is the same, and 1 is not 1.0.
        parameters = json.dumps(given["inputs"].get("parameterValues", {}))
        assert parameters == json.dumps(expected["parameters"])
        task = find_task(recorded.spec, name)
        assert task.command == expected["command"]
        [log] = given["outputs"]["artifacts"][LOGS]["artifacts"]
        log["uri"] = release.name_log(log["uri"])
        [text] = [each for each in format_command(task, given) if each.startswith('{"inputs"')]
        assert json.loads(text) == expected["input"]


def test_tasks_have_the_same_fingerprints_in_the_cache(run):
    recorded, _ = run
    for name, given in make_inputs(run).items():
        if expected := recorded.fingerprints[name]:
            key = make_cache_key(find_task(recorded.spec, name), given)
            assert make_fingerprint(key) == expected


def test_metadata_come_back_as_they_did(run):
    recorded, _ = run
    for name, task in recorded.tasks.items():
        for key, each in task["output"].get("artifacts", {}).items():
            session = recorded.run["store_session_info"]
            [made] = each["artifacts"]
            found = recorded.artifacts[f"{name}.{key}"]
            given = {"display_name": key, "store_session_info": session, **made["metadata"]}
            assert as_recorded(given) == as_protojson(found["properties"])
            assert made["uri"] == found["uri"]
