"""Tells whether a CSV begins with a header; without one, tells its columns apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from darkroom.dataset import splits
from darkroom.dataset.schema import KNOWN_NAMES, Kind, Schema, find_boxes, find_object_columns
from darkroom.errors import DataError
from darkroom.images.headers import is_image_name
from darkroom.storage import uris

# The most records that may be before a header.
_MAX_BEFORE = 10
OTHER_BOXES = (
    "These seem to be boxes. Write them into a column objects, or as one of the forms in "
    "docs/guides/boxes.md. To use the classes alone, write a CSV with the columns image_uri and "
    "label."
)
_COLUMN_NAMES = frozenset(name for names in KNOWN_NAMES.values() for name in names)


class Header(NamedTuple):
    """Where the rows of a CSV begin.

    Attributes:
        first: The place of the header among the records; without one that of the first row.
        names: The names of the columns; None without a header.
    """

    first: int
    names: list[str] | None


def find_header(records: Sequence[Sequence[str]], schema: Schema | None) -> Header:
    """Finds the header of a CSV: of the records before it, as a title, one may look like an image.

    Args:
        records: The first records of the CSV.
        schema: The kind of every column, if the user gave it.
    """
    wanted = None if schema is None else {name for name, _ in schema.columns}
    may_be = [place for place, record in enumerate(records) if not is_comment(record)]
    num_images = 0
    for place in may_be[: _MAX_BEFORE + 1]:
        names = [cell.strip() for cell in records[place]]
        if wanted is None:
            kinds = _find_kinds(names)
            # After an image, a label could be called "image".
            is_alone = not place or (Kind.IMAGE in kinds and len(kinds) > num_images)
            is_one = find_object_columns(names) is not None or (
                is_alone and is_header(records[place:])
            )
        else:
            is_one = wanted.issubset(names)
        if is_one:
            return Header(place, names)
        num_images += looks_like_image(names)
        if num_images > 1:
            break
    first = may_be[0] if may_be else 0
    first += _is_title(records[first], records[first + 1 :])
    names = [cell.strip() for cell in records[first]]
    # With a name in common it is a header, and `check_columns` reports missing columns.
    if wanted is not None and (len(wanted) != len(names) or not wanted.isdisjoint(names)):
        return Header(first, names)
    return Header(first, None)


def _find_kinds(names: Iterable[str]) -> list[Kind]:
    """Returns the kinds of columns that have one of these names."""
    lowered = {name.lower() for name in names}
    return [kind for kind, known in KNOWN_NAMES.items() if not lowered.isdisjoint(known)]


def is_comment(record: Sequence[str]) -> bool:
    """Tells whether a record is a comment, or the line by which Excel knows the separator."""
    text = ",".join(record)
    if text.startswith("# ") or re.fullmatch("sep=.", text, re.IGNORECASE):
        return True
    return text.startswith("#") and not looks_like_image(record)


def _is_title(record: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Tells whether a record has one text, and others, which come after it, have more."""
    is_one = min(map(_count_filled, others), default=0) > _count_filled(record) == 1
    return is_one and not any(map(_path_score, record))


def _count_filled(record: Sequence[str]) -> int:
    return sum(bool(cell.strip()) for cell in record)


def find_odd_first(records: Sequence[Sequence[str]]) -> str:
    """Tells in which way the first row of a CSV without header is unlike all others, if it is."""
    first, *others = records
    forms = {tuple(map(_is_image, record)) for record in others}
    if len(forms) == 1 and tuple(map(_is_image, first)) not in forms:
        return "is unlike all others"
    for cell, *column in zip(*records, strict=False):
        if column and cell.strip().lower() in _COLUMN_NAMES and cell not in column:
            return f"has the name of a column, {cell.strip()!r:.80}"
    return ""


def is_header(records: Sequence[Sequence[str]]) -> bool:
    """Tells whether the first record of a CSV names columns rather than an image.

    Cells of a header may look like images ("w/h"), and a label may have the name of a column
    ("image"). The rows below tell them apart: a column named as the images holds them.

    Args:
        records: The first records of the CSV.
    """
    first, *others = records
    lowered = [cell.strip().lower() for cell in first]
    named = _find_kinds(lowered)
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
    _check_first(records, image)
    if split is None:
        # Where no row declares a split, the column of splits is empty; it is before the image.
        split = next((i for i in range(image) if not any(columns[i])), None)
    if split is not None:
        names[split] = "split"
    names[image] = "image_uri"
    if _has_corners([columns[i] for i in rest if not names[i]]):
        raise DataError(
            f"The CSV has no header, and seems to have boxes: {list(records[0])}.",
            "Add a header line, such as image_uri,xmin,ymin,xmax,ymax,label.",
        )
    label = next((i for i in rest if not names[i] and not _is_index(columns[i])), None)
    if label is not None:
        names[label] = "label"
    return names


def _has_corners(columns: Sequence[Sequence[str]]) -> bool:
    """Tells whether columns are four numbers, one after the other, and a text."""
    kinds = "".join("1" if _are_numbers(cells) else "t" for cells in columns if any(cells))
    return "1111" in kinds and kinds.count("1") == 4 and "t" in kinds


def _are_numbers(cells: Sequence[str]) -> bool:
    return all(cell.lstrip("-").replace(".", "", 1).isdecimal() for cell in cells if cell)


def _check_first(records: Sequence[Sequence[str]], image: int) -> None:
    """Checks that no record before the first image is the header.

    Raises:
        DataError: Below it, all are images.
    """
    scores = [_path_score(record[image]) if image < len(record) else 0 for record in records]
    first = next(place for place, score in enumerate(scores) if score)
    header = records[first - 1] if first and all(scores[first:]) else ()
    if image < len(header) and header[image].strip():
        hint = (
            "Name the columns split, image_uri and label, or give their kinds: "
            f'--columns \'{{"{header[image].strip()}": "image", ...}}\' (columns= in Python).'
        )
        raise DataError(
            f"The CSV seems to have a header with unknown names: {list(header)}.",
            OTHER_BOXES if find_boxes(header) else hint,
        )


def _is_index(cells: Sequence[str]) -> bool:
    """Tells whether cells are the numbers of the rows, as pandas writes them in front."""
    if len(cells) < 2 or cells[0] not in ("0", "1"):
        return False
    return list(cells) == [str(int(cells[0]) + place) for place in range(len(cells))]


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


def looks_like_image(record: Sequence[str]) -> bool:
    """Tells whether a record has a cell that must be an image."""
    return any(map(_is_image, record))


def _is_image(cell: str) -> bool:
    return uris.has_scheme(cell) or is_image_name(cell)
