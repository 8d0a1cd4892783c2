"""Finds the records of an index that are near copies of each other, in a database.

Candidates are the pairs of images whose perceptual hashes are nearly equal, and others that the
caller knows of. Where the records and OpenCV are there, their pixels decide. Images with the same
pixels are one image. It reads the view `matched` (`dataset.index_queries`). The tables have numbers
alone, for which the memory of the database is enough.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from darkroom.images.alignment import can_align
from darkroom.images.near_pairs import NearPairs, find_near_pairs, list_groups
from darkroom.images.near_pixels import RecordPairs
from darkroom.images.perceptual_hash import HASH_BYTES
from darkroom.runtime import progress
from darkroom.runtime.arrays import Array
from darkroom.runtime.machine import count_cores
from darkroom.storage.database import create_view
from darkroom.storage.parquet import BATCH_ROWS

if TYPE_CHECKING:
    import duckdb

# Candidates of which the pixels are compared at most: in all, and of each image.
# A pair counts for that one of its images that has fewer likelier ones.
MAX_COMPARED, _MOST_EACH = 300_000, 8
# They are compared in blocks, of an eighth as many as there are images or more, until a block has
# hardly any copies: fewer than one of 200. Blocks that tell of fewer pairs than 50 say nothing.
_LEAST_BLOCK, _IMAGES_EACH, _TOO_FEW, _LEAST_DECIDED = 128, 8, 200, 50
# Pairs of which features are compared at once.
_PAIRS = 1 << 16
# Of images that look much alike, in one thread.
_SECONDS_EACH = 0.02
_LOOKS = f"""
SELECT row, hash(coalesce(pixels, sha256)) AS content,
    CASE WHEN regexp_full_match(perceptual_hash, '[0-9a-f]{{{2 * HASH_BYTES}}}')
    THEN perceptual_hash END AS look
FROM matched WHERE coalesce(pixels, sha256) IS NOT NULL ORDER BY row
"""


class Compared(NamedTuple):
    """How images were compared.

    Attributes:
        has_all_hashes: False where so many hashes look alike that not all were compared.
        num_left: Candidates whose pixels were not compared, though there may be copies among them.
        is_verified: Whether pixels were compared at all.
        has_neighbours: Whether those of candidates of the caller were, too.
    """

    has_all_hashes: bool
    num_left: int
    is_verified: bool
    has_neighbours: bool = False

    @property
    def left_out(self) -> str:
        """What was not compared, as sentences; empty if everything was."""
        hashes = "So many images look alike that not all pairs were compared."
        pixels = f"Less likely pairs that were not compared on pixels: {self.num_left:,}."
        return " ".join([hashes] * (not self.has_all_hashes) + [pixels] * (self.num_left > 0))


class Neighbours(NamedTuple):
    """Pairs of images whose features are alike: the twenty nearest of each one.

    Attributes:
        one: The column `row` of the index of the one image, int64 [pairs]. A pair may come twice.
        other: That of the other one.
        rows: Rows of all images that have features, int64 [N], in order.
        points: Where they are, of length 1, float32 [N, components].
        reach: How far from each one its last neighbour is: 1 less their cosine, float32 [N].
    """

    one: Array
    other: Array
    rows: Array
    points: Array
    reach: Array

    def measure(self, one: Array, other: Array) -> Array:
        """Returns how far apart pairs of images are, by their rows: the likeliest have the least.

        Returns:
            float32 [pairs]: 1 where one is as far as the twentieth neighbour of the one with fewer
            images around it; 0 where one has no features, as nothing speaks against the pair.
        """
        found = np.zeros(len(one), np.float32)
        ends = np.searchsorted(self.rows, np.stack([one, other])).clip(max=len(self.rows) - 1)
        has_both = np.flatnonzero((self.rows[ends] == [one, other]).all(axis=0))
        for start in range(0, len(has_both), _PAIRS):
            block = has_both[start : start + _PAIRS]
            pairs = ends[:, block]
            cosines = np.einsum("ij,ij->i", *self.points[pairs])
            found[block] = (1 - cosines) / self.reach[pairs].max(axis=0)
        return found


class Comparer(Protocol):
    """Compares pairs of records by their pixels, as `RecordPairs` does."""

    def __init__(self, examples: str, index_dir: str, /) -> None: ...

    def compare(  # noqa: D102
        self, one: Array, other: Array, before: int = 0, total: int = 0, /
    ) -> Array: ...


class _Looks(NamedTuple):
    """The records with an image, and the pairs of their hashes.

    Attributes:
        row: Row of each record, in order.
        content: Hash of its pixels.
        image: Number of its image.
        first: Place of the first record of each image.
        hash: Number of the hash of each image; -1 for none.
        num_hashes: How many hashes there are.
        pairs: The pairs of hashes.
    """

    row: Array
    content: Array
    image: Array
    first: Array
    hash: Array
    num_hashes: int
    pairs: NearPairs


class _Pairs(NamedTuple):
    """Pairs of images, of hashes, or of both: then the numbers of images come after all hashes.

    Attributes:
        one: The one number, int64 [pairs].
        other: The other one; the same number for images that share a hash.
        difference: Bits in which their hashes differ; -1 where only others know of the pair.
        correlation: How alike their pixels are, float32 [pairs]; NaN where that is not known.
    """

    one: Array
    other: Array
    difference: Array
    correlation: Array

    def take(self, chosen: Array | slice) -> _Pairs:
        """Returns some of the pairs."""
        return _Pairs(*(each[chosen] for each in self))


def create_near_pairs(
    connection: duckdb.DuckDBPyConnection,
    records: tuple[str, str] | None = None,
    neighbours: Neighbours | None = None,
    comparer: type[Comparer] = RecordPairs,
) -> Compared:
    """Creates the tables `near` and `near_looks`.

    The first one has the pairs: `one`, `other`, the `difference` of their hashes in bits, and the
    `correlation` of their pixels where that is known. The second one has `row`, `content` and
    `number` of each record that is in a pair.

    Args:
        connection: Has the view `matched`.
        records: The folders of the dataset and of its index, to compare pixels.
        neighbours: More candidates, and how likely all of them are.
        comparer: Compares pixels; its arguments are `records`.
    """
    looks, pairs, compared = _find_pairs(connection, records, neighbours, comparer)
    columns = {
        "one": pairs.one,
        "other": pairs.other,
        "difference": pa.array(pairs.difference, mask=pairs.difference < 0),
        # Not float32, whose digits beyond the third would be shown.
        "correlation": pa.array(
            pairs.correlation.astype(np.float64), mask=np.isnan(pairs.correlation)
        ),
    }
    _create_table(connection, "near", columns)
    numbers = np.full(looks.num_hashes + len(looks.first), -1)
    for ends in pairs[:2]:
        numbers[ends] = ends
    _create_looks(connection, looks, numbers)
    return compared


def create_near_groups(
    connection: duckdb.DuckDBPyConnection,
    records: tuple[str, str] | None = None,
    neighbours: Neighbours | None = None,
    comparer: type[Comparer] = RecordPairs,
) -> Compared:
    """Creates the table `near_looks` of the records in groups, of which all are near one of them.

    Its `number` is that of the group. The arguments are those of `create_near_pairs`.
    """
    looks, pairs, compared = _find_pairs(connection, records, neighbours, comparer)
    numbers = np.full(looks.num_hashes + len(looks.first), -1)
    is_shared = pairs.one == pairs.other
    numbers[pairs.one[is_shared]] = pairs.one[is_shared]
    one, other, difference, _ = pairs.take(~is_shared)
    for members in list_groups(len(numbers), NearPairs(one, other, difference, True)):
        numbers[members] = members[0]
    _create_looks(connection, looks, numbers)
    return compared


def _find_pairs(
    connection: duckdb.DuckDBPyConnection,
    records: tuple[str, str] | None,
    neighbours: Neighbours | None,
    comparer: type[Comparer],
) -> tuple[_Looks, _Pairs, Compared]:
    """Returns the images with their hashes, the pairs of near copies, and how these were compared.

    Without pixels, they are pairs of hashes. Else they are pairs of images, whose pixels are alike
    or do not tell.
    """
    looks = _find_looks(connection)
    has_all = looks.pairs.is_complete
    shared = np.flatnonzero(np.bincount(looks.hash[looks.hash >= 0], minlength=0) > 1)
    difference = np.concatenate([looks.pairs.difference, np.zeros_like(shared)])
    hashed = _Pairs(
        np.concatenate([looks.pairs.one, shared]),
        np.concatenate([looks.pairs.other, shared]),
        difference,
        np.full(len(difference), np.nan, np.float32),
    ).take(np.argsort(difference, kind="stable"))
    if not records or not can_align():
        return looks, hashed, Compared(has_all, 0, False)
    candidates, num_left = _spread(looks, hashed)
    if neighbours is not None:
        # What looks alike by its hash, and does not by its features, comes late.
        candidates, num_left = _join(candidates, _find_images(looks, neighbours)), 0
        apart = neighbours.measure(*_list_rows(looks, candidates))
        candidates = candidates.take(np.argsort(apart, kind="stable"))
    chosen, num_known = np.flatnonzero(_rank(candidates) < _MOST_EACH), len(candidates.one)
    candidates = candidates.take(chosen)
    rows = _list_rows(looks, candidates)
    correlation = _compare_likeliest(comparer(*records).compare, rows, len(looks.first))
    if (count := len(correlation)) < min(len(chosen), MAX_COMPARED):
        # There are hardly any copies from here on.
        num_known, num_left = int(chosen[count - 1]) + 1, 0
    num_left += num_known - count
    found = candidates.take(slice(len(correlation)))._replace(correlation=correlation)
    # Of a pair by features alone nothing is known if its pixels do not tell.
    found = found.take((correlation > 0) | np.isnan(correlation) & (found.difference >= 0))
    pairs = found._replace(one=looks.num_hashes + found.one, other=looks.num_hashes + found.other)
    return looks, pairs, Compared(has_all, num_left, True, neighbours is not None)


def _rank(pairs: _Pairs) -> Array:
    """Returns how many likelier pairs the images of each pair have: of the one with fewer."""
    ends = np.stack(pairs[:2], axis=1).ravel()
    order = np.argsort(ends, kind="stable")
    rank = np.empty(len(ends), int)
    rank[order] = np.arange(len(ends)) - np.searchsorted(ends[order], ends[order])
    fewer: Array = rank.reshape(-1, 2).min(axis=1)
    return fewer


def _compare_likeliest(
    compare: Callable[[Array, Array, int, int], Array], rows: Array, num_images: int
) -> Array:
    """Compares the first pairs, until hardly any of them are copies.

    Args:
        compare: Gets rows of both, how many pairs came before them, and how many there may be.
        rows: Rows of both images, the likeliest first, int64 [2, pairs].
        num_images: How many images there are.

    Returns:
        The correlations of the first pairs.
    """
    found, count = np.empty(0, np.float32), min(rows.shape[1], MAX_COMPARED)
    step = max(_LEAST_BLOCK, num_images // _IMAGES_EACH)
    minutes = count * _SECONDS_EACH / count_cores() / 60
    if minutes > 1:
        progress.note(
            f"Compares up to {count:,} pairs of images, until hardly any are copies: at most "
            f"{math.ceil(minutes)} min. To do without, set the policies of near copies to off."
        )
    while len(found) < count:
        one, other = rows[:, len(found) : min(len(found) + step, count)]
        block = compare(one, other, len(found), count)
        found = np.concatenate([found, block])
        decided = np.count_nonzero(~np.isnan(block))
        has_few = np.count_nonzero(block > 0) * _TOO_FEW < decided
        if has_few and decided >= _LEAST_DECIDED:
            break
    return found


def _find_looks(connection: duckdb.DuckDBPyConnection) -> _Looks:
    """Reads the records with an image, numbers images and hashes, and pairs the hashes.

    An image has the hash of its first record: they are equal unless one of them lacks it.
    """
    found = connection.sql(_LOOKS).to_arrow_reader(BATCH_ROWS).read_all()
    content = found["content"].to_numpy()
    _, first, image = np.unique(content, return_index=True, return_inverse=True)
    texts = found["look"].take(pa.array(first)).combine_chunks()
    hashes = bytes.fromhex("".join(texts.drop_null().to_pylist()))
    unique, number = np.unique(np.frombuffer(hashes, f"V{HASH_BYTES}"), return_inverse=True)
    numbers = np.full(len(first), -1)
    numbers[texts.is_valid().to_numpy(zero_copy_only=False)] = number
    pairs = find_near_pairs(unique.view(np.uint8).reshape(-1, HASH_BYTES))
    row = found["row"].to_numpy()
    return _Looks(row, content, image, first, numbers, len(unique), pairs)


def _list_rows(looks: _Looks, pairs: _Pairs) -> Array:
    """Returns the rows of both images of pairs, int64 [2, pairs]."""
    rows: Array = looks.row[looks.first[np.stack(pairs[:2])]]
    return rows


def _spread(looks: _Looks, hashed: _Pairs) -> tuple[_Pairs, int]:
    """Returns pairs of images for pairs of hashes, and for how many there was no room.

    The first image of each hash is paired with all of the other one. So images that share a hash
    are as many pairs as images, and not the square of it.
    """
    images = np.argsort(looks.hash, kind="stable")
    starts = np.searchsorted(looks.hash[images], np.arange(looks.num_hashes))
    sizes = np.diff(np.append(starts, len(images)))
    costs = np.cumsum(sizes[hashed.one] + sizes[hashed.other])
    count = int(np.searchsorted(costs, MAX_COMPARED, side="right"))
    left = costs[:count].max(initial=0)
    hashed, found = hashed.take(slice(count)), []
    for center, ends in (hashed[:2], hashed[1::-1]):
        nums = sizes[ends]
        nth = np.arange(nums.sum()) - np.repeat(np.cumsum(nums) - nums, nums)
        found.append(
            _Pairs(
                np.repeat(images[starts[center]], nums),
                images[np.repeat(starts[ends], nums) + nth],
                np.repeat(hashed.difference, nums),
                np.repeat(hashed.correlation, nums),
            )
        )
    return _join(*found), int(costs[count:].max(initial=left) - left)


def _find_images(looks: _Looks, neighbours: Neighbours) -> _Pairs:
    """Returns the candidates that the caller knows of as pairs of images."""
    rows = np.stack(neighbours[:2])
    places = np.minimum(np.searchsorted(looks.row, rows), len(looks.row) - 1)
    one, other = looks.image[places[:, (looks.row[places] == rows).all(axis=0)]]
    return _Pairs(one, other, np.full(len(one), -1), np.full(len(one), np.nan, np.float32))


def _join(*parts: _Pairs) -> _Pairs:
    """Returns the pairs of two images in all parts, each once, in the order of the parts."""
    joined = _Pairs(*map(np.concatenate, zip(*parts, strict=True)))
    ends = np.sort(np.stack(joined[:2]), axis=0)
    _, first = np.unique(ends[0] * (ends.max(initial=0) + 1) + ends[1], return_index=True)
    first = np.sort(first)
    return joined._replace(one=ends[0], other=ends[1]).take(first[ends[0, first] != ends[1, first]])


def _create_looks(connection: duckdb.DuckDBPyConnection, looks: _Looks, numbers: Array) -> None:
    """Creates the table `near_looks` of records by the new numbers of their hash and image."""
    # The last place, that of an image without a hash, says that it is in no pair.
    of_hashes, of_images = np.append(numbers, -1)[looks.hash], numbers[looks.num_hashes :]
    kinds = [each[looks.image] for each in (of_hashes, of_images)]
    places = [np.flatnonzero(each >= 0) for each in kinds]
    columns = {
        "row": np.concatenate([looks.row[each] for each in places]),
        "number": np.concatenate([kind[each] for kind, each in zip(kinds, places, strict=True)]),
        "content": np.concatenate([looks.content[each] for each in places]),
    }
    _create_table(connection, "near_looks", columns)


def _create_table(
    connection: duckdb.DuckDBPyConnection, name: str, columns: Mapping[str, Array | pa.Array]
) -> None:
    # DuckDB takes the tables of some versions of pyarrow only.
    with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
        path = os.path.join(scratch, "table.parquet")
        pq.write_table(pa.table(columns), path)
        create_view(connection, f"{name}_file", [path], scratch)
        connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM {name}_file")
