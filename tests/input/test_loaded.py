"""What `load` says of the images beside their batches."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from PIL import Image

from darkroom.conversion.convert import convert
from darkroom.errors import UsageError
from darkroom.input.loading import LoadedSplits, load
from darkroom.options.input import InputOptions
from darkroom.options.manifest import ManifestOptions

pytestmark = pytest.mark.tensorflow


def test_load_tells_the_labels_and_how_many_images_there_are(helpers, write_dataset):
    rows = helpers.make_rows(7)
    data = load(write_dataset({"train": rows[:5], "eval": rows[5:]}), image_size=8)
    assert data.labels == ("dark", "light")
    assert data.num_images == {"train": 5, "eval": 2}
    assert [*data] == ["train", "eval"]
    assert data["train"].element_spec[0] == tf.TensorSpec((None, 8, 8, 3), tf.uint8)


def test_load_tells_the_same_of_images_that_were_not_converted(image_set):
    data = load(str(image_set.csv), options=InputOptions((8, 8), shard=(0, 2)))
    assert data.labels == ("cat", "dog", "owl")
    # In all parts of a split.
    assert data.num_images == {"train": 32, "eval": 8}


def test_a_split_that_there_is_not_is_named_with_those_that_there_are():
    data = LoadedSplits({"train": 1, "eval": 2}, (), {})
    for name, hint in (
        ("TESTING", "Take one of these."),
        ("Trains", "Did you mean 'train'?"),
        ("evl", "Did you mean 'eval'?"),
        (0, "Take one of these."),
    ):
        with pytest.raises(KeyError) as caught:
            data[name]
        assert isinstance(caught.value, UsageError)
        said = f"There is no split {name!r}: the splits are train, eval. {hint}"
        assert str(caught.value) == said
        assert name not in data
        assert data.get(name) is None


def test_a_split_has_all_names_that_a_source_may_have_for_it():
    data = LoadedSplits({"train": 1, "eval": 2}, (), {})
    for name in ("val", "validation", "Valid", "DEV", "eval"):
        assert data[name] == data.get(name) == 2
        assert name in data
    assert list(data) == ["train", "eval"]


def test_batches_have_the_columns_that_are_named(photo_list, tmp_path):
    kinds = {"image_uri": "image", "label": "string_label", "stars": "integer", "price": "float"}
    convert(photo_list, tmp_path / "records", columns=kinds, split_ratios="100/0/0")
    names = ["image/filename", "price", "stars"]
    data = load(
        tmp_path / "records",
        image_size=8,
        batch_size=4,
        training=True,
        augment="mixup",
        columns=names,
    )
    found = {}
    for _, labels, columns in data["train"]:
        assert labels.shape == (4, 2)
        rows = zip(*(columns[name].numpy() for name in names), strict=True)
        found |= {Path(name.decode()).name: (price, stars) for name, price, stars in rows}
    assert {name: stars for name, (_, stars) in found.items()} == {f"{n}.png": n for n in range(8)}
    # The default for records that lack it.
    assert {name for name, (price, _) in found.items() if math.isnan(price)} == {"0.png", "5.png"}


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("list", {"verify": True}, "verify is True, which applies to a converted dataset, not to"),
        ("list", {"columns": ["a"]}, r"columns is \('a',\), which applies to a converted dataset"),
        ("list", {"framework": "numpy"}, "framework is 'numpy', which applies to a converted "),
        ("dataset", {"manifest": ManifestOptions()}, "which applies to a list or folder of images"),
        ("dataset", {"order": "exact"}, "which applies to numpy and torch, not to tensorflow"),
        ("dataset", {"transform": np.flip}, "which applies to numpy and torch, not to tensorflow"),
        ("dataset", {"framework": "numpy", "dtype": "float32"}, "to tensorflow, not to numpy"),
        ("dataset", {"framework": "numpy", "device": "cuda"}, "applies to torch, not to numpy"),
    ],
)
def test_an_option_that_does_not_apply_is_named(image_set, labelled_set, kind, given, said):
    source = image_set.csv if kind == "list" else labelled_set / "records"
    with pytest.raises(UsageError, match=said):
        load(source, image_size=8, **given)


def test_columns_that_there_are_not_are_named(labelled_set):
    for name in ("none", "image/class/label"):
        with pytest.raises(UsageError, match=f"columns names '{name}', which the records do not"):
            load(labelled_set / "records", image_size=8, columns=[name])


@pytest.fixture
def photo_list(tmp_path: Path) -> pd.DataFrame:
    """A table of eight images; two of them have no price."""
    rows = []
    for number in range(8):
        path = tmp_path / f"{number}.png"
        Image.fromarray(np.full((9, 9, 3), number * 20, np.uint8)).save(path)
        rows.append((str(path), "ab"[number % 2], number, number / 2 if number % 5 else None))
    return pd.DataFrame(rows, columns=["image_uri", "label", "stars", "price"])
