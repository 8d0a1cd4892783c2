"""The emulated driver makes what Kubeflow's own driver made of the same pipeline."""

from __future__ import annotations

import copy
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
)
from .driver import make_input as make_driver_input
from .process import format_command
from .recorded import Recorded, RecordedTasks, find_recorded, read_recorded, read_tasks
from .release import RELEASES, V2_5, V2_17, Release

LATER_RELEASES = (V2_5, V2_17)
LATER = {"tfx": 11, "native": 6}  # how many tasks they have
TASKS = [task.name for task in list_tasks(read_recorded(V2_17).spec)]


@pytest.fixture(params=RELEASES, ids=lambda release: release.version)
def release(request: pytest.FixtureRequest) -> Release:
    found: Release = request.param
    return found


@pytest.fixture
def recorded(release: Release) -> Recorded:
    return read_recorded(release)


def make_input(recorded: Recorded, name: str, release: Release) -> dict[str, Any]:
    """Returns what the driver makes of the outputs that the real tasks had."""
    return make_driver_input(
        find_task(recorded.spec, name),
        find_parameters(recorded.spec, {}),
        partial(find_recorded, recorded.artifacts),
        recorded.run["pipeline_root"],
        release,
    )


def test_all_tasks_were_recorded(recorded: Recorded):
    assert len(TASKS) == 11
    assert sorted(recorded.tasks) == sorted(recorded.commands) == sorted(TASKS)
    assert sorted(recorded.executions) == sorted([*TASKS, "root"])


@pytest.mark.parametrize("name", TASKS)
def test_a_task_gets_the_same_input(name: str, recorded: Recorded, release: Release):
    expected = copy.deepcopy(recorded.tasks[name]["input"])
    if release.numbers_logs:  # the launcher's part
        [log] = expected["outputs"]["artifacts"]["executor-logs"]["artifacts"]
        log["uri"] = log["uri"].removesuffix("-0")
    # As text: so the order of the keys is the same, and 1 is not 1.0.
    assert json.dumps(make_input(recorded, name, release)) == json.dumps(expected)


@pytest.mark.parametrize("name", TASKS)
def test_a_task_has_the_same_fingerprint_in_the_cache(
    name: str, recorded: Recorded, release: Release
):
    task = find_task(recorded.spec, name)
    expected = recorded.executions[name]["properties"].get("cache_fingerprint")
    assert (expected is not None) == task.is_cached
    if expected:
        key = make_cache_key(task, make_input(recorded, name, release))
        assert make_fingerprint(key) == expected


def test_only_what_names_its_source_is_cached(recorded: Recorded, release: Release):
    cached = {task.name for task in list_tasks(recorded.spec) if task.is_cached}
    assert cached == {*TASKS} - ({"ManifestGen"} if release is not V2_17 else set())


# Later runs, also of a pipeline without TFX


def make_later_input(later: RecordedTasks, name: str, release: Release) -> dict[str, Any]:
    """Returns what the driver makes of the outputs that the real tasks had."""
    return make_driver_input(
        find_task(later.spec, name),
        find_parameters(later.spec, {}),
        partial(find_recorded, later.artifacts),
        later.run["pipeline_root"],
        release,
    )


def list_later_tasks() -> list[Any]:
    return [
        pytest.param(later, release, name, id=f"{kind}-{release.version}-{name}")
        for kind in LATER
        for release in LATER_RELEASES
        for later in [read_tasks(kind, release)]
        for name in later.tasks
    ]


@pytest.mark.parametrize("release", LATER_RELEASES, ids=lambda release: release.version)
@pytest.mark.parametrize(("kind", "number"), LATER.items())
def test_all_tasks_of_a_later_run_were_recorded(kind: str, number: int, release: Release):
    later = read_tasks(kind, release)
    assert len(later.tasks) == number
    tasks = {task.name: task for task in list_tasks(later.spec)}
    assert later.tasks.keys() == later.fingerprints.keys() == tasks.keys()
    cached = {name for name, fingerprint in later.fingerprints.items() if fingerprint}
    assert cached == {name for name, task in tasks.items() if task.is_cached}
    # The run had no `model_fingerprint`, without which Trainer is never cached.
    assert cached == {*tasks} - {"Pusher", "Trainer"}


@pytest.mark.parametrize(("later", "release", "name"), list_later_tasks())
def test_a_task_of_a_later_run_gets_the_same_input(
    later: RecordedTasks, release: Release, name: str
):
    given = make_later_input(later, name, release)
    expected = later.tasks[name]
    assert json.dumps(given["inputs"].get("parameterValues", {})) == json.dumps(
        expected["parameters"]
    )
    task = find_task(later.spec, name)
    assert task.command == expected["command"]
    for key, each in given["outputs"]["artifacts"].items():
        if key == LOGS:
            each["artifacts"][0]["uri"] = release.name_log(each["artifacts"][0]["uri"], 0)
    [text] = [each for each in format_command(task, given) if each.startswith('{"inputs"')]
    assert json.loads(text) == expected["input"]


@pytest.mark.parametrize(("later", "release", "name"), list_later_tasks())
def test_a_task_of_a_later_run_has_the_same_fingerprint_in_the_cache(
    later: RecordedTasks, release: Release, name: str
):
    if expected := later.fingerprints[name]:
        key = make_cache_key(find_task(later.spec, name), make_later_input(later, name, release))
        assert make_fingerprint(key) == expected


@pytest.mark.parametrize(("later", "release", "name"), list_later_tasks())
def test_metadata_of_a_later_run_come_back_as_they_did(
    later: RecordedTasks, release: Release, name: str
):
    for key, each in later.tasks[name]["output"].get("artifacts", {}).items():
        known = {"display_name": key, "store_session_info": later.run["store_session_info"]}
        [made] = each["artifacts"]
        found = later.artifacts[f"{name}.{key}"]
        assert as_recorded({**known, **made["metadata"]}) == as_protojson(found["properties"])
        assert made["uri"] == found["uri"]
