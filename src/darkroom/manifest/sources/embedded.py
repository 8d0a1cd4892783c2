"""Notices images and boxes in the cells of a table, where others are expected."""

from __future__ import annotations

import ast
import base64
import json
import posixpath
import re
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
_DATA_URI = re.compile(r"data:[^,]*;base64,|data:image/")
_NUMBER = (int, float)
_NAMED = "path"
_HEX_MARK = re.compile(r"0x|\\x")


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
    if (column := schema.image) and (write := _find_common(cells[column], _find_writer)):
        what = 'Write them into a folder, as "images", and name the files'
        lines = "" if frame == "df" else f"  df = {frame}\n"
        paths = 'f"images/{n}.png" for n in range(len(df))'
        if write == _NAMED:
            what = "Take out the paths"
            folder = posixpath.dirname(name)
            paths = f'os.path.join({folder!r}, cell["path"]) for cell in df[{column!r}]'
        else:
            lines += f"  for n, cell in enumerate(df[{column!r}]): {write}\n"
        raise DataError(
            f"{name}: the column {column!r} holds images, not their paths.",
            f'{what}:\n{lines}  df[{column!r}] = [{paths}]\n  darkroom.convert(df, "records")',
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


def _find_common(cells: Iterable[Any], find: Callable[[Any], str]) -> str:
    """Returns what is found in half of the first cells; fewer are rows that are rejected."""
    sample = [cell for cell in islice(cells, SAMPLE_ROWS) if cell is not None]
    found = [*filter(None, map(find, sample))]
    return found[0] if found and 2 * len(found) >= len(sample) else ""


def _find_writer(cell: Any) -> str:
    """Returns Python that writes the image in a cell to a file; empty where there is no image.

    `_NAMED` of a cell of Hugging Face that only names the file.
    """
    path = 'f"images/{n}.png"'
    if data := _find_bytes(cell):
        return f"pathlib.Path({path}).write_bytes({data})"
    if isinstance(cell, Mapping) and {*cell} == {"bytes", "path"}:
        return _NAMED
    if hasattr(cell, "save") and hasattr(cell, "getbands"):
        return f"cell.save({path})"
    if isinstance(cell, str) and len(cell) > MAX_PATH_CHARACTERS:
        return f"pathlib.Path({path}).write_bytes(base64.b64decode(cell))"
    if num_axes := _count_axes(cell):
        shape = ".reshape(HEIGHT, WIDTH, -1).squeeze()" if num_axes == 1 else ""
        return f"PIL.Image.fromarray(numpy.array(cell, 'uint8'){shape}).save({path})"
    return ""


def _find_bytes(cell: Any, code: str = "cell") -> str:
    """Returns Python that gives the image file in a cell as bytes; empty where there is none.

    Args:
        cell: The cell, or what is in it.
        code: Python for it.
    """
    if isinstance(cell, Mapping):
        inner = (_find_bytes(value, f"{code}[{key!r}]") for key, value in cell.items())
        return next(filter(None, inner), "")
    if isinstance(cell, bytes | bytearray | memoryview):
        data = bytes(cell)
        if _is_image(data) or b"\0" in data:
            return code
        # Some writers of Parquet know no text.
        return _find_decoder(data.decode(errors="replace"), f"{code}.decode()")
    if isinstance(cell, list | tuple) and len(cell) == 1:
        return _find_bytes(cell[0], f"{code}[0]")
    if _count_axes(cell) == 1:
        with suppress(TypeError, ValueError):  # not the numbers of bytes
            return f"bytes({code})" if _is_image(bytes([*cell[:_BEGIN_CHARACTERS]])) else ""
    return _find_decoder(cell, code) if isinstance(cell, str) else ""


def _find_decoder(text: str, code: str) -> str:
    """Returns Python that makes an image file of a text; empty where the text is none."""
    if _DATA_URI.match(text):
        return f'base64.b64decode({code}.rpartition(",")[2])'
    begin = "".join(text[: 2 * _BEGIN_CHARACTERS].split())[:_BEGIN_CHARACTERS]
    if len(begin) < _BEGIN_CHARACTERS:
        return ""
    with suppress(ValueError):
        if _is_image(base64.b64decode(begin, validate=True)):
            return f"base64.b64decode({code})"
    with suppress(ValueError):
        if _is_image(base64.b64decode(begin, "-_", validate=True)):
            return f"base64.urlsafe_b64decode({code})"
    mark = _HEX_MARK.match(begin)
    with suppress(ValueError):
        if _is_image(bytes.fromhex(begin[2:] if mark else begin)):
            return f"bytes.fromhex({code}[2:])" if mark else f"bytes.fromhex({code})"
    if begin.startswith(("b'", 'b"')):  # as pandas writes bytes into a CSV
        with suppress(ValueError, SyntaxError):
            return f"ast.literal_eval({code})" if _is_image(ast.literal_eval(text)) else ""
    return ""


def _is_image(data: bytes) -> bool:
    """Tells whether bytes begin like an image; a BMP also by its zeros, as BMW/1.jpg is a path."""
    return sniff_format(data) is not None and (data[:2] != b"BM" or data[6:10] == bytes(4))


def _count_axes(cell: Any) -> int:
    """Returns the number of axes of an array of numbers, or of lists of them; 0 for others."""
    if isinstance(cell, list) and cell:
        is_table = isinstance(cell[0], list)
        return 1 + is_table if is_table or (len(cell) > 1 and isinstance(cell[0], _NUMBER)) else 0
    is_array = getattr(getattr(cell, "dtype", None), "kind", "") in ("b", "u", "i", "f")
    return getattr(cell, "ndim", 0) if is_array else 0
