"""Notices images and boxes in the cells of a table, where others are expected."""

from __future__ import annotations

import base64
import json
import posixpath
import shlex
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from darkroom.dataset.schema import Kind, Schema
from darkroom.errors import DataError
from darkroom.images.headers import sniff_format
from darkroom.storage.uris import MAX_PATH_CHARACTERS
from darkroom.targets.form import parse_objects

SAMPLE_ROWS = 100
# So many characters tell how an image became text. No image has fewer; names without an ending may.
_BEGIN_CHARACTERS = 48
# What a cell has that is not the bytes of a file: the name of one in Hugging Face's form, or pixels
# or a text for which there are too many forms.
_NAMED, _OTHER = "path", "other"


def check_cells(
    name: str, schema: Schema, cells: Mapping[str, Iterable[Any]], frame: str = "df"
) -> None:
    """Checks that columns have paths and labels, but no images, and features no boxes.

    Args:
        name: The source, for the message.
        schema: Its columns.
        cells: The first cells of its columns; those that are None do not count.
        frame: Python for the DataFrame that has it.

    Raises:
        DataError: A column has the images themselves, or boxes are lost because of its name.
    """
    if (column := schema.image) and (data := _find_common(cells[column], _find_image)):
        raise DataError(
            f"{name}: the column {column!r} holds images, not their paths.",
            _advise(name, column, data, frame),
        )
    if (column := schema.label) and _find_common(cells[column], _find_bytes):
        raise DataError(
            f"{name}: the column {column!r} holds images, not labels.",
            'Say which columns hold paths and labels: --columns \'{"path": "image", "species": '
            '"string_label"}\' (columns= in Python).',
        )
    names = () if schema.targets else dict(schema.inputs)
    if column := next((each for each in names if any(map(_has_boxes, cells[each]))), None):
        kinds = {each: kind.value for each, kind in schema.columns} | {column: Kind.OBJECTS.value}
        raise DataError(
            f"{name}: the column {column!r} has boxes, but it is not named objects, and no column "
            "has labels.",
            f"Rename it, or give the kinds: --columns {shlex.quote(json.dumps(kinds))} (columns= "
            'in Python). With "ignored" there it is left out.',
        )


def list_looked_at(schema: Schema) -> list[str]:
    """Returns the columns whose first cells `check_cells` looks at."""
    others = [schema.label] if schema.targets else dict(schema.inputs)
    return [*filter(None, (schema.image, *others))]


def _has_boxes(cell: Any) -> bool:
    """Tells whether a cell has objects, in one of the forms that `as_objects` takes."""
    with suppress(TypeError, ValueError, LookupError):
        cell = parse_objects(cell) if isinstance(cell, str) else cell
        first = cell if isinstance(cell, Mapping) else cell[0]
        return isinstance(first, Mapping) and not {"box", "bbox"}.isdisjoint(first)
    return False


def _advise(name: str, column: str, data: str, frame: str) -> str:
    """Returns how to get the paths of the images in a column, with Python as far as it is known."""
    what = 'Write them into a folder, as "images", and name the files'
    if data == _OTHER:
        return f"{what}."
    lines = "" if frame == "df" else f"  df = {frame}\n"
    paths = 'f"images/{n}.png" for n in range(len(df))'
    if data == _NAMED:
        what = "Take out the paths"
        folder = posixpath.dirname(name)
        paths = f'os.path.join({folder!r}, cell["path"]) for cell in df[{column!r}]'
    else:
        write = f'pathlib.Path(f"images/{{n}}.png").write_bytes({data})'
        lines += f"  for n, cell in enumerate(df[{column!r}]): {write}\n"
    return f'{what}:\n{lines}  df[{column!r}] = [{paths}]\n  darkroom.convert(df, "records")'


def _find_common(cells: Iterable[Any], find: Callable[[Any], str]) -> str:
    """Returns what is found in half of the first cells; fewer are rows that are rejected."""
    sample = [cell for cell in islice(cells, SAMPLE_ROWS) if cell is not None]
    found = [*filter(None, map(find, sample))]
    return found[0] if found and 2 * len(found) >= len(sample) else ""


def _find_image(cell: Any) -> str:
    """Returns Python for the bytes of the image in a cell, or what else it has of an image."""
    if data := _find_bytes(cell):
        return data
    if isinstance(cell, Mapping):
        return _NAMED if {*cell} == {"bytes", "path"} else ""
    is_long = isinstance(cell, str) and len(cell) > MAX_PATH_CHARACTERS
    # Pixels; rows whose cells list texts are rejected.
    is_list = isinstance(cell, list | tuple) and len(cell) > 1
    has_pixels = is_list and not isinstance(cell[0], str | bytes)
    is_array = getattr(cell, "ndim", 0) or hasattr(cell, "getbands")
    return _OTHER if is_long or has_pixels or is_array else ""


def _find_bytes(cell: Any, code: str = "cell") -> str:
    """Returns Python that gives the image file in a cell as bytes; empty where there is none.

    Args:
        cell: The cell, or what is in it.
        code: Python for it.
    """
    if isinstance(cell, Mapping):
        inner = (_find_bytes(value, f"{code}[{key!r}]") for key, value in cell.items())
        return next(filter(None, inner), "")
    if isinstance(cell, bytes | bytearray):
        # Some writers of Parquet know no text.
        return code if _is_image(cell) or b"\0" in cell else ""
    if isinstance(cell, str):
        text = cell.rpartition(",")[2] if cell.startswith("data:") else cell
        begin = "".join(text[: 2 * _BEGIN_CHARACTERS].split())[:_BEGIN_CHARACTERS]
        with suppress(ValueError):
            is_image = _is_image(base64.b64decode(begin, validate=True))
            if is_image and len(begin) == _BEGIN_CHARACTERS:
                return f'base64.b64decode({code}.rpartition(",")[2])'
    return ""


def _is_image(data: bytes | bytearray) -> bool:
    """Tells whether bytes begin like an image; a BMP also by its zeros, as BMW/1.jpg is a path."""
    found = sniff_format(bytes(data))
    return found is not None and (data[:2] != b"BM" or data[6:10] == bytes(4))
