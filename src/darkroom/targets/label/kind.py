"""One label an image. Without a column of labels, it is None."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from darkroom.dataset import labels
from darkroom.dataset.example import LABEL_NUMBER, LABEL_TEXT
from darkroom.errors import RejectError
from darkroom.targets.form import Form
from darkroom.targets.kind import TargetKind

MAX_INTEGER_LABEL = 65_535


class LabelKind(TargetKind):
    """See `darkroom.targets.kind.TargetKind`; the value is text."""

    name = "label"
    column = pa.string()
    features: Mapping[str, str] = {LABEL_NUMBER: "int64", LABEL_TEXT: "bytes"}
    shown = LABEL_TEXT
    says = "label"
    names = "{column}"
    value_column = "label"
    relabels = "one"

    def parse_row(self, cells: Sequence[Any], form: Form) -> str:
        """Returns the label of a cell: see `parse_label`."""
        return parse_label(cells[0], form)

    def list_names(self, values: pa.Array) -> pa.ListArray:
        """Returns a list of the label for each."""
        counts = values.is_valid().cast(pa.int32())
        starts = pc.subtract(pc.cumulative_sum(counts), counts)
        # An offset that is null makes its list null.
        known = pc.if_else(values.is_valid(), starts, pa.scalar(None, pa.int32()))
        end = pa.array([len(values) - values.null_count], pa.int32())
        return pa.ListArray.from_arrays(pa.concat_arrays([known, end]), values.drop_null())

    def number(self, values: pa.Array, label_map: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Returns the labels, and the number of each."""
        return values, pc.index_in(values, label_map).cast(pa.int64())

    def encode(self, value: str | None, numbers: int | None) -> dict[str, Any]:
        """Returns the number and the text."""
        if value is None or numbers is None:
            return {}
        return {LABEL_NUMBER: numbers, LABEL_TEXT: value.encode()}

    def make_array(self, numbers: Sequence[int | None], size: int) -> np.ndarray[Any, Any]:
        """Returns the numbers, int64 [N]."""
        return np.array([number or 0 for number in numbers], np.int64)

    def decode(self, features: Mapping[str, Sequence[Any]]) -> str | None:
        """Returns the text of a record."""
        texts = features.get(LABEL_TEXT)
        return texts[0].decode() if texts else None

    def show(self, value: str | None) -> str:
        """Returns the label."""
        return value or ""


def parse_label(text: str, form: Form) -> str:
    """Returns the label that a text is.

    Raises:
        RejectError: It is empty, too long, has control or invisible characters, is not a number
            where labels are numbers, or is not in the label map.
    """
    label = labels.normalise_label(text)
    if not label:
        raise RejectError("empty_label", "the label cell is empty")
    if len(label) > labels.MAX_LABEL_CHARACTERS:
        limit = f"{labels.MAX_LABEL_CHARACTERS:,}"
        raise RejectError(
            "bad_label", f"the label has more than {limit} characters: {label:.40}..."
        )
    if not labels.is_printable(label):
        shown = f"{label!r:.200}"
        raise RejectError("bad_label", f"the label holds control or invisible characters: {shown}")
    if not form.has_types and not (form.known and label in form.known):
        label = labels.drop_point(label)
    if form.are_numbers:
        return _parse_number(label)
    if form.known is not None and label not in form.known:
        raise RejectError("unknown_label", f"the label map does not have {label!r}")
    return label


def _parse_number(label: str) -> str:
    """Returns a label that is a number, as text without leading zeros."""
    if not label.isascii() or not label.isdigit() or int(label) > MAX_INTEGER_LABEL:
        expected = f"a whole number from 0 to {MAX_INTEGER_LABEL}"
        raise RejectError("bad_value", f"the label {label!r} is not {expected}")
    return str(int(label))


KIND = LabelKind()
