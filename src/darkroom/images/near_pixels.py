"""Compares pairs of images of a dataset by their pixels, which it reads from the records."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from darkroom import storage
from darkroom.dataset import example
from darkroom.dataset.tfrecord import read_place, read_record_at
from darkroom.errors import DarkroomError, RejectError
from darkroom.images.alignment import SIDE, Sketch, compare, make_sketch
from darkroom.images.pillow import open_stored
from darkroom.images.pixels import encode_stored
from darkroom.images.records import find_records
from darkroom.runtime import progress
from darkroom.runtime.machine import count_cores

_MAX_THREADS = 8
# Pairs at once, and images whose sketches are kept for the next ones, of 75 kB each.
_BLOCK, _MAX_KEPT = 1_024, 8_192
_ROUNDS = 100

Array = np.ndarray[Any, Any]


class _Place(NamedTuple):
    """Where a record is: its file, its number in it, where it begins and its length, in bytes."""

    path: str
    position: int
    offset: int
    length: int


class _Looks(NamedTuple):
    """The sketches of an image and of its mirror image."""

    plain: Sketch
    mirrored: Sketch


def compare_records(examples: str, index_dir: str, one: Array, other: Array) -> Array:
    """Returns how alike the images of pairs of records are, as `compare` does; NaN if unknown.

    Args:
        examples: The folder of the dataset.
        index_dir: The folder of its index.
        one: The column `row` of the index of the one record, int64 [pairs].
        other: That of the other one, int64 [pairs].

    Returns:
        float32 [pairs]. It is NaN also where a record cannot be read; other commands say why.
    """
    found = np.full(len(one), np.nan, np.float32)
    places: dict[int, _Place] = {}
    with suppress(OSError, DarkroomError, LookupError):
        if len(one):
            records = find_records(examples, index_dir, np.union1d(one, other).tolist())
            # Records of compressed files have no offset.
            places = {
                row["row"]: _Place(*(row[name] for name in _Place._fields))
                for row in records
                if None not in (row["offset"], row["length"])
            }
    order = _bring_together(one, other)
    later = _find_later(np.stack([one, other], axis=1)[order])
    kept: dict[int, _Looks | None] = {}
    needed: dict[int, int] = {}
    with ThreadPoolExecutor(min(_MAX_THREADS, count_cores())) as pool:
        for start in range(0, len(order) if places else 0, _BLOCK):
            block = order[start : start + _BLOCK]
            pairs = [*zip(one[block].tolist(), other[block].tolist(), strict=True)]
            rows = [row for pair in pairs for row in pair]
            new = sorted({*rows} - kept.keys())
            kept.update(zip(new, pool.map(partial(_draw, places), new), strict=True))
            found[block] = [*pool.map(partial(_compare, kept), pairs)]
            progress.advance(start + len(block), len(order), "compared pairs")
            needed.update(zip(rows, later[start : start + _BLOCK].ravel().tolist(), strict=True))
            kept = {row: kept[row] for row in sorted(kept, key=needed.__getitem__)[:_MAX_KEPT]}
    return found


def _bring_together(one: Array, other: Array) -> Array:
    """Returns an order of pairs in which those of one image are near each other.

    To draw an image takes longer than to compare two. So images get places on a line, and each
    moves to the middle of those with which it is compared, again and again.
    """
    ends = np.searchsorted(np.union1d(one, other), np.stack([one, other]))
    mates, counts = ends[::-1].ravel(), np.bincount(ends.ravel()) + 1
    places = np.arange(len(counts))
    for _ in range(_ROUNDS):
        sums = np.bincount(ends.ravel(), places[mates], len(counts))
        # Ranks, so that they never meet in one point.
        places = np.argsort(np.argsort((places + sums) / counts, kind="stable"))
    order: Array = np.lexsort(np.sort(places[ends], axis=0))
    return order


def _find_later(pairs: Array) -> Array:
    """Returns for both images of each pair where the next pair with it is, as a number."""
    ends = pairs.ravel()
    order = np.argsort(ends, kind="stable")
    later = np.full(ends.shape, ends.size)
    is_same = ends[order[1:]] == ends[order[:-1]]
    later[order[:-1][is_same]] = order[1:][is_same]
    return later.reshape(pairs.shape)


def _draw(places: Mapping[int, _Place], row: int) -> _Looks | None:
    """Returns the sketches of a record's image; None if it cannot be read."""
    with suppress(OSError, DarkroomError, LookupError, ValueError, RejectError):
        place = places[row]
        with storage.open_read(place.path) as file:
            data = read_place(file, place.offset, place.length)
        record = example.decode_example(read_record_at(place.path, data, place.position))
        with open_stored(encode_stored(record)) as image:
            # A large JPEG is decoded at a half, a quarter or an eighth of its size.
            image.draft("L", (SIDE, SIDE))
            gray = np.asarray(image.convert("L"))
        plain, mirrored = make_sketch(gray), make_sketch(gray, mirrored=True)
        return _Looks(plain, mirrored._replace(gray=plain.gray[:, ::-1]))
    return None


def _compare(kept: Mapping[int, _Looks | None], pair: tuple[int, int]) -> float:
    one, other = (kept[row] for row in pair)
    if one is None or other is None:
        return np.nan
    return float(np.fmax(compare(one.plain, other.plain), compare(one.mirrored, other.plain)))
