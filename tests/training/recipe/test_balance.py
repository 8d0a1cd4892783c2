"""Rare labels count as much as frequent ones, and every epoch can be made again."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

import darkroom
from darkroom.data.open import open_data
from darkroom.errors import UsageError
from darkroom.input.files import open_images
from darkroom.input.opening import open_files, open_splits
from darkroom.input.pipeline import make_train_dataset
from darkroom.input.records import RecordSource
from darkroom.options.input import InputOptions
from darkroom.training.recipe.balance import (
    Balance,
    compute_quotas,
    compute_weights,
    count_labels,
    make_balance,
)

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder")]

OPTIONS = InputOptions((8, 8), batch_size=4, augment="none")
COUNTS = (15, 4)


@pytest.fixture
def rows(helpers):
    """15 dark images and 4 light ones; the first pixel is a number of its own."""
    made = helpers.make_rows(30)
    return [*made[0::2], *made[1:8:2]]


@pytest.fixture
def source(rows, write_dataset):
    root = write_dataset({"train": rows, "eval": rows[:3]})
    return open_splits(open_data([root]).splits)["train"]


@pytest.fixture
def folder(rows, tmp_path):
    """The same images as files."""
    for number, (png, label) in enumerate(rows):
        path = tmp_path / "images" / "train" / ("dark", "light")[label] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png)
    return tmp_path / "images"


def _read(batches):
    """Returns (number, label) of each image."""
    return [
        (int(image[0, 0, 0]), int(label))
        for images, labels, *_ in batches
        for image, label in zip(images.numpy(), labels.numpy(), strict=True)
    ]


def test_weights_keep_the_scale_of_the_loss():
    counts = np.array([30, 0, 6])
    weights = compute_weights(counts)
    assert weights.dtype == np.float32
    assert (weights * counts).tolist() == pytest.approx([18, 0, 18])
    assert compute_weights(np.array([7, 7])).tolist() == [1, 1]


def test_quotas_are_equal_and_make_up_an_epoch():
    assert compute_quotas(np.array([30, 0, 7])).tolist() == [19, 0, 18]
    assert compute_quotas(np.array([0, 0])).tolist() == [0, 0]


def test_an_epoch_has_as_many_images_of_each_label(source):
    sampled = Balance(np.array(COUNTS), np.array(COUNTS), "sampling").sample(source)
    assert sampled.count_images() == 19
    epochs = [_read(make_train_dataset(sampled, OPTIONS, epoch=n)) for n in range(4)]
    for images in epochs:
        assert Counter(label for _, label in images) == {0: 10, 1: 9}
        times = Counter(images)
        # Each rare image occurs twice or three times, each frequent one once at most.
        assert {times[each] for each in times if each[1] == 1} <= {2, 3}
        assert {times[each] for each in times if each[1] == 0} == {1}
    # All images are used in the end, and no two epochs are the same.
    assert len({each for images in epochs for each in images}) == 19
    assert len({tuple(sorted(images)) for images in epochs}) > 1


def test_an_epoch_can_be_made_again_from_any_batch(source):
    sampled = Balance(np.array(COUNTS), np.array(COUNTS), "sampling").sample(source)
    whole = _read(make_train_dataset(sampled, OPTIONS, epoch=1))
    rest = _read(make_train_dataset(sampled, OPTIONS, epoch=1, skip_batches=2))
    assert rest == whole[8:]


def test_files_are_sampled_as_records_are(folder):
    source = open_images(str(folder)).splits["train"]
    balance = make_balance("sampling", source, source, OPTIONS, 2)
    images = _read(make_train_dataset(balance.sample(source), OPTIONS, epoch=0))
    assert Counter(label for _, label in images) == {0: 10, 1: 9}


def test_processes_share_a_sampled_epoch(source):
    sampled = Balance(np.array(COUNTS), np.array(COUNTS), "sampling").sample(source)
    parts = [
        _read(
            make_train_dataset(
                sampled, InputOptions((8, 8), batch_size=4, augment="none", shard=(n, 2)), epoch=0
            )
        )
        for n in range(2)
    ]
    assert [len(part) for part in parts] == [8, 8]
    both = Counter([*parts[0], *parts[1]])
    assert not both - Counter(_read(make_train_dataset(sampled, OPTIONS, epoch=0)))
    with pytest.raises(UsageError, match="over all files"):
        sampled.select((0, 2))


def test_rows_of_features_are_sampled_alike():
    labels = np.array([0] * 15 + [1] * 4)
    balance = Balance(np.array(COUNTS), np.array(COUNTS), "sampling")
    rows = balance.sample_rows(labels, np.random.default_rng(0))
    assert Counter(labels[rows].tolist()) == {0: 10, 1: 9}
    assert {2, 3} >= {n for row, n in Counter(rows.tolist()).items() if row >= 15}
    plain = Balance(np.array(COUNTS), np.array(COUNTS), "weights")
    assert sorted(plain.sample_rows(labels, np.random.default_rng(0))) == list(range(19))


def test_weights_come_with_the_batches(source):
    balance = make_balance("weights", source, source, OPTIONS, 2)
    expected = compute_weights(np.array(COUNTS))
    batches = balance.weigh_training(make_train_dataset(source, OPTIONS, epoch=0))
    for _, labels, weights in batches:
        np.testing.assert_array_equal(weights, expected[labels.numpy()])


def test_mixed_labels_weigh_by_their_shares():
    balance = Balance(np.array(COUNTS), np.array([1, 3]), "sampling")
    batch = (tf.zeros((2, 8, 8, 3)), tf.constant([[0.25, 0.75], [1.0, 0.0]]))
    batches = tf.data.Dataset.from_tensors(batch)
    assert len(next(iter(balance.weigh_training(batches)))) == 2
    [[_, _, weights]] = balance.weigh_evaluation(batches)
    np.testing.assert_allclose(weights, [0.25 * 2 + 0.75 * 2 / 3, 2])


def test_labels_are_counted_by_reading_only_where_nothing_says_it(
    source, folder, tmp_path, monkeypatch
):
    assert source.split.label_counts is None
    assert count_labels(source, OPTIONS, 2).tolist() == [15, 4]
    darkroom.convert(folder, tmp_path / "records")
    converted = open_splits(open_data([tmp_path / "records"]).splits)["train"]
    monkeypatch.setattr(RecordSource, "make_elements", None)
    assert count_labels(converted, OPTIONS, 2).tolist() == [15, 4]
    # The index is of more files than those that are read.
    part = open_files(converted.files[:1])
    if part.count_images() < 19:
        assert part.split.label_counts is None
    assert count_labels(open_images(str(folder)).splits["train"], OPTIONS, 2).tolist() == [15, 4]
