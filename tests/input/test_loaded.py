"""What `load` says of the images beside their batches."""

from __future__ import annotations

import pytest
import tensorflow as tf

from darkroom.errors import UsageError
from darkroom.input.loading import LoadedSplits, load
from darkroom.options.input import InputOptions

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
