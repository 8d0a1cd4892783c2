"""All rows of a dataset as numbers, 8 bytes a row, and the places of rows in the index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from darkroom.dataset.index import read_index
from darkroom.dataset.splits import SPLITS
from darkroom.features.neighbours import find_nearest, find_points, scale_to_length_one
from darkroom.storage.parquet import BATCH_ROWS
from darkroom.targets.kind import TargetKind, find_column_kind

Numbers = np.ndarray[Any, np.dtype[Any]]

_COLUMNS = ("row", "split", "label", "height", "width", "luminance")
# Labels have no control characters.
_SEPARATOR = "\x1f"
UNKNOWN, NOT_MEASURED = 255, 65_535
# The map has 12 bits a side; the last number says that a row is not on it.
MAP_SIDE = 4095
# Of each image with a picture, how many like it are named; the last number says that none is.
NUM_ALIKE, NONE_ALIKE, _NUM_COMPONENTS = 12, 65_535, 64
# Of the rows, those outside are drawn at the edge of the map.
_MAP_QUANTILES = (0.002, 0.998)
_FIT_ROWS = 20_000


class GalleryRows(NamedTuple):
    """All rows, in the order of the index.

    Attributes:
        row: Number in the source, int64 [N].
        group: Number of the labels times the number of splits, plus that of the split; [N] of the
            smallest unsigned type that holds it.
        side: Shorter side in pixels, uint16 [N]; 0 where it is not known.
        brightness: Mean luminance, 0 to 254, uint8 [N]; 255 where it is not known.
        sets: What images are labelled with, by number: each a tuple of labels.
        measures: The values of the filters of the kind of target, uint16 [N] each; 65,535 where
            they are not known.
    """

    row: Numbers
    group: Numbers
    side: Numbers
    brightness: Numbers
    sets: tuple[tuple[str, ...], ...]
    measures: Sequence[Numbers] = ()

    def find_places(self, rows: Iterable[int]) -> Numbers:
        """Returns the place in the index of rows of the source, int64; -1 where it has none."""
        wanted = np.fromiter(rows, np.int64)
        if not len(self.row):
            return np.full(len(wanted), -1)
        order = np.argsort(self.row, kind="stable")
        found = order[np.searchsorted(self.row, wanted, sorter=order).clip(max=len(order) - 1)]
        return np.where(self.row[found] == wanted, found, -1)


def read_rows(index_dir: str) -> GalleryRows:
    """Reads the rows of an index.

    Raises:
        DataError: It is damaged.
        OSError: It cannot be read.
    """
    table = read_index(index_dir, [*_COLUMNS])
    kind = find_column_kind(table["label"].type)
    sets, numbers = _number_labels(kind.list_names(table["label"].combine_chunks()))
    splits = pc.index_in(table["split"], pa.array(SPLITS)).to_numpy()
    group = numbers * len(SPLITS) + splits
    side = pc.fill_null(pc.min_element_wise(table["height"], table["width"]), 0).to_numpy()
    luminance = pc.fill_null(table["luminance"].cast(pa.float64()), np.nan).to_numpy()
    known = np.isfinite(luminance)
    brightness = np.where(known, luminance, 0).round().clip(0, UNKNOWN - 1)
    return GalleryRows(
        table["row"].to_numpy(),
        group.astype(np.min_scalar_type(len(sets) * len(SPLITS))),
        side.clip(0, 65_535).astype(np.uint16),
        np.where(known, brightness, UNKNOWN).astype(np.uint8),
        sets,
        _measure(table, kind),
    )


def _measure(table: pa.Table, kind: TargetKind) -> list[Numbers]:
    """Returns what people may choose rows by, besides their labels."""
    if not kind.filters:
        return []
    parts: list[list[Numbers]] = [[] for _ in kind.filters]
    for batch in table.to_batches(BATCH_ROWS):
        found = kind.measure(pa.Table.from_batches([batch]))
        for part, each in zip(parts, kind.filters, strict=True):
            part.append(_take_least(found[each.name]))
    return [np.concatenate([np.empty(0, np.uint16), *part]) for part in parts]


def _take_least(column: pa.Array) -> Numbers:
    """Returns the value of each row, or the least of a list, uint16 [N]."""
    least = np.full(len(column), np.inf)
    if pa.types.is_list(column.type):
        rows = pc.list_parent_indices(column).to_numpy()
        np.fmin.at(least, rows, column.flatten().to_numpy(zero_copy_only=False))
    else:
        known = column.is_valid().to_numpy(zero_copy_only=False)
        least[known] = column.drop_null().to_numpy(zero_copy_only=False)
    return least.round().clip(0, NOT_MEASURED).astype(np.uint16)


def _number_labels(names: pa.ListArray) -> tuple[tuple[tuple[str, ...], ...], Numbers]:
    """Returns the labels that rows have, sorted, and the number of those of each row.

    Numbers to predict are not labels: such rows have none.
    """
    # An image with none of the labels is one without labels here.
    joined = pc.fill_null(pc.binary_join(names, _SEPARATOR), "")
    texts = sorted(pc.unique(joined).to_pylist())
    numbers = pc.index_in(joined, pa.array(texts, pa.string())).to_numpy(zero_copy_only=False)
    return tuple(tuple(filter(None, text.split(_SEPARATOR))) for text in texts), numbers


def place_on_map(count: int, places: Numbers, values: Numbers) -> Numbers:
    """Returns where rows are on a map of their features: the first two principal components.

    Args:
        count: Number of rows, N.
        places: The rows that have features, int64 [M].
        values: Their features, float [M, D].

    Returns:
        uint16 [N, 2] of 0 to 4,094; 4,095 for rows without features. The first has the larger
        spread.
    """
    result = np.full((count, 2), MAP_SIDE, np.uint16)
    if len(places) < 2:
        return result
    points = find_points(values, 2, sample=values[:: -(-len(values) // _FIT_ROWS)])
    low, high = np.quantile(points, _MAP_QUANTILES, axis=0)
    shares = ((points - low) / np.maximum(high - low, 1e-12)).clip(0, 1)
    result[places, : shares.shape[1]] = (shares * (MAP_SIDE - 1)).round()
    return result


def find_alike(shown: Sequence[int], places: Numbers, values: Numbers) -> Numbers:
    """Finds the images that are most like each image with a picture, among these.

    Args:
        shown: Their places in the index, N.
        places: The rows that have features, int64 [M], ascending.
        values: Their features, float [M, D].

    Returns:
        Numbers of images in `shown`, the most alike first, uint16 [N, 12]; 65,535 for none.
    """
    wanted = np.array(shown, np.int64)
    alike = np.full((len(wanted), NUM_ALIKE), NONE_ALIKE, np.uint16)
    at = np.searchsorted(places, wanted).clip(max=max(len(places) - 1, 0))
    known = np.flatnonzero(places[at] == wanted) if len(places) else at[:0]
    if len(known) > 1:
        every = np.arange(len(known))
        points = scale_to_length_one(find_points(values[at[known]], _NUM_COMPONENTS))
        found, _ = find_nearest(points, every, every, NUM_ALIKE)
        alike[known, : found.shape[1]] = known[found]
    return alike


def pack_map(points: Numbers) -> Numbers:
    """Returns points of 12 bits a side in three bytes each, uint8 [N, 3]."""
    x, y = points.astype(np.uint32).T
    packed: Numbers = np.stack([x & 255, x >> 8 | (y & 15) << 4, y >> 4], 1).astype(np.uint8)
    return packed
