"""What a training cannot use: one sentence that says so, and what to do."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import darkroom
from darkroom.cli import main
from darkroom.errors import DarkroomError, DataError
from darkroom.input.opening import open_splits
from darkroom.training.sources import open_training_data

from ..pictures import encode, write_label_folders

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder")]

BOTH = {"train": ["cat", "dog"], "eval": ["cat", "dog"]}


@pytest.fixture
def write_images(tmp_path):
    """Writes images of labels by split: eight of each split, four of eval."""

    def write(labels, name="images"):
        for split, names in labels.items():
            for number in range(4 if split == "eval" else 8):
                path = tmp_path / name / split / names[number % len(names)] / f"{number}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                pixels = np.full((8, 8, 3), 10 * number + len(split), np.uint8)
                path.write_bytes(encode(pixels))
        return tmp_path / name

    return write


def test_a_file_of_weights_that_cannot_be_used_is_one_sentence(write_images, tmp_path, capsys):
    path = tmp_path / "other.pth"
    path.write_bytes(b"PK\3\4 of torch")
    command = ["train", "--data", str(write_images(BOTH)), "--weights", str(path)]
    command += ["--model", "efficientnet-lite0", "--checkpoint-dir", str(tmp_path / "run")]
    assert main([*command, "--json"]) == 2
    said = capsys.readouterr()
    error = json.loads(said.out)["error"]
    assert error["message"].startswith(f"{path} is not the file of torch that can be read: ")
    assert "Leave out --weights for the weights of ImageNet." in error["hint"]
    assert "Traceback" not in said.err
    assert not (tmp_path / "run").exists()


def test_what_is_wrong_is_said_before_tensorflow_is_loaded(tmp_path, monkeypatch, write_images):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    for data, said in ((tmp_path / "none", "does not exist"), (write_images(BOTH), "extra 'tf'")):
        with pytest.raises(DarkroomError, match=said):
            darkroom.train(data, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_labels_of_the_eval_data_that_do_not_match(write_images):
    other = write_images({"train": ["cat"], "eval": ["cat", "fox"]}, "other")
    with pytest.raises(DataError, match=r"^2 of 12 rows were rejected.*1\.00% allowed") as caught:
        open_training_data([str(write_images(BOTH))], [str(other)])
    assert "fox" in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize("are_records", [False, True])
@pytest.mark.parametrize(
    ("labels", "message", "hint"),
    [
        (
            {"train": ["cat", "dog"], "test": ["cat", "dog"]},
            "There is no {noun} of the eval split in {data}. Its splits are train, test.",
            "If the source names splits, name this one there, too, or convert the folder below the "
            "split's, as photos/train, with --split-ratios. If it names none, convert it with "
            "--split-ratios.",
        ),
        (
            {"train": ["cat"], "eval": ["cat", "dog"]},
            "All 8 images of the train split have the label cat, expected at least 2 labels.",
            "If the source names splits, move images of other labels into its train split. If it "
            "names none, convert it with a larger share of train in --split-ratios.",
        ),
        (
            {"train": ["cat"], "eval": ["cat"]},
            "The label map has 1 label, expected at least 2.",
            "Training needs images of two labels or more.",
        ),
    ],
)
def test_splits_that_nothing_is_learned_from(
    write_images, tmp_path, labels, message, hint, are_records
):
    data = write_images(labels)
    if are_records:
        darkroom.convert(data, tmp_path / "records")
        data = tmp_path / "records"
    with pytest.raises(DataError) as caught:
        open_training_data([str(data)], [])
    noun = "record" if are_records else "image"
    assert caught.value.message == message.format(noun=noun, data=data)
    assert caught.value.hint == hint


def test_shares_count_below_the_folder_of_a_split(tmp_path):
    write_label_folders(tmp_path / "photos" / "train", 20)
    darkroom.convert(tmp_path / "photos/train", tmp_path / "records", split_ratios="50/50/0")
    splits = open_training_data([str(tmp_path / "records")], []).splits
    assert [splits[name].data[0]["records"] > 0 for name in ("train", "eval")] == [True, True]


def test_records_without_labels(write_images, tmp_path):
    data = write_images({"train": ["cat"], "eval": ["cat"]})
    rows = [f"{path.relative_to(data).parts[0]},{path}" for path in sorted(data.rglob("*.*"))]
    (tmp_path / "list.csv").write_text("\n".join(["split,image_uri", *rows]))
    darkroom.convert(tmp_path / "list.csv", tmp_path / "records")
    with pytest.raises(
        DataError, match=rf"The records of {tmp_path}/records have no labels\."
    ) as e:
        open_training_data([str(tmp_path / "records")], [])
    assert "a column of labels" in e.value.hint


def test_a_damaged_index_does_not_stop_a_training(write_images, tmp_path):
    darkroom.convert(write_images(BOTH), tmp_path / "records")
    for path in (tmp_path / "records" / "index").iterdir():
        path.write_bytes(b"no Parquet")
    data = open_training_data([str(tmp_path / "records")], ())
    training = open_splits(data.splits)["train"]
    assert (training.count_images(), list(data.labels)) == (8, ["cat", "dog"])
    # So there is no hint of rare labels.
    assert training.split.label_counts is None
