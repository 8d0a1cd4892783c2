"""The order of an epoch: every record once, whatever reads it."""

from __future__ import annotations

import numpy as np
import pytest

from darkroom.reader.order import EXACT, WINDOW, Order, deal_into_groups

COUNTS = [40, 0, 7, 33, 20, 40, 1, 12]
TOTAL = sum(COUNTS)


@pytest.mark.parametrize("kind", [EXACT, WINDOW])
def test_an_epoch_has_every_record_once_and_is_its_own(kind):
    positions = np.arange(TOTAL)
    epochs = [
        Order(COUNTS, seed, epoch, kind, 8).find_rows(positions)
        for seed in (0, 1)
        for epoch in (0, 1)
    ]
    for rows in epochs:
        assert sorted(rows) == list(range(TOTAL))
    assert len({tuple(rows) for rows in epochs}) == 4
    again = Order(COUNTS, 1, 1, kind, 8).find_rows(np.array([5, 3, 150]))
    assert list(again) == [epochs[3][5], epochs[3][3], epochs[3][150]]


def test_the_numbers_of_an_order_do_not_change_between_versions():
    # A state that was saved by another version goes on with these records.
    assert list(Order([10], 3, 2).find_rows(np.arange(10))) == [5, 4, 6, 9, 3, 7, 2, 8, 0, 1]
    window = Order([4, 3, 3], 3, 2, WINDOW, 2).find_rows(np.arange(10))
    assert list(window) == [0, 4, 7, 2, 5, 8, 1, 6, 9, 3]


def test_exact_shuffles_without_a_trace_of_the_files():
    rows = np.stack([Order([500, 500], 0, e).find_rows(np.arange(1000)) for e in range(200)])
    # Each record comes anywhere: the mean place of 200 epochs, with its standard error.
    places = np.argsort(rows, axis=1).mean(axis=0)
    assert abs(places - 499.5).max() < 5 * 1000 / np.sqrt(12 * 200)
    # Neighbours in a file are not neighbours in an epoch.
    assert np.mean(np.abs(np.diff(rows, axis=1)) == 1) < 0.004


def test_files_are_dealt_to_groups_of_equal_numbers_of_records():
    counts = [int(c) for c in np.random.default_rng(0).integers(500, 1000, 300)]
    groups = deal_into_groups(counts)
    sums = [sum(counts[file] for file in group) for group in groups]
    assert len(groups) == 64
    assert sorted(file for group in groups for file in group) == list(range(300))
    assert max(sums) / min(sums) < 1.35
    assert deal_into_groups([0, 3, 0]) == [[1]]


def test_a_process_reads_only_files_of_its_groups_until_one_group_ends():
    counts = [100] * 16
    order = Order(counts, 0, 3, WINDOW, 10)
    file_of = np.arange(1600) // 100
    seen = [set(file_of[order.find_rows(np.arange(rank, 1600, 4))]) for rank in range(4)]
    assert [len(files) for files in seen] == [4] * 4
    assert set.union(*seen) == set(range(16))


def test_a_window_reads_each_file_about_from_its_start_to_its_end():
    order = Order([100] * 4, 0, 0, WINDOW, 10)
    rows = order.find_rows(np.arange(0, 400, 4))
    assert len(set(rows // 100)) == 1
    late = rows % 100 - np.arange(100)
    assert abs(late).max() <= 10
    assert len(set(late)) > 5
