"""Tasks whose inputs are gone from the store, as after a rule of the bucket deleted old files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from darkroom.pipelines.config import PipelineConfig

from ..backend.driver import LOGS
from ..backend.release import V2_5, V2_15, V2_17, Release
from ..launcher import Launcher, compile_spec, run_in_process
from .test_launcher import ROOTS, TASKS

pytestmark = pytest.mark.tfx

# ManifestGen alone reads no artifact.
READERS = TASKS[1:]


@pytest.fixture(scope="module")
def spec() -> dict[str, Any]:
    return compile_spec(
        PipelineConfig(data="gs://photos/images.csv", root=ROOTS[0], image="example.com/darkroom:1")
    )


def make_launcher(
    spec: dict[str, Any], root: str, folder: Path, release: Release = V2_17
) -> Launcher:
    """Returns a launcher that knows what all tasks made, as the metadata store does."""
    launcher = Launcher(spec, root, folder, run_in_process, release=release)
    for name in launcher.list_tasks():
        component = spec["components"][spec["root"]["dag"]["tasks"][name]["componentRef"]["name"]]
        made = component.get("outputDefinitions", {}).get("artifacts", {})
        outputs = {
            key: {
                "uri": f"{root}/old/{name}/{key}",
                "type": each["artifactType"],
                "metadata": {"blessed": 1.0},
            }
            for key, each in made.items()
        }
        launcher.add_run(name, outputs)
    return launcher


def list_inputs(launcher: Launcher, task: str) -> list[str]:
    found = launcher.spec["root"]["dag"]["tasks"][task]["inputs"].get("artifacts", {}).values()
    sources = [each["taskOutputArtifact"] for each in found]
    return [
        launcher.runs[each["producerTask"]].outputs[each["outputArtifactKey"]]["uri"]
        for each in sources
    ]


def read_error(capfd: pytest.CaptureFixture[str]) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(capfd.readouterr().err.strip().splitlines()[-1])["error"]
    return error


def check_stopped(launcher: Launcher, task: str, missing: list[str], capfd: Any) -> None:
    known = launcher.runs[task]
    run = launcher.run({task})[task]
    launcher.runs[task] = known
    assert (run.state, run.codes, run.task_codes) == ("FAILED", [1], [3])
    assert list(run.outputs) == ([LOGS] if launcher.release.keeps_failed_log else [])
    error = read_error(capfd)
    assert (error["code"], error["exit_code"]) == ("environment", 3)
    listed = ", ".join(missing)
    assert error["message"] == f"The store no longer has any file of the input {listed}."
    assert "Run again with caching off (--set cache=false)" in error["hint"]


def test_the_list_of_tasks_that_read_an_artifact_is_complete(spec: dict[str, Any], tmp_path: Path):
    launcher = make_launcher(spec, ROOTS[0], tmp_path)
    assert sorted(TASKS) == sorted(launcher.list_tasks())
    assert [task for task in TASKS if list_inputs(launcher, task)] == READERS


@pytest.mark.parametrize(
    ("task", "root"),
    [*((task, ROOTS[0]) for task in READERS), *(("Evaluator", root) for root in ROOTS[1:])],
)
def test_a_task_without_the_files_of_its_inputs_stops_and_names_them(
    task: str, root: str, spec: dict[str, Any], tmp_path: Path, capfd
):
    launcher = make_launcher(spec, root, tmp_path)
    check_stopped(launcher, task, sorted(list_inputs(launcher, task)), capfd)


@pytest.mark.parametrize("task", [task for task in READERS if task != "ValidationGate"])
def test_one_input_without_files_is_enough(task: str, spec: dict[str, Any], tmp_path: Path, capfd):
    for missing in list_inputs(make_launcher(spec, ROOTS[0], tmp_path), task):
        launcher = make_launcher(spec, ROOTS[0], tmp_path / missing.replace("/", "-"))
        uris = list_inputs(launcher, task)
        for uri in set(uris) - {missing}:
            place = launcher.find_bucket_path(uri)
            place.mkdir(parents=True, exist_ok=True)
            (place / "file").write_text("of the input")
        check_stopped(launcher, task, [missing], capfd)


@pytest.mark.parametrize("task", ["Evaluator", "Pusher"])
@pytest.mark.parametrize("release", [V2_5, V2_15], ids=lambda release: release.version)
def test_the_files_of_a_sibling_are_not_those_of_the_input(
    task: str, release: Release, spec: dict[str, Any], tmp_path: Path, capfd
):
    launcher = make_launcher(spec, ROOTS[0], tmp_path, release)
    uris = sorted(list_inputs(launcher, task))
    for uri in uris:
        place = launcher.find_bucket_path(f"{uri}_of_another")
        place.mkdir(parents=True)
        (place / "file").write_text("of another output")  # it is downloaded, too
    check_stopped(launcher, task, uris, capfd)


def test_empty_folders_of_a_mounted_bucket_are_not_files(
    spec: dict[str, Any], tmp_path: Path, capfd
):
    # Tasks read this root directly, as they read gs:// on Vertex.
    launcher = make_launcher(spec, str(tmp_path / "bucket"), tmp_path)
    [model, blessing] = list_inputs(launcher, "Pusher")
    Path(model, "Format-Serving/variables").mkdir(parents=True)
    Path(blessing).mkdir(parents=True)
    Path(blessing, "BLESSED").touch()  # an empty file is one
    check_stopped(launcher, "Pusher", [model], capfd)
