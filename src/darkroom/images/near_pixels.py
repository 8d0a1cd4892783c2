"""Compares pairs of images of a dataset by their pixels, which it reads from the records."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import numpy as np

from darkroom import storage
from darkroom.dataset import example
from darkroom.dataset.tfrecord import read_place, read_record_at
from darkroom.errors import DarkroomError, RejectError
from darkroom.images.alignment import COMPARED_SIDE, Sketch, compare, make_sketch
from darkroom.images.pillow import open_stored
from darkroom.images.pixels import encode_stored
from darkroom.images.records import find_records
from darkroom.runtime import progress
from darkroom.runtime.arrays import Array
from darkroom.runtime.machine import count_cores

# Pairs at once, and images whose sketches are kept for the next ones, of 75 kB each.
_BLOCK, _MAX_KEPT = 1_024, 8_192


class _Place(NamedTuple):
    """Where a record is: its file, its number in it, where it begins and its length, in bytes."""

    path: str
    position: int
    offset: int
    length: int


class _Looks(NamedTuple):
    """The sketches of an image and of its mirror image, where that is needed."""

    plain: Sketch
    mirrored: Sketch | None


class RecordPairs:
    """Compares pairs of records; the sketches of their images are kept for the next ones.

    Args:
        examples: The folder of the dataset.
        index_dir: The folder of its index.
    """

    def __init__(self, examples: str, index_dir: str) -> None:
        self._folders = examples, index_dir
        self._kept: dict[int, _Looks | None] = {}

    def compare(self, one: Array, other: Array, before: int = 0, total: int = 0) -> Array:
        """Returns how alike the images of pairs are, as `alignment.compare` does; NaN if unknown.

        Args:
            one: The column `row` of the index of the one record, int64 [pairs].
            other: That of the other one, int64 [pairs].
            before: How many pairs were compared before them, for the progress.
            total: How many there may be in all.

        Returns:
            float32 [pairs]. It is NaN also where a record cannot be read; other commands say why.
        """
        found = np.full(len(one), np.nan, np.float32)
        places: dict[int, _Place] = {}
        with suppress(OSError, DarkroomError, LookupError):
            if len(one):
                records = find_records(*self._folders, np.union1d(one, other).tolist())
                # Records of compressed files have no offset.
                places = {
                    row["row"]: _Place(*(row[name] for name in _Place._fields))
                    for row in records
                    if None not in (row["offset"], row["length"])
                }
        mirrored = {*one.tolist()}
        draw = partial(_draw, places, mirrored)
        with ThreadPoolExecutor(count_cores()) as pool:
            for start in range(0, len(one) if places else 0, _BLOCK):
                block = slice(start, start + _BLOCK)
                pairs = [*zip(one[block].tolist(), other[block].tolist(), strict=True)]
                needed = {row for pair in pairs for row in pair}
                # The ones that were needed last are the last ones.
                known = {row: self._kept.pop(row) for row in needed & self._kept.keys()}
                new = [row for row in needed if _lacks(known, row, row in mirrored)]
                known.update(zip(new, pool.map(draw, new), strict=True))
                self._kept.update(known)
                found[block] = [*pool.map(partial(_compare, known), pairs)]
                done = before + start + len(pairs)
                progress.advance(done, max(total, before + len(one)), "compared pairs")
                for row in [*self._kept][:-_MAX_KEPT]:
                    del self._kept[row]
        return found


def _lacks(known: Mapping[int, _Looks | None], row: int, mirrored: bool) -> bool:
    """Says whether an image has to be read, also to mirror it."""
    if row not in known:
        return True
    looks = known[row]
    return mirrored and looks is not None and looks.mirrored is None


def _draw(places: Mapping[int, _Place], mirrored: set[int], row: int) -> _Looks | None:
    """Returns the sketches of a record's image; None if it cannot be read."""
    with suppress(OSError, DarkroomError, LookupError, ValueError, RejectError):
        place = places[row]
        with storage.open_read(place.path) as file:
            data = read_place(file, place.offset, place.length)
        record = example.decode_example(read_record_at(place.path, data, place.position))
        with open_stored(encode_stored(record)) as image:
            # A large JPEG is decoded at a half, a quarter or an eighth of its size.
            image.draft("L", (COMPARED_SIDE, COMPARED_SIDE))
            gray = np.asarray(image.convert("L"))
        plain = make_sketch(gray)
        if row not in mirrored:
            return _Looks(plain, None)
        return _Looks(plain, make_sketch(gray, mirrored=True)._replace(gray=plain.gray[:, ::-1]))
    return None


def _compare(kept: Mapping[int, _Looks | None], pair: tuple[int, int]) -> float:
    one, other = (kept[row] for row in pair)
    if one is None or other is None or one.mirrored is None:
        return np.nan
    found = compare(one.plain, other.plain)
    return found if found > 0 else float(np.fmax(found, compare(one.mirrored, other.plain)))
