"""Shard plans: every row of the manifest in one shard, in order, and shards that stay."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from darkroom.conversion.leaves import cut_leaves
from darkroom.conversion.plan import plan_shards
from darkroom.dataset.layout import index_file, shard_file
from darkroom.dataset.manifest import MANIFEST_FILE, Manifest, ManifestRow, read_manifest_rows
from darkroom.dataset.splits import SPLITS
from darkroom.options.conversion import RecordOptions

pytestmark = pytest.mark.slow

_COUNTS = st.dictionaries(st.sampled_from(SPLITS), st.integers(1, 40))
# Crowded at one end, so that trees are deep.
_PLACES = st.lists(st.integers(0, 63).flatmap(lambda bits: st.integers(0, (1 << bits) - 1)))


@st.composite
def manifests(draw, max_rows=300):
    """The facts about a manifest, and its table."""
    rows = []
    for split in SPLITS:
        for span in sorted(draw(st.sets(st.integers(0, 3), max_size=2))):
            places = draw(st.lists(st.integers(0, (1 << 63) - 1), max_size=max_rows // 6))
            sizes = st.none() | st.integers(0, 5_000)
            rows += [(split, span, place, draw(sizes)) for place in sorted(places)]
    splits = {s: sum(row[0] == s for row in rows) for s in SPLITS}
    splits = {split: count for split, count in splits.items() if count}
    columns = dict.fromkeys(ManifestRow._fields[:-3], [None] * len(rows))
    table = pa.table(
        {
            **columns,
            "row": pa.array(range(len(rows)), pa.int64()),
            "span": pa.array([row[1] for row in rows], pa.int64()),
            "place": pa.array([row[2] for row in rows], pa.int64()),
            "size": pa.array([row[3] for row in rows], pa.int64()),
        }
    )
    return Manifest(len(rows), 0, 0, splits, [], {}, True, True), table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shards")


def cut_slowly(rows, most, *, is_spread, prefix=""):
    """Yields the rows of each leaf: bits as text, (place, weight) pairs."""
    own = [row for row in rows if f"{row[0]:063b}".startswith(prefix)]
    heavy = sum(weight for _, weight in own) > most and len(prefix) < 63
    spare = is_spread and len(prefix) < 3 and len(own) >= 32
    if len(own) > 1 and (heavy or spare):
        for bit in "01":
            yield from cut_slowly(own, most, is_spread=is_spread, prefix=prefix + bit)
    elif own:
        yield own


@given(_PLACES, st.integers(1, 50), st.booleans())
def test_leaves_are_those_of_a_slow_tree(places, most, is_spread):
    rows = [(place, place % 17) for place in sorted(places)]
    weights = np.array([weight for _, weight in rows], np.int64)
    found = [*cut_leaves(np.array(sorted(places), np.int64), weights, most, is_spread=is_spread)]
    assert found == [len(leaf) for leaf in cut_slowly(rows, most, is_spread=is_spread)]


@given(st.sets(st.integers(0, (1 << 63) - 1), min_size=300, max_size=400), st.data())
def test_a_row_moves_few_shards(places, data):
    def cut(places):
        ordered = sorted(places)
        weights = np.full(len(ordered), 10, np.int64)
        stops = np.cumsum([*cut_leaves(np.array(ordered), weights, 200, is_spread=False)])
        return {tuple(each) for each in np.split(np.array(ordered), stops[:-1])}

    removed = data.draw(st.sampled_from(sorted(places)))
    # Its leaf is another one, or is joined with its neighbour.
    assert len(cut(places) - cut(places - {removed})) <= 2


@given(manifests(), _COUNTS, st.integers(1024, 20_000))
def test_every_row_is_in_one_shard(folder, made, given_counts, shard_bytes):
    manifest, table = made
    pq.write_table(table, folder / MANIFEST_FILE)
    options = RecordOptions(num_shards=given_counts or None, shard_bytes=shard_bytes)
    shards = plan_shards(str(folder), manifest, options)
    assert [row for s in shards for row in range(s.first_row, s.first_row + s.num_rows)] == list(
        range(manifest.num_examples)
    )
    assert [shard.number for shard in shards] == list(range(len(shards)))
    assert {shard.total for shard in shards} <= {len(shards)}
    spans = table["span"].to_pylist()
    for split, rows in manifest.splits.items():
        own = [shard for shard in shards if shard.split == split]
        sizes = [shard.num_rows for shard in own]
        assert sum(sizes) == rows
        assert min(sizes) > 0
        assert [(s.shard, s.num_shards) for s in own] == [(n, len(own)) for n in range(len(own))]
        if split in given_counts:
            assert len(own) == min(given_counts[split], rows)
            assert max(sizes) - min(sizes) <= 1
        else:
            for each in own:
                assert len(set(spans[each.first_row : each.first_row + each.num_rows])) == 1
        files = [shard_file(split, s.shard, s.num_shards) for s in own]
        assert files == sorted(set(files))
    assert {shard.split for shard in shards} == set(manifest.splits)
    indexes = [index_file(shard.number, shard.total) for shard in shards]
    assert indexes == sorted(set(indexes))


@settings(max_examples=settings().max_examples // 4)
@given(manifests(max_rows=120), _COUNTS, st.integers(1, 100))
def test_workers_read_every_row_once_whatever_the_row_groups(
    folder, made, given_counts, group_rows
):
    manifest, table = made
    pq.write_table(table, folder / MANIFEST_FILE, row_group_size=group_rows)
    options = RecordOptions(num_shards=given_counts or None)
    read = [
        row.row
        for shard in plan_shards(str(folder), manifest, options)
        for row in read_manifest_rows(str(folder), shard.first_row, shard.num_rows)
    ]
    assert read == list(range(manifest.num_examples))
