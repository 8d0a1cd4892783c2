"""Splits by hash: they depend only on key and seed, and have the requested shares."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parsed import parse_rows

from darkroom.dataset.keys import make_key, make_order_hash
from darkroom.dataset.splits import SPLITS, SplitRatios, assign_split
from darkroom.manifest.opening import open_sources
from darkroom.options.manifest import ManifestOptions

pytestmark = pytest.mark.slow

_SEEDS = st.integers(1 - (1 << 63), (1 << 63) - 1)
_NAMES = st.text("abcdefgh", min_size=1, max_size=8)
_ROWS = 2_000


@st.composite
def all_ratios(draw):
    train = draw(st.integers(0, 100))
    evaluation = draw(st.integers(0, 100 - train))
    return SplitRatios(train / 100, evaluation / 100, (100 - train - evaluation) / 100)


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("splits") / "m.csv"


def assign(source, names, ratios, seed):
    """Returns the split and place of every image of a CSV, by its name."""
    with source.open("w", newline="") as file:
        csv.writer(file).writerows([["image_uri"], *([f"{name}.jpg"] for name in names)])
    entries = parse_rows(open_sources(source), ManifestOptions(split_ratios=ratios, seed=seed))
    return {entry.id: (entry.split, entry.order) for entry in entries}


@given(st.lists(_NAMES, min_size=1, unique=True), st.data(), all_ratios(), _SEEDS)
def test_neither_order_nor_further_rows_move_a_row(source, names, data, ratios, seed):
    few = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    everything = assign(source, data.draw(st.permutations(names)), ratios, seed)
    assert assign(source, names, ratios, seed) == everything
    assert assign(source, few, ratios, seed).items() <= everything.items()


def check_shares(keys, seed, ratios):
    """Checks that the shares are within six standard deviations of the requested ones."""
    splits = [assign_split(key, seed, ratios) for key in keys]
    for split, share in zip(SPLITS, ratios.as_tuple(), strict=True):
        deviation = (share * (1 - share) / len(keys)) ** 0.5
        found = splits.count(split) / len(keys)
        # One over the number: shares of floats may miss a border by one row.
        assert abs(found - share) <= 6 * deviation + 1 / len(keys)


@given(st.text(max_size=5), all_ratios(), _SEEDS)
def test_shares_converge_to_the_ratios(prefix, ratios, seed):
    check_shares([make_key(f"{prefix}{row}") for row in range(_ROWS)], seed, ratios)


@given(all_ratios(), _SEEDS, st.integers(0, 3))
def test_every_part_of_the_order_has_the_same_shares(ratios, seed, quarter):
    """With one salt for both, the front of the order would be all of one split."""
    keys = sorted((make_key(str(row)) for row in range(_ROWS)), key=make_order_hash(seed))
    start = quarter * _ROWS // 4
    check_shares(keys[start : start + _ROWS // 4], seed, ratios)


@given(_SEEDS, _SEEDS)
def test_every_seed_has_an_order_of_its_own(seed, other):
    def order(seed):
        return sorted(range(30), key=lambda row: make_order_hash(seed)(make_key(str(row))))

    assert (order(seed) == order(other)) == (seed == other)
