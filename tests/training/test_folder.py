"""The folder of a training: nothing in it is replaced or deleted that darkroom did not write."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from darkroom.cli.commands import main
from darkroom.errors import OutputError
from darkroom.storage import ledger
from darkroom.training.folder import claim_folder, delete_model

NAMES = ("training.json", "history.json", "input.json", "input.md")
FOLDERS = ("checkpoints", "best", "tensorboard", "model")
QUICK = ["--image-size", "8x8", "--batch-size", "8", "--augment", "none"]
QUICK += ["--model", "own_models:tiny"]


def _write(folder: Path, *names: str) -> dict[str, bytes]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"mine")
    return _read(folder)


def _read(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("name", [*NAMES, *(f"{each}/mine" for each in FOLDERS)])
def test_a_file_of_the_user_under_a_name_of_a_training_stops_it(tmp_path: Path, name: str):
    before = _write(tmp_path, name)
    with pytest.raises(OutputError, match="did not write") as stop:
        claim_folder(str(tmp_path))
    assert "Choose another --checkpoint-dir" in stop.value.hint
    assert _read(tmp_path) == before


def test_other_files_of_the_user_stop_it(tmp_path: Path):
    before = _write(tmp_path, "thesis.txt")
    with pytest.raises(OutputError, match=r"has other data: thesis\.txt"):
        claim_folder(str(tmp_path))
    assert _read(tmp_path) == before


@pytest.mark.parametrize("name", FOLDERS)
def test_a_link_to_a_folder_of_the_user_stops_it(tmp_path: Path, name: str):
    before = _write(tmp_path / "mine", "saved_model.pb")
    (tmp_path / "run").mkdir()
    claim_folder(str(tmp_path / "run"))
    (tmp_path / "run" / name).symlink_to(tmp_path / "mine")
    with pytest.raises(OutputError, match=f"did not write.*: {name}"):
        claim_folder(str(tmp_path / "run"))
    assert _read(tmp_path / "mine") == before


def test_a_folder_that_was_used_may_have_notes(tmp_path: Path):
    folder = tmp_path / "run"
    claim_folder(str(folder))
    before = _write(folder, "notes.txt", "model/saved_model.pb", "history.json")
    claim_folder(str(folder))
    assert _read(folder) == before


def test_the_folder_of_a_report_is_not_that_of_a_training(tmp_path: Path):
    ledger.write_files(str(tmp_path), {"report.html": b"1"})
    before = _read(tmp_path)
    with pytest.raises(OutputError, match=r"has other data: report\.html"):
        claim_folder(str(tmp_path))
    assert _read(tmp_path) == before


@pytest.mark.parametrize("existing", ["", ".DS_Store", "lost+found/"])
def test_an_empty_folder_is_used(tmp_path: Path, existing: str):
    if existing.endswith("/"):
        (tmp_path / existing).mkdir()
    elif existing:
        _write(tmp_path, existing)
    claim_folder(str(tmp_path))
    assert ledger.is_listed(str(tmp_path), "model/")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("training.json", {"plan": {}, "result": {}}),
        ("history.json", [{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 0.4}]),
    ],
)
def test_a_training_of_an_earlier_version_is_known(tmp_path: Path, name: str, value: object):
    _write(tmp_path, "checkpoints/ckpt-1.index", "model/saved_model.pb", "notes.txt")
    (tmp_path / name).write_text(json.dumps(value))
    claim_folder(str(tmp_path))
    assert ledger.is_listed(str(tmp_path), "model/")


@pytest.mark.parametrize("value", [[], {}, [1], [{"epoch": 2}], [{"loss": 1}], "x"])
def test_another_history_is_not_a_training(tmp_path: Path, value: object):
    (tmp_path / "history.json").write_text(json.dumps(value))
    before = _read(tmp_path)
    with pytest.raises(OutputError):
        claim_folder(str(tmp_path))
    assert _read(tmp_path) == before


def test_only_the_files_of_a_model_are_deleted(tmp_path: Path):
    mine = {"README.md", "assets/notes.txt", "variables/thesis.txt"}
    model = {"saved_model.pb", "fingerprint.pb", "assets/labels.txt", "variables/variables.index"}
    model |= {"variables/variables.data-00000-of-00001"}
    _write(tmp_path / "model", *mine, *model)
    delete_model(str(tmp_path))
    assert set(_read(tmp_path / "model")) == mine


def test_a_link_in_a_model_stops_the_next_one(tmp_path: Path):
    before = _write(tmp_path / "mine", "variables.index")
    (tmp_path / "model").mkdir()
    (tmp_path / "model/variables").symlink_to(tmp_path / "mine")
    with pytest.raises(OutputError, match="has a link that darkroom did not write: variables"):
        delete_model(str(tmp_path))
    assert _read(tmp_path / "mine") == before


@pytest.fixture
def train(training_process, monkeypatch, helpers, write_dataset, tmp_path):
    """Trains for some epochs in a folder, and returns the exit code; and the dataset."""
    monkeypatch.setitem(sys.modules, "own_models", None)
    training_process.register_models()
    rows = helpers.make_rows(12)
    dataset = write_dataset({"train": rows[:8], "eval": rows[8:]}).rename(tmp_path / "set")

    def train(folder: Path, epochs: int = 1) -> int:
        command = ["train", "--data", str(dataset), "--checkpoint-dir", str(folder), *QUICK]
        return main([*command, "--epochs", str(epochs)])

    return train, dataset


@pytest.mark.tensorflow
def test_the_folder_of_the_dataset_is_refused(train, capsys):
    run, dataset = train
    before = _read(dataset)
    assert run(dataset) == 4
    said = capsys.readouterr().err
    assert f"darkroom: {dataset} has other data: Split-" in said
    assert "Choose another --checkpoint-dir, which may be new." in said
    assert _read(dataset) == before


@pytest.mark.tensorflow
def test_a_model_of_the_user_is_kept(train, tmp_path, capsys):
    run, _ = train
    folder = tmp_path / "run"
    before = _write(folder, "model/saved_model.pb", "model/mine.txt")
    assert run(folder) == 4
    assert "did not write, or that changed since: model." in capsys.readouterr().err
    assert _read(folder) == before


@pytest.mark.tensorflow
@pytest.mark.slow
def test_notes_beside_a_model_survive_the_next_one(train, tmp_path):
    run, _ = train
    folder = tmp_path / "run"
    assert run(folder) == 0
    _write(folder / "model", "notes.txt")
    first = (folder / "model/saved_model.pb").stat().st_mtime_ns
    assert run(folder, 2) == 0
    assert (folder / "model/saved_model.pb").stat().st_mtime_ns > first
    assert (folder / "model/notes.txt").read_bytes() == b"mine"

    # A training of an earlier version, without a ledger, that was stopped in its first epoch.
    for name in (ledger.LEDGER_FILE, "training.json", "history.json"):
        (folder / name).unlink()
    assert run(folder, 2) == 0
    assert ledger.is_listed(str(folder), "model/")


@pytest.mark.tensorflow
def test_checkpoints_of_another_program_are_kept(train, tmp_path, capsys):
    import tensorflow as tf

    run, _ = train
    folder = tmp_path / "run"
    checkpoint = tf.train.Checkpoint(value=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(checkpoint, str(folder / "checkpoints"), max_to_keep=3)
    for _ in range(2):
        manager.save()
    before = _read(folder)
    assert run(folder) == 4
    assert "checkpoints that darkroom did not write" in capsys.readouterr().err
    assert _read(folder) == before


@pytest.mark.tensorflow
@pytest.mark.slow
def test_checkpoints_elsewhere_are_not_deleted(train, tmp_path, capsys):
    """TensorFlow deletes the checkpoints that a list names, wherever they are."""
    run, _ = train
    folder, mine = tmp_path / "run", tmp_path / "mine"
    assert run(folder) == 0
    before = _write(mine, "ckpt-0.index", "ckpt-0.data-00000-of-00001")
    path = folder / "checkpoints/checkpoint"
    line = f'all_model_checkpoint_paths: "{mine}/ckpt-0"\n'
    path.write_text(line + path.read_text())
    assert run(folder, 2) == 4
    assert "checkpoints that darkroom did not write" in capsys.readouterr().err
    assert _read(mine) == before
    assert sorted(os.listdir(mine)) == ["ckpt-0.data-00000-of-00001", "ckpt-0.index"]
