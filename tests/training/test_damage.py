"""Records that are damaged, or replaced, while a training reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tensorflow as tf

import darkroom
from darkroom.cli import main
from darkroom.conversion.convert import convert
from darkroom.errors import DataError
from darkroom.input.damage import explain_damage
from darkroom.input.opening import input_fn, open_files
from darkroom.options.input import InputOptions
from darkroom.training.state.training_run import TrainingRun

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder", "own_models")]

QUICK = ["--image-size", "8x8", "--model", "own_models:tiny"]


@pytest.fixture
def dataset(jpeg_records):
    return jpeg_records


def flip_bit(folder: Path, place: int) -> Path:
    """Changes a bit of the last record of a file of the train split."""
    file = sorted((folder / "Split-train").iterdir())[place]
    data = bytearray(file.read_bytes())
    data[-8] ^= 4
    file.write_bytes(data)
    return file


def read(source):
    for _ in input_fn(source, InputOptions((8, 8)), training=True):
        pass


def test_the_damaged_record_that_ends_a_training_is_named(dataset, capsys):
    file = flip_bit(dataset, -1)
    target = dataset.parent / "run"
    arguments = ["--checkpoint-dir", str(target), "--epochs", "1", *QUICK]
    assert main(["train", "--data", str(dataset), *arguments]) == 1
    error = capsys.readouterr().err
    assert f"{file}: record " in error
    assert "is damaged: the checksum of its data is wrong." in error
    assert f"darkroom verify {dataset}." in error
    assert "Traceback" not in error


def test_the_damaged_record_that_is_met_on_opening_is_named(dataset):
    file = flip_bit(dataset, 0)
    with pytest.raises(DataError, match=rf"^{file}: record \d+ is damaged") as caught:
        darkroom.load(dataset, image_size=8)
    assert caught.value.hint == f"See all that is wrong with: darkroom verify {dataset}."


def test_a_record_of_another_tool_is_named_without_the_advice_to_verify(helpers, tmp_path):
    records = [
        helpers.make_example({"image/encoded": image, "image/class/label": label})
        for image, label in helpers.make_rows(8)
    ]
    helpers.write_split(tmp_path, "train", records, shards=1)
    file = flip_bit(tmp_path, 0)
    with pytest.raises(DataError, match="record 7 is damaged") as caught:
        open_files(str(file))
    assert "darkroom verify" not in caught.value.hint


@pytest.mark.usefixtures("quick_loop")
def test_a_training_stays_with_the_dataset_that_its_link_led_to(dataset, jpeg_set, monkeypatch):
    """And a later one of that dataset resumes it, whatever path leads there."""
    # Where the Jobs of kubernetes/ have it.
    link, other = dataset.parent / "run/.data", dataset.parent / "other"
    link.parent.mkdir()
    link.symlink_to(dataset)
    first = TrainingRun.end_epoch

    def end_epoch(self, *args):
        first(self, *args)
        if not other.exists():
            convert(str(jpeg_set.csv), str(other), seed=1)
            link.unlink()
            link.symlink_to(other)

    monkeypatch.setattr(TrainingRun, "end_epoch", end_epoch)
    arguments = ["--checkpoint-dir", f"{dataset.parent}/run", *QUICK]
    assert main(["train", "--data", str(link), *arguments, "--epochs", "2"]) == 0
    assert main(["train", "--data", str(dataset), *arguments, "--epochs", "3"]) == 0
    history = json.loads((dataset.parent / "run" / "history.json").read_text())
    assert [each["epoch"] for each in history] == [1, 2, 3]


@pytest.mark.usefixtures("quick_loop")
def test_a_training_whose_dataset_is_replaced_stops_at_the_end_of_the_epoch(
    dataset, jpeg_set, capsys, monkeypatch
):
    """No record is missing, so nothing else would tell that the epoch has read both."""
    first = TrainingRun.end_epoch

    def end_epoch(self, *args):
        first(self, *args)
        convert(str(jpeg_set.csv), str(dataset), seed=1, overwrite=True)

    monkeypatch.setattr(TrainingRun, "end_epoch", end_epoch)
    arguments = ["--checkpoint-dir", f"{dataset.parent}/run", *QUICK]
    assert main(["train", "--data", str(dataset), *arguments, "--epochs", "3"]) == 1
    said = capsys.readouterr().err
    assert f"darkroom: The dataset in {dataset} was replaced while it was read.\n" in said
    assert "Traceback" not in said
    history = (dataset.parent / "run" / "history.json").read_text()
    assert [entry["epoch"] for entry in json.loads(history)] == [1]


def test_an_error_for_another_reason_stays_as_it_is(dataset):
    source = open_files(f"{dataset}/Split-train/*")
    with pytest.raises(tf.errors.DataLossError, match="own"), explain_damage(source):
        raise tf.errors.DataLossError(None, None, "own")
