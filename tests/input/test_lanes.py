"""Files are read so that every part of an epoch mixes spans as their shares say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

from darkroom.data.splits import ImageSplit
from darkroom.dataset.tfrecord import RecordWriter
from darkroom.input.files import FileSource
from darkroom.input.lanes import deal_into_lanes, list_turns, read_lanes
from darkroom.input.opening import open_files
from darkroom.input.source import EpochOrder
from darkroom.options.input import InputOptions

pytestmark = pytest.mark.tensorflow

BATCH, BUFFER = 32, 2048
# A first span of 8 leaves, and a small one for each day of a year.
SIZES = [(0, 4000)] * 8 + [(span, 60) for span in range(1, 366)]


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Files of records that are only their span and their number."""
    folder, numbers, paths = tmp_path_factory.mktemp("shards"), itertools.count(), []
    for place, (span, records) in enumerate(SIZES):
        paths.append(str(folder / f"{place:03d}"))
        with open(paths[-1], "wb") as file:
            writer = RecordWriter(file)
            for number in itertools.islice(numbers, records):
                writer.write(np.array([span, number], np.int32).tobytes())
            writer.close()
    return paths


def read_epoch(paths, weights, order, **values):
    """Returns the records of an epoch, int32 [N, 2]: span and number."""
    lanes = {"cycle_length": 16, "block_length": 4, **values}
    records = read_lanes(paths, weights, order, **lanes)
    if order:
        records = order.shuffle(records, BUFFER)
    batches = records.batch(1 << 14).map(lambda each: tf.io.decode_raw(each, tf.int32))
    return np.concatenate([*batches.as_numpy_iterator()])


def measure_misfit(groups):
    """Returns the mean over batches of chi-square by its degrees of freedom: 1 if all is mixed."""
    shares = np.bincount(groups) / len(groups)
    batches = groups[: len(groups) // BATCH * BATCH].reshape(-1, BATCH)
    found = np.stack([(batches == each).sum(axis=1) for each in range(len(shares))], axis=1)
    expected = BATCH * shares
    return float((((found - expected) ** 2) / expected).sum(axis=1).mean() / (len(shares) - 1))


def test_batches_mix_spans_as_their_shares_say(shards):
    counts = [records for _, records in SIZES]
    for seed, epoch in ((0, 0), (2, None)):
        spans, numbers = read_epoch(shards, counts, EpochOrder(seed, epoch)).T
        assert sorted(numbers) == list(range(sum(counts)))
        # Of 1,684 batches: three standard errors are 0.1.
        assert 0.85 < measure_misfit(spans > 0) < 1.1
        # The first span, and each half of the year.
        assert 0.85 < measure_misfit((spans > 0) * (1 + (spans > 182))) < 1.1
        tenths = [np.mean(part > 0) for part in np.array_split(spans, 10)]
        assert np.ptp(tenths) < 0.03, tenths


def test_files_of_unknown_length_are_all_read(shards):
    for order in (None, EpochOrder(1, 0)):
        numbers = read_epoch(shards[6:40], [1] * 34, order)[:, 1]
        assert sorted(numbers) == list(range(24_000, 24_000 + 8_000 + 32 * 60))


def test_an_epoch_is_always_the_same_and_differs_from_others(shards):
    some, counts = shards[8:40], [60] * 32

    def read(*order):
        return read_epoch(some, counts, EpochOrder(*order)).tolist()

    first = read(1, 0)
    assert read(1, 0) == first
    assert first not in (read(1, 1), read(2, 0))
    endless = read_lanes(some, counts, EpochOrder(1), 16, 4)
    passes = [[*endless.as_numpy_iterator()] for _ in range(2)]
    assert passes[0] != passes[1]
    assert sorted(passes[0]) == sorted(passes[1])


@pytest.mark.parametrize(
    ("weights", "count", "lanes"),
    [
        ([5, 5, 5, 5], 2, [[0, 1], [2, 3]]),
        ([5, 5], 16, [[0], [1]]),
        ([1, 900, 1, 1, 1], 4, [[1], [0, 2, 3, 4]]),
        ([0, 3], 4, [[1], [0]]),
        ([7], 1, [[0]]),
        ([1] * 6, 1, [[0, 1, 2, 3, 4, 5]]),
    ],
)
def test_lanes_have_neighbours_of_one_size(weights, count, lanes):
    assert deal_into_lanes(weights, count) == lanes


def test_lanes_take_turns_by_their_shares():
    turns = list_turns([300, 100])
    assert np.bincount(turns).tolist() == [384, 128]
    assert all(np.bincount(part).tolist() == [3, 1] for part in turns.reshape(-1, 4))
    # Each has a turn, however small it is.
    assert 1 in list_turns([10**9, 1])


def test_compressed_files_and_others_share_a_lane(tmp_path):
    paths = []
    for number, name in enumerate(("a", "b.gz", "c", "d.gz")):
        paths.append(str(tmp_path / name))
        with open(paths[-1], "wb") as file:
            writer = RecordWriter(file, name.endswith(".gz"))
            writer.write(np.array([0, number], np.int32).tobytes())
            writer.close()
    found = read_epoch(paths, [1] * 4, EpochOrder(0, 0), cycle_length=1)
    assert sorted(found[:, 1]) == [0, 1, 2, 3]


def test_a_sample_has_records_of_all_files_by_their_shares(helpers, write_dataset):
    root = write_dataset({"train": helpers.make_rows(30)}, shards=3)
    files = sorted(str(path) for path in (root / "Split-train").iterdir())
    source = open_files(files)
    options = InputOptions((4, 4))
    per_file = [[*tf.data.TFRecordDataset(file).as_numpy_iterator()] for file in files]
    for count in (3, 7, 30, 99):
        found = [*source.make_sample(count).as_numpy_iterator()]
        assert len(found) == min(count, 30)
        for records in per_file:
            own = [each for each in found if each in records]
            assert own == records[: len(own)]
            assert abs(len(own) - len(found) * len(records) / 30) < 1
        assert found == [*source.make_sample(count).as_numpy_iterator()]
    # The mean size is that of all records, not of the first file.
    sizes = [len(each) + 16 for records in per_file for each in records]
    assert source.element_bytes == pytest.approx(np.mean(sizes))
    assert len([*source.make_elements(options, None)]) == 30


@pytest.mark.crosses
def test_a_sample_of_a_list_is_spread_over_it():
    from darkroom.training.recipe.targets import list_targets

    split = ImageSplit("train", "list", ("a",), [f"{n}.png" for n in range(10)], [0] * 10, "")
    source = FileSource(split)
    found = {count: [*source.make_sample(count).as_numpy_iterator()] for count in (1, 4, 10, 99)}
    assert found == {1: [0], 4: [0, 2, 5, 7], 10: [*range(10)], 99: [*range(10)]}
    options = InputOptions((4, 4))
    assert [len(each) for each in list_targets(source, options, 4)] == [4]
    assert [len(each) for each in list_targets(source, options)] == [10]
