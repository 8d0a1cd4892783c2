"""The emulated driver makes what Kubeflow's own driver made of the same pipeline."""

from __future__ import annotations

import copy
import json
from functools import partial
from typing import Any

import pytest

from .driver import find_parameters, find_task, list_tasks, make_cache_key, make_fingerprint
from .driver import make_input as make_driver_input
from .recorded import Recorded, find_recorded, read_native, read_recorded
from .release import RELEASES, V2_17, Release

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


@pytest.mark.parametrize("name", ["convert-images", "verify-dataset"])
def test_a_component_without_tfx_gets_the_same_input(name: str):
    native = read_native()
    task = find_task(native.spec, name)
    given = make_driver_input(
        task,
        find_parameters(native.spec, native.parameters),
        partial(find_recorded, native.artifacts),
        "minio://mlpipeline/native/photos/run-1",
        V2_17,
    )
    assert json.dumps(given) == json.dumps(native.tasks[name]["input"])
    assert task.command == native.tasks[name]["command"]
