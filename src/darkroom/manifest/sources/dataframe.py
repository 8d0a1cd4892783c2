"""pandas DataFrames, without importing pandas."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import repeat
from typing import Any

from darkroom.dataset.labels import SEE_FORMS
from darkroom.dataset.read_as import ReadAs
from darkroom.dataset.schema import KNOWN_NAMES, Columns, Kind
from darkroom.dataset.sources import DataFrame
from darkroom.errors import DataError
from darkroom.manifest.sources.base import Row, Source
from darkroom.manifest.sources.embedded import SAMPLE_ROWS, check_cells, list_looked_at
from darkroom.manifest.sources.objects import as_plain
from darkroom.manifest.sources.parquet import make_row
from darkroom.runtime.text import MAX_LISTED_ROWS


class DataFrameSource(Source):
    """Reads a DataFrame; see `Source`. Its index is left out.

    Relative image paths are resolved against the working folder; a frame has no folder of its
    own, so keys are made of the paths as given.
    """

    def __init__(self, frame: DataFrame, columns: Columns) -> None:
        self.name = "the DataFrame"
        self.base = os.getcwd()
        self.identity_base = ""
        self._frame = frame
        names = [str(name) for name in frame.columns]
        if not len(frame):
            raise DataError("The DataFrame has no rows.", "Give it one row for each image.")
        _check_index(frame)
        kinds = {
            str(name): _KINDS.get(dtype.kind, Kind.STRING) for name, dtype in frame.dtypes.items()
        }
        self.schema = columns.find_schema(names, kinds)
        if not self.schema.targets and columns.schema is None:
            _check_names(frame)
        self._places = [names.index(name) for name, _ in self.schema.columns]
        cells = {
            name: frame.iloc[:SAMPLE_ROWS, names.index(name)].dropna().tolist()
            for name in list_looked_at(self.schema)
        }
        check_cells(self.name, self.schema, cells)
        unread = tuple(name for name in names if name not in dict(self.schema.columns))
        self.read_as = ReadAs("DataFrame", files=0, unread=unread)

    def rows(self) -> Iterator[Row]:
        """Yields every row of the frame."""
        columns = [
            map(_as_python, self._frame.iloc[:, place].tolist(), repeat(kind))
            for place, (_, kind) in zip(self._places, self.schema.columns, strict=True)
        ]
        for row, values in enumerate(zip(*columns, strict=True), start=1):
            yield make_row(row, values, self.schema)


def _check_index(frame: Any) -> None:
    """Checks that the index does not hold values that belong into a column.

    Raises:
        DataError: It has.
    """
    known = {name for names in KNOWN_NAMES.values() for name in names}
    found = [name for name in frame.index.names if str(name).strip().lower() in known]
    if found:
        raise DataError(
            f"The index of the DataFrame has {found}, but only columns are read.",
            "Make them columns: df.reset_index().",
        )


def _check_names(frame: Any) -> None:
    """Checks that a column with a number for a name is not taken for a feature by mistake.

    Raises:
        DataError: There is such a column where no other one has labels.
    """
    if unnamed := [name for name in frame.columns if not isinstance(name, str)]:
        raise DataError(
            f"No column of the DataFrame holds labels, and these have no text for a name: "
            f"{unnamed[:MAX_LISTED_ROWS]}.",
            "Name them, as in df.rename(columns={0: 'label'}), or say what they are: "
            f"columns={{'image_uri': 'image', '0': 'string_label'}}. {SEE_FORMS}",
        )


# Kinds by numpy's letters, which pandas' own nullable integers and floats have, too.
_KINDS = {"i": Kind.INTEGER, "u": Kind.INTEGER, "b": Kind.INTEGER, "f": Kind.FLOAT}


def _as_python(value: Any, kind: Kind) -> Any:
    """Returns an element of a column as Python's own type; a column of dtype object holds any."""
    # pandas.NA has no truth value and equals nothing, so only its type can be checked.
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if kind is Kind.OBJECTS:
        return as_plain(value)
    return value.tolist() if hasattr(value, "tolist") else value
