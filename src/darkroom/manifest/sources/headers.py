"""Tells whether a CSV begins with a header; without one, tells its columns apart."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence

from darkroom.dataset import splits
from darkroom.dataset.schema import KNOWN_NAMES, Kind
from darkroom.errors import DataError
from darkroom.manifest.sources.folder import IMAGE_ENDINGS
from darkroom.storage import uris


def is_header(records: Sequence[Sequence[str]]) -> bool:
    """Tells whether the first record of a CSV names columns rather than an image.

    Cells of a header may look like images ("w/h"), and a label may have the name of a column
    ("image"). The rows below tell them apart: a column named as the images holds them.

    Args:
        records: The first records of the CSV.
    """
    first, *others = records
    lowered = [cell.strip().lower() for cell in first]
    named = [kind for kind, names in KNOWN_NAMES.items() if not set(names).isdisjoint(lowered)]
    like_images = [i for i, cell in enumerate(lowered) if _is_image(cell) or "/" in cell]
    if not named or not like_images:
        return bool(named)
    image = next((i for i, cell in enumerate(lowered) if cell in KNOWN_NAMES[Kind.IMAGE]), None)
    if image is None:
        return False
    score, *rest = (
        _mean_score([record[i] for record in others if i < len(record)])
        for i in (image, *like_images)
    )
    return score > max(rest) or (score == max(rest) and len(named) > 1)


def infer_roles(records: Sequence[Sequence[str]]) -> list[str]:
    """Returns column names for a CSV without a header, from its first records.

    The split is the column in which every cell names a split, the image the one that looks most
    like paths, the label the first other one. AutoML Vision's files have this form, in this order.

    Returns:
        One name for each column. Columns after the label have the empty name: AutoML writes more
        labels of an image there.

    Raises:
        DataError: No column looks like image paths, or the first record is a header of unknown
            names.
    """
    width = max(len(record) for record in records)
    columns = [[r[i].strip() for r in records if i < len(r)] for i in range(width)]
    names = [""] * width
    rest = list(range(width))
    split = next((i for i in rest if _is_split_column(columns[i])), None)
    others = [i for i in rest if i != split]
    image = max(others, key=lambda i: (_mean_score(columns[i]), -i), default=None)
    if image is None or not _mean_score(columns[image]):
        raise DataError(
            f"The CSV has no header, and no column looks like image paths: {list(records[0])}.",
            "Add a header line, such as split,image_uri,label.",
        )
    _check_first(records[0], columns[image])
    if split is None:
        # Where no row declares a split, the column of splits is empty; it is before the image.
        split = next((i for i in range(image) if not any(columns[i])), None)
    if split is not None:
        names[split] = "split"
    names[image] = "image_uri"
    label = next((i for i in rest if not names[i]), None)
    if label is not None:
        names[label] = "label"
    return names


def _check_first(record: Sequence[str], images: Sequence[str]) -> None:
    first, *others = map(_path_score, images)
    if images[0] and not first and others and all(others):
        raise DataError(
            f"The CSV seems to have a header with unknown names: {list(record)}.",
            "Name the columns split, image_uri and label, or give their kinds: "
            f'--columns \'{{"{images[0]}": "image", ...}}\' (columns= in Python).',
        )


def _is_split_column(cells: Iterable[str]) -> bool:
    """Tells whether all cells are splits, or nearly all, so that a wrong one can be reported."""
    filled = [cell for cell in cells if cell]
    known = sum(splits.parse_split(cell) is not None for cell in filled)
    return known > 0.8 * len(filled)


def _mean_score(cells: Sequence[str]) -> float:
    return sum(map(_path_score, cells)) / max(1, len(cells))


def _path_score(cell: str) -> int:
    """Returns 2 for a cell that must be an image, 1 for one that may be a path, 0 for others."""
    if _is_image(cell):
        return 2
    return int("/" in cell or "." in cell.strip(".0123456789"))


def _is_image(cell: str) -> bool:
    return uris.has_scheme(cell) or posixpath.splitext(cell)[1].lower() in IMAGE_ENDINGS
