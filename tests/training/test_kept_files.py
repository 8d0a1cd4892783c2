"""`darkroom train` in folders that have files of the user's, and of other programs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import tensorflow as tf

from darkroom.cli import main

from ..trees import read_files, write_files

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("quick_loop")]

QUICK = ["--image-size", "8x8", "--batch-size", "8", "--augment", "none"]
QUICK += ["--model", "own_models:tiny"]


@pytest.fixture
def train(own_models, helpers, write_dataset, tmp_path):
    """Trains for some epochs in a folder, and returns the exit code; and the dataset."""
    rows = helpers.make_rows(12)
    dataset = write_dataset({"train": rows[:8], "eval": rows[8:]}).rename(tmp_path / "set")

    def train(folder: Path, epochs: int = 1) -> int:
        command = ["train", "--data", str(dataset), "--checkpoint-dir", str(folder), *QUICK]
        return main([*command, "--epochs", str(epochs)])

    return train, dataset


def test_the_folder_of_the_dataset_is_refused(train, capsys):
    run, dataset = train
    before = read_files(dataset)
    assert run(dataset) == 4
    said = capsys.readouterr().err
    assert f"darkroom: {dataset} contains unrelated files: SHA256SUMS, Split-" in said
    assert "Choose another --checkpoint-dir, which may be new." in said
    assert read_files(dataset) == before


def test_a_model_of_the_user_is_kept(train, tmp_path, capsys):
    run, _ = train
    folder = tmp_path / "run"
    before = write_files(folder, "model/saved_model.pb", "model/mine.txt")
    assert run(folder) == 4
    assert "did not write, or that changed since: model." in capsys.readouterr().err
    assert read_files(folder) == before


@pytest.mark.usefixtures("quick_export")
def test_notes_beside_a_model_survive_the_next_one(train, tmp_path):
    run, _ = train
    folder = tmp_path / "run"
    assert run(folder) == 0
    write_files(folder / "model", "notes.txt")
    first = (folder / "model/saved_model.pb").stat().st_mtime_ns
    assert run(folder, 2) == 0
    assert (folder / "model/saved_model.pb").stat().st_mtime_ns > first
    assert (folder / "model/notes.txt").read_bytes() == b"mine"


def test_checkpoints_of_another_program_are_kept(train, tmp_path, capsys):
    run, _ = train
    folder = tmp_path / "run"
    checkpoint = tf.train.Checkpoint(value=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(checkpoint, str(folder / "checkpoints"), max_to_keep=3)
    for _ in range(2):
        manager.save()
    before = read_files(folder)
    assert run(folder) == 4
    assert "that changed since: checkpoints." in capsys.readouterr().err
    assert read_files(folder) == before


@pytest.mark.usefixtures("quick_export")
def test_checkpoints_elsewhere_are_not_deleted(train, tmp_path, capsys):
    """TensorFlow deletes the checkpoints that a list names, wherever they are."""
    run, _ = train
    folder, mine = tmp_path / "run", tmp_path / "mine"
    assert run(folder) == 0
    before = write_files(mine, "ckpt-0.index", "ckpt-0.data-00000-of-00001")
    path = folder / "checkpoints/checkpoint"
    line = f'all_model_checkpoint_paths: "{mine}/ckpt-0"\n'
    path.write_text(line + path.read_text())
    assert run(folder, 2) == 4
    assert "has checkpoints that darkroom did not write." in capsys.readouterr().err
    assert read_files(mine) == before
    assert sorted(os.listdir(mine)) == ["ckpt-0.data-00000-of-00001", "ckpt-0.index"]
