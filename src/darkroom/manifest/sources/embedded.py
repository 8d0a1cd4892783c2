"""Notices images in the cells of a table, where paths of images are expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from darkroom.errors import DataError
from darkroom.storage.uris import MAX_PATH_CHARACTERS


def check_no_images(name: str, column: str, cells: Iterable[Any], frame: str = "df") -> None:
    """Checks that a column of images has their paths.

    Args:
        name: The source, for the message.
        column: The column.
        cells: Its cells, of which the first that is not None counts.
        frame: Python for the DataFrame that has it.

    Raises:
        DataError: It has the images themselves.
    """
    cell = next((cell for cell in cells if cell is not None), None)
    if not (write := _find_writer(cell)):
        return
    begin = "" if frame == "df" else f"  df = {frame}\n"
    rows = f"enumerate(df[{column!r}])"
    raise DataError(
        f"{name}: the column {column!r} holds images, not their paths.",
        f'Write them into a folder, as "images", and name the files:\n{begin}'
        f"  for n, cell in {rows}: {write}\n"
        f'  df[{column!r}] = [f"images/{{n}}.png" for n in range(len(df))]\n'
        '  darkroom.convert(df, "records")',
    )


def _find_writer(cell: Any) -> str:
    """Returns Python that writes the image in a cell to a file; empty where there is no image."""
    path = 'f"images/{n}.png"'
    if isinstance(cell, Mapping):
        if isinstance(cell.get("bytes"), bytes):
            return f'pathlib.Path({path}).write_bytes(cell["bytes"])'
        # Hugging Face names the file where it is on this machine.
        return f'shutil.copy(cell["path"], {path})' if {*cell} == {"bytes", "path"} else ""
    if isinstance(cell, str):
        decoded = 'base64.b64decode(cell.rpartition(",")[2])'
        is_path = len(cell) <= MAX_PATH_CHARACTERS and not cell.startswith("data:image/")
        return "" if is_path else f"pathlib.Path({path}).write_bytes({decoded})"
    if isinstance(cell, bytes | bytearray | memoryview):
        return "" if _is_text(bytes(cell)) else f"pathlib.Path({path}).write_bytes(cell)"
    if hasattr(cell, "save") and hasattr(cell, "getbands"):
        return f"cell.save({path})"
    if getattr(cell, "ndim", 0) > 1 or _is_table(cell):
        return f"PIL.Image.fromarray(numpy.array(cell, 'uint8')).save({path})"
    return ""


def _is_text(data: bytes) -> bool:
    """Tells whether bytes are those of a path: some writers of Parquet know no text."""
    try:
        return len(data) <= MAX_PATH_CHARACTERS and data.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _is_table(cell: Any) -> bool:
    return isinstance(cell, list) and bool(cell) and isinstance(cell[0], list)
