"""Shard plans: every row of the manifest in one shard, in order, in as many shards as asked."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from darkroom.conversion.plan import cut_range, plan_shards
from darkroom.dataset.layout import index_file, shard_file
from darkroom.dataset.splits import SPLITS
from darkroom.manifest.table import (
    MANIFEST_FILE,
    Manifest,
    ManifestRow,
    SplitSize,
    read_manifest_rows,
)

pytestmark = pytest.mark.slow

_COUNTS = st.dictionaries(st.sampled_from(SPLITS), st.integers(1, 40))


@st.composite
def manifests(draw, max_rows=3_000):
    splits = {}
    for split in SPLITS:
        if rows := draw(st.integers(0, max_rows)):
            splits[split] = SplitSize(rows, draw(st.integers(0, 1 << 32)))
    rows = sum(size.rows for size in splits.values())
    return Manifest(rows, 0, 0, splits, [], {}, True, True)


@given(st.integers(0, 1 << 40), st.integers(1, 1_000))
def test_pieces_meet_and_differ_by_one(length, parts):
    pieces = list(cut_range(length, parts))
    bounds = [0, *(stop for _, stop in pieces)]
    assert [start for start, _ in pieces] == bounds[:-1]
    assert bounds[-1] == length
    assert len(pieces) == parts
    assert {stop - start for start, stop in pieces} <= {length // parts, -(-length // parts)}


@given(manifests(), _COUNTS)
def test_every_row_is_in_one_shard(manifest, given_counts):
    shards = plan_shards(manifest, given_counts)
    assert [row for s in shards for row in range(s.first_row, s.first_row + s.num_rows)] == list(
        range(manifest.num_examples)
    )
    assert [shard.number for shard in shards] == list(range(len(shards)))
    assert {shard.total for shard in shards} <= {len(shards)}
    for split, size in manifest.splits.items():
        own = [shard for shard in shards if shard.split == split]
        sizes = [shard.num_rows for shard in own]
        assert sum(sizes) == size.rows
        assert min(sizes) > 0
        assert max(sizes) - min(sizes) <= 1
        assert [(s.shard, s.num_shards) for s in own] == [(n, len(own)) for n in range(len(own))]
        if split in given_counts:
            assert len(own) == min(given_counts[split], size.rows)
    assert {shard.split for shard in shards} == set(manifest.splits)


@given(manifests(), _COUNTS)
def test_files_have_names_of_their_own_that_sort_in_order(manifest, given_counts):
    shards = plan_shards(manifest, given_counts)
    for split in manifest.splits:
        files = [shard_file(split, s.shard, s.num_shards) for s in shards if s.split == split]
        assert files == sorted(set(files))
    indexes = [index_file(shard.number, shard.total) for shard in shards]
    assert indexes == sorted(set(indexes))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shards")


@settings(max_examples=settings().max_examples // 4)
@given(manifests(max_rows=120), _COUNTS, st.integers(1, 100))
def test_workers_read_every_row_once_whatever_the_row_groups(
    folder, manifest, given_counts, group_rows
):
    rows = range(manifest.num_examples)
    columns = dict.fromkeys(ManifestRow._fields[:-1], [None] * len(rows))
    table = pa.table({**columns, "row": pa.array(rows, pa.int64())})
    pq.write_table(table, folder / MANIFEST_FILE, row_group_size=group_rows)
    read = [
        row.row
        for shard in plan_shards(manifest, given_counts)
        for row in read_manifest_rows(str(folder), shard.first_row, shard.num_rows)
    ]
    assert read == list(rows)
