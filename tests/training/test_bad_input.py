"""What a training cannot use, on the command line: one sentence, its exit code, no model."""

from __future__ import annotations

import json

import numpy as np
import pytest

import darkroom
from darkroom.cli import main
from darkroom.errors import DataError
from darkroom.input.opening import open_splits
from darkroom.targets.label.head import LabelHead
from darkroom.training.models import build_model
from darkroom.training.networks import efficientnet_lite
from darkroom.training.sources import find_data

from ..pictures import encode, write_label_folders

pytestmark = pytest.mark.tensorflow

SIZE = (32, 32)
LITE = ["--model", "efficientnet-lite0", "--image-size", "32", "--feature-cache", "none"]
TINY = ["--model", "own_models:tiny", "--image-size", "8", "--batch-size", "4"]


@pytest.fixture(autouse=True)
def networks(monkeypatch, own_models, training_process):
    monkeypatch.setattr(efficientnet_lite, "build_network", training_process.build_small_network)


def _write_images(folder, labels):
    """Writes images of labels by split: eight of train, four of eval."""
    for split, number in (("train", 8), ("eval", 4)):
        for n in range(number):
            label = labels[split][n % len(labels[split])]
            path = folder / split / label / f"{n}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode(np.full((8, 8, 3), 10 * n + len(split), np.uint8)))
    return folder


@pytest.fixture
def images(tmp_path):
    return _write_images(tmp_path / "images", {"train": ["cat", "dog"], "eval": ["cat", "dog"]})


@pytest.fixture
def refuse(tmp_path, capsys):
    """Trains, and returns what is said when that fails."""

    def train(code, data, *arguments):
        run = tmp_path / "run"
        command = ["train", "--data", str(data), "--checkpoint-dir", str(run), "--epochs", "2"]
        assert main([*command, *arguments]) == code
        said = capsys.readouterr()
        assert said.out == ""
        assert "Traceback" not in said.err
        # What remains says that the folder is darkroom's, so that another training may use it.
        left = {path.name for path in run.iterdir()} if run.exists() else set()
        assert left - {"checkpoints"} <= {".darkroom-files.json"}
        [message] = [line for line in said.err.splitlines() if line.startswith("darkroom: ")]
        return message, said.err.partition(message)[2].strip()

    return train


def test_weights_of_another_network_in_a_file_of_keras(images, tmp_path, refuse):
    path = tmp_path / "other.weights.h5"
    build_model("small_cnn", LabelHead(2), SIZE).save_weights(path)
    message, _ = refuse(2, images, *LITE, "--weights", str(path))
    assert str(path) in message
    assert "efficientnet-lite0" in message


def test_another_file_of_torch_s(images, tmp_path, refuse):
    path = tmp_path / "other.pth"
    path.write_bytes(b"PK\3\4 of torch")
    message, hint = refuse(2, images, *LITE, "--weights", str(path))
    assert message.startswith(f"darkroom: {path} is not the file of torch that can be read: ")
    assert "Leave out --weights for the weights of ImageNet." in hint


def test_a_truncated_file_of_weights(images, tmp_path, refuse):
    path = tmp_path / "cut.keras"
    build_model("small_cnn", LabelHead(2), SIZE).save(path)
    path.write_bytes(path.read_bytes()[:1000])
    message, hint = refuse(1, images, "--model", "small_cnn", "--weights", str(path))
    assert message == f"darkroom: {path} is damaged: File is not a zip file."
    assert hint


def test_an_earlier_training_of_another_version(images, tmp_path, refuse):
    earlier = tmp_path / "earlier"
    (earlier / "model" / "assets").mkdir(parents=True)
    (earlier / "model" / "assets" / "labels.txt").write_text("cat\ndog\n")
    (earlier / "training.json").write_text(json.dumps({"plan": {"settings": {}}}))
    message, hint = refuse(1, images, *LITE, "--weights", str(earlier))
    assert f"{earlier}/training.json is damaged, or of another version of darkroom" in message
    assert hint == "Train again."


def test_labels_of_the_eval_data_that_do_not_match(images, tmp_path, refuse):
    labels = {"train": ["cat", "dog"], "eval": ["cat", "fox"]}
    other = _write_images(tmp_path / "other", labels)
    message, rest = refuse(1, images, *TINY, "--eval-data", str(other))
    assert message.startswith("darkroom: 2 of 12 rows were rejected, more than the 1.00% allowed")
    assert "fox" in rest


@pytest.mark.parametrize("are_records", [False, True])
def test_a_split_without_images(tmp_path, refuse, are_records):
    data = _write_images(tmp_path / "images", {"train": ["cat", "dog"], "eval": ["cat", "dog"]})
    (data / "eval").rename(data / "test")
    if are_records:
        darkroom.convert(data, tmp_path / "records")
        data = tmp_path / "records"
    message, hint = refuse(1, data, *TINY)
    noun = "record" if are_records else "image"
    assert message == (
        f"darkroom: There is no {noun} of the eval split in {data}. Its splits are train, test."
    )
    assert hint == (
        "If the source names splits, name this one there, too, or convert the folder below the "
        "split's, as photos/train, with --split-ratios. If it names none, convert it with "
        "--split-ratios."
    )


def test_shares_count_below_the_folder_of_a_split(tmp_path):
    write_label_folders(tmp_path / "photos" / "train", 20)
    darkroom.convert(tmp_path / "photos/train", tmp_path / "records", split_ratios="50/50/0")
    splits = find_data([str(tmp_path / "records")], []).splits
    assert [splits[name].data[0]["records"] > 0 for name in ("train", "eval")] == [True, True]


@pytest.mark.parametrize("are_records", [False, True])
def test_one_label_only_in_the_train_split(tmp_path, refuse, are_records):
    data = _write_images(tmp_path / "images", {"train": ["cat"], "eval": ["cat", "dog"]})
    if are_records:
        darkroom.convert(data, tmp_path / "records")
        data = tmp_path / "records"
    message, hint = refuse(1, data, *TINY)
    assert message == (
        "darkroom: All 8 images of the train split have the label cat, expected at least 2 labels."
    )
    assert hint.startswith("If the source names splits, move images of other labels into its train")
    assert not (tmp_path / "run").exists()


def test_records_without_labels(tmp_path):
    data = _write_images(tmp_path / "images", {"train": ["cat"], "eval": ["cat"]})
    rows = [f"{path.relative_to(data).parts[0]},{path}" for path in sorted(data.rglob("*.*"))]
    (tmp_path / "list.csv").write_text("\n".join(["split,image_uri", *rows]))
    darkroom.convert(tmp_path / "list.csv", tmp_path / "records")
    with pytest.raises(
        DataError, match=rf"The records of {tmp_path}/records have no labels\."
    ) as e:
        find_data([str(tmp_path / "records")], [])
    assert "a column of labels" in e.value.hint


def test_one_label_only_in_all_splits(tmp_path, refuse):
    data = _write_images(tmp_path / "images", {"train": ["cat"], "eval": ["cat"]})
    message, _ = refuse(1, data, *TINY)
    assert message == "darkroom: The label map has 1 label, expected at least 2."


def test_a_damaged_index_does_not_stop_a_training(images, tmp_path):
    darkroom.convert(images, tmp_path / "records")
    for path in (tmp_path / "records" / "index").iterdir():
        path.write_bytes(b"no Parquet")
    data = find_data([str(tmp_path / "records")], ())
    training = open_splits(data.splits)["train"]
    assert (training.count_images(), list(data.labels)) == (8, ["cat", "dog"])
    # So there is no hint of rare labels.
    assert training.split.label_counts is None
