"""What old runs left: what is needed, what may be deleted, and whose it is."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from darkroom.cli import commands
from darkroom.errors import StorageError, UsageError
from darkroom.pipelines.submission import old_artifacts
from darkroom.pipelines.submission.old_artifacts import (
    count_back,
    find_old_artifacts,
    remove_old_artifacts,
)

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
BEFORE = count_back(30, NOW)
ROOT = "minio://mlpipeline/root"


class Store:
    """A root as Kubeflow's launcher fills it: ROOT/NAME/RUN/TASK/ID/{executor-logs-0,ARTIFACT}."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, ROOT

    def add(
        self, run: str, task: str, artifact: str, day: str = "", inputs: tuple[str, ...] = ()
    ) -> str:
        """Writes what a task leaves; returns the URI of its artifact."""
        folder = Path(self.folder, "photos", run, task, "5a17")
        (folder / artifact).mkdir(parents=True)
        (folder / artifact / "part").write_bytes(b"x" * 100)
        said = {"started": f"{day}T04:30:00+00:00", "inputs": inputs}
        lines = ["TensorFlow is here", json.dumps({"darkroom_task": said}) if day else "no", "more"]
        (folder / "executor-logs-0").write_text("\n".join(lines))
        return f"{ROOT}/photos/{run}/{task}/5a17/{artifact}"

    def list(self) -> list[str]:
        """The folders RUN/TASK that have files."""
        found = {path.relative_to(self.folder).parts[1:3] for path in self.folder.rglob("part")}
        return sorted("/".join(parts) for parts in found)


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is behind minio://mlpipeline and s3://mlpipeline."""

    def find_folder(uri: str) -> str:
        return f"{tmp_path}/{uri.partition('://mlpipeline/')[2]}"

    monkeypatch.setattr(old_artifacts, "find_remote", find_folder)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:9000")
    return tmp_path


@pytest.fixture
def store(bucket: Path) -> Store:
    """Three old runs and a young one, which took all but its Trainer from the cache of `b`."""
    store = Store(bucket / "root")
    for run, day in (("a", "2025-11-01"), ("b", "2025-12-01"), ("c", "2026-01-01")):
        manifest = store.add(run, "ManifestGen", "manifest", day)
        examples = store.add(run, "ImageToTFRecord", "examples", day, (manifest,))
        store.add(run, "ImageStatisticsGen", "statistics", day, (examples,))
        model = store.add(run, "Trainer", "model", day, (examples,))
        if run == "a":
            store.add(run, "Pusher", "pushed_model", day, (model,))
    examples = f"{store.root}/photos/b/ImageToTFRecord/5a17/examples"
    store.add("d", "Trainer", "model", "2026-02-20", (examples,))
    return store


def _name(folders) -> list[str]:
    return sorted(f"{each.run}/{each.task}" for each in folders)


def test_what_a_young_run_and_the_newest_model_were_made_of_is_kept(store):
    found = find_old_artifacts(store.root, "photos", BEFORE)
    assert _name(found.kept) == [
        "a/ImageStatisticsGen",  # of the run with the newest pushed model, which is kept whole
        "a/ImageToTFRecord",
        "a/ManifestGen",
        "a/Pusher",
        "a/Trainer",
        "b/ImageToTFRecord",  # what the young run took from the cache
        "b/ManifestGen",
        "d/Trainer",
    ]
    assert _name(found.removable) == [
        "b/ImageStatisticsGen",
        "b/Trainer",
        "c/ImageStatisticsGen",
        "c/ImageToTFRecord",
        "c/ManifestGen",
        "c/Trainer",
    ]
    assert found.unknown == ()
    assert all(each.size_bytes > 100 for each in found.removable)


def test_the_newest_model_of_each_task_is_kept_whatever_the_task_is_called(store):
    north = store.add("a", "PushNorth", "pushed_model", "2025-10-01")
    store.add("e", "PushSouth", "pushed_model", "2025-10-02", (north,))
    store.add("f", "PushSouth", "pushed_model", "2025-10-01")
    store.add("g", "train-classifier", "trained_model", "2025-10-02")
    store.add("h", "train-classifier", "trained_model", "2025-10-01")
    store.add("i", "train-classifier", "card", "2025-10-03")  # stopped before it had a model
    found = find_old_artifacts(store.root, "photos", BEFORE)
    assert {"a/PushNorth", "e/PushSouth", "g/train-classifier"} <= set(_name(found.kept))
    removable = {"f/PushSouth", "h/train-classifier", "i/train-classifier"}
    assert removable <= set(_name(found.removable))


def test_the_artifact_is_kept_of_which_a_young_run_read_a_file(store):
    found = store.add("e", "find-duplicates", "duplicates", "2025-10-01")
    store.add("f", "convert-images", "dataset", "2026-02-20", (f"{found}/of/one/part",))
    assert "e/find-duplicates" in _name(find_old_artifacts(store.root, "photos", BEFORE).kept)


def test_a_run_to_keep_is_kept_with_all_that_it_read(store):
    found = find_old_artifacts(store.root, "photos", BEFORE, ["c"])
    assert {each.run for each in found.removable} == {"b"}


def test_a_run_to_keep_that_does_not_exist_is_an_error_before_anything_is_deleted(store, capsys):
    before = store.list()
    command = ["artifacts", store.root, "--name", "photos", "--remove", "--keep-run"]
    for given in ("olde", "", "photos/c"):
        assert commands.main([*command, "c", "--keep-run", given]) == 2
        said = capsys.readouterr().err
        assert f"--keep-run is {given!r}, which is not a run of the pipeline photos" in said
        assert "whole id, as at the end of the URL of the run's page: d, c, b, a." in said
        assert store.list() == before


def test_the_start_of_an_id_names_no_run_and_a_few_are_listed(store):
    for number in range(9):
        store.add(f"e{number}", "Trainer", "model", f"2026-02-2{number}")
    with pytest.raises(UsageError, match="--keep-run is 'e', which is not a run") as error:
        find_old_artifacts(store.root, "photos", BEFORE, ["e1", "e"])
    assert error.value.hint.endswith("page: e8, e7, e6, e5, e4 and 8 more.")


def test_a_run_whose_logs_say_nothing_can_be_named(store):
    store.add("e", "Trainer", "model")
    found = find_old_artifacts(store.root, "photos", BEFORE, ["e"])
    assert _name(found.unknown) == ["e/Trainer"]


def test_only_what_may_be_deleted_is_deleted(store):
    found = find_old_artifacts(store.root, "photos", BEFORE)
    before = store.list()
    done = remove_old_artifacts(found)
    assert done.is_removed
    assert store.list() == _name(found.kept) == sorted(set(before) - set(_name(found.removable)))
    again = find_old_artifacts(store.root, "photos", BEFORE)
    assert (again.removable, _name(again.kept)) == ((), _name(found.kept))


def test_what_no_task_of_darkroom_wrote_is_left_alone(store):
    store.add("e", "Trainer", "model")  # of somebody else, or of an older version
    store.add("f", "Trainer", "model")
    forged = store.folder / "photos" / "f" / "Trainer" / "5a17" / "executor-logs-0"
    forged.write_text(
        '{"darkroom_task": {"started": "yesterday"}}\n{"darkroom_task": 3}\n'
        '{"darkroom_task": {"started": "2026-01-01T04:30:00", "inputs": []}}\n'  # no time zone
        '{"darkroom_task": {"started": "2026-01-01T04:30:00+00:00", "inputs": 3}}\n'
        '{"darkroom_task": {"started": "2026-01-01T04:30:00+00:00", "inputs": [3]}}\n'
    )
    other = Path(store.folder, "other", "run", "Trainer", "5a17", "model", "part")
    other.parent.mkdir(parents=True)
    other.write_bytes(b"x")
    found = remove_old_artifacts(find_old_artifacts(store.root, "photos", BEFORE))
    assert _name(found.unknown) == ["e/Trainer", "f/Trainer"]
    assert {"e/Trainer", "f/Trainer"} <= set(store.list())
    assert other.exists()


def test_the_command_lists_first_and_deletes_when_told(store, capsys):
    command = ["artifacts", store.root, "--name", "photos", "--keep-days", "100000"]
    assert commands.main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removable"] == []
    # All runs are older than a day, so the newest models alone are kept, and what they read.
    command[-1] = "1"
    assert commands.main(command) == 0
    printed = capsys.readouterr().out
    assert "folders of tasks" in printed
    assert "can be deleted with --remove" in printed
    assert "c/Trainer" in "".join(store.list())
    assert commands.main([*command, "--remove", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["removed"]
    assert told["removable_bytes"] > 600
    assert store.list() == [
        "a/ImageStatisticsGen",
        "a/ImageToTFRecord",
        "a/ManifestGen",
        "a/Pusher",
        "a/Trainer",
        "b/ImageToTFRecord",
        "b/ManifestGen",
        "d/Trainer",
    ]


def test_a_root_that_is_spelled_in_another_way_than_by_the_tasks_keeps_the_same(store):
    found = find_old_artifacts(ROOT, "photos", BEFORE)
    again = find_old_artifacts(ROOT.replace("minio://", "s3://"), "photos", BEFORE)
    assert _name(again.kept) == _name(found.kept)
    assert _name(again.removable) == _name(found.removable)


def test_kubeflows_store_needs_its_address(monkeypatch, capsys):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(old_artifacts.storage, "list_everything", lambda _: pytest.fail("asked"))
    assert commands.main(["artifacts", ROOT]) == 3
    said = capsys.readouterr().err
    assert f"{ROOT} is in Kubeflow's own store, whose address is not known here." in said
    assert "Set AWS_ENDPOINT_URL to the address of that store as seen from this machine" in said


@pytest.mark.parametrize(
    "root", ["runs/first", "/mnt/bucket/root", "https://host/root", "", "hdfs://a"]
)
def test_a_root_is_in_a_store(root, capsys):
    assert commands.main(["artifacts", root]) == 2
    said = capsys.readouterr().err
    assert f"ROOT is {root!r}, expected a folder in minio://, s3:// or gs://." in said
    assert "as minio://mlpipeline/v2/artifacts" in said


def test_a_wrong_root_or_time_is_an_error(bucket, capsys):
    with pytest.raises(StorageError, match="There is no artifact of a pipeline photos"):
        find_old_artifacts(ROOT, "photos", BEFORE)
    with pytest.raises(UsageError, match="--keep-days is 0"):
        count_back(0, NOW)
    for days in ("0", "9999999", "99999999999"):
        assert commands.main(["artifacts", ROOT, "--keep-days", days]) == 2
        assert f"--keep-days is {days}, expected a whole number from 1" in capsys.readouterr().err
