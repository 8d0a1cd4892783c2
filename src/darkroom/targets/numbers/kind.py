"""Numbers to predict from an image, a column each; a number that is missing is NaN."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from darkroom.dataset.schema import Kind, parse_input_value
from darkroom.errors import RejectError
from darkroom.targets.form import REJECT_EMPTY, Form
from darkroom.targets.kind import TargetKind

TARGET = "image/target"


# A missing number is NaN; images that are not annotated are counted for every kind.
_SUMMARY = """
WITH numbers AS (
    SELECT split, unnest(range(1, len(label_list) + 1)) AS number,
        unnest(label_list)::DOUBLE AS found, CASE WHEN NOT isnan(found) THEN found END AS value
    FROM records
)
SELECT name, split, count(value) AS records, count(*) - count(value) AS missing,
    min(value) AS min, median(value) AS median, avg(value) AS mean, max(value) AS max
FROM numbers JOIN fields USING (number) GROUP BY number, name, split
ORDER BY number, list_position(['train', 'eval', 'test'], split)
"""


class NumbersKind(TargetKind):
    """See `darkroom.targets.kind.TargetKind`; the value is a float for each column."""

    name = "numbers"
    column = pa.list_(pa.float32())
    features: Mapping[str, str] = {TARGET: "float"}
    shown = TARGET
    says = "label::VARCHAR"
    names = None
    lists = (TARGET,)
    # A place is another one in a mirrored image, and a size in one that is cut.
    augmentation = "none"
    summary = _SUMMARY

    def parse_row(self, cells: Sequence[Any], form: Form) -> list[float] | None:
        """Returns the numbers of the cells; None if all are empty."""
        found = [
            _parse_number(name, cell, form) for name, cell in zip(form.columns, cells, strict=True)
        ]
        return None if all(map(math.isnan, found)) else found

    def list_names(self, values: pa.ListArray) -> pa.ListArray:
        """Returns no names for any of them."""
        no_names = pa.scalar([], pa.list_(pa.string()))
        return pc.if_else(values.is_valid(), no_names, pa.scalar(None, no_names.type))

    def number(self, values: pa.Array, label_map: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Returns the numbers, and nothing for each: they have no names."""
        return values, pa.nulls(len(values), pa.int64())

    def encode(self, value: Sequence[float] | None, numbers: None) -> dict[str, Any]:
        """Returns the numbers."""
        return {} if value is None else {TARGET: list(value)}

    def make_array(
        self, numbers: Sequence[Sequence[float] | None], size: int
    ) -> np.ndarray[Any, Any]:
        """Returns the numbers, float32 [N, K]."""
        missing = [np.nan] * size
        found = [missing if value is None else value for value in numbers]
        return np.array(found, np.float32).reshape(-1, size)

    def decode(self, features: Mapping[str, Sequence[Any]]) -> list[float] | None:
        """Returns the numbers of a record."""
        found = features.get(TARGET)
        return list(found) if found else None

    def show(self, value: Sequence[float] | None) -> str:
        """Returns the numbers, separated by commas."""
        return "" if value is None else ", ".join(f"{each:g}" for each in value)


def _parse_number(name: str, cell: str, form: Form) -> float:
    """Returns the number of a cell of the column `name`; NaN if it is empty, and may be.

    Raises:
        RejectError: It is empty and may not be, or is not a finite number.
    """
    text = cell.strip()
    if not text:
        if form.empty == REJECT_EMPTY:
            raise RejectError("empty_label", f"column {name!r}: the cell is empty")
        return math.nan
    try:
        number = parse_input_value(text, Kind.FLOAT)
    except (ValueError, OverflowError):
        number = math.inf  # rejected below, as a text that means infinity
    if not isinstance(number, float) or not math.isfinite(number):
        raise RejectError("bad_value", f"column {name!r}: expected a number, got {text!r:.80}")
    return number


KIND = NumbersKind()
