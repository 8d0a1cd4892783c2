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
from .recorded import Recorded, RecordedNative, find_recorded, read_native, read_recorded
from .release import RELEASES, V2_5, V2_17, Release

NATIVE_RELEASES = (V2_5, V2_17)
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


# Components without TFX


def make_native_input(native: RecordedNative, name: str, release: Release) -> dict[str, Any]:
    """Returns what the driver makes of the outputs that the real tasks had."""
    return make_driver_input(
        find_task(native.spec, name),
        find_parameters(native.spec, {}),
        partial(find_recorded, native.artifacts),
        native.run["pipeline_root"],
        release,
    )


def list_native_tasks() -> list[Any]:
    return [
        pytest.param(release, name, id=f"{release.version}-{name}")
        for release in NATIVE_RELEASES
        for name in read_native(release).tasks
    ]


@pytest.mark.parametrize("release", NATIVE_RELEASES, ids=lambda release: release.version)
def test_all_tasks_without_tfx_were_recorded(release: Release):
    native = read_native(release)
    assert len(native.tasks) == 6
    assert native.tasks.keys() == native.fingerprints.keys()
    assert native.tasks.keys() == {task.name for task in list_tasks(native.spec)}


@pytest.mark.parametrize(("release", "name"), list_native_tasks())
def test_a_task_without_tfx_gets_the_same_input(release: Release, name: str):
    native = read_native(release)
    given = make_native_input(native, name, release)
    expected = native.tasks[name]
    assert json.dumps(given["inputs"].get("parameterValues", {})) == json.dumps(
        expected["parameters"]
    )
    task = find_task(native.spec, name)
    assert task.command == expected["command"]
    for key, each in given["outputs"]["artifacts"].items():
        if key == LOGS:
            each["artifacts"][0]["uri"] = release.name_log(each["artifacts"][0]["uri"], 0)
    [text] = [each for each in format_command(task, given) if each.startswith('{"inputs"')]
    assert json.loads(text) == expected["input"]


@pytest.mark.parametrize(("release", "name"), list_native_tasks())
def test_a_task_without_tfx_has_the_same_fingerprint_in_the_cache(release: Release, name: str):
    native = read_native(release)
    key = make_cache_key(find_task(native.spec, name), make_native_input(native, name, release))
    assert make_fingerprint(key) == native.fingerprints[name]


@pytest.mark.parametrize(("release", "name"), list_native_tasks())
def test_metadata_without_tfx_are_recorded_as_they_were(release: Release, name: str):
    native = read_native(release)
    for key, each in native.tasks[name]["output"]["artifacts"].items():
        known = {"display_name": key, "store_session_info": native.run["store_session_info"]}
        [made] = each["artifacts"]
        found = native.artifacts[f"{name}.{key}"]
        assert as_recorded({**known, **made["metadata"]}) == as_protojson(found["properties"])
        assert made["uri"] == found["uri"]
