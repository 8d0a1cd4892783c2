"""Any number of labels an image: the empty list says that it shows none of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from darkroom.dataset.example import LABEL_NUMBER, LABEL_TEXT
from darkroom.errors import RejectError
from darkroom.targets.arrays import join_images
from darkroom.targets.form import NONE_OF_THESE, REJECT_EMPTY, Form
from darkroom.targets.kind import TargetKind
from darkroom.targets.label.kind import parse_label

# A list without values and a list that is absent look the same to a reader of records.
LABELS_KNOWN = "image/class/annotated"


class LabelsKind(TargetKind):
    """See `darkroom.targets.kind.TargetKind`; the value is a list of texts, none of them twice."""

    name = "labels"
    column = pa.list_(pa.string())
    features: Mapping[str, str] = {
        LABEL_NUMBER: "int64",
        LABEL_TEXT: "bytes",
        LABELS_KNOWN: "int64",
    }
    shown = LABEL_TEXT
    says = "''"
    joined = "list_distinct(flatten(list(label)))"
    parts = "{column}"
    same = "list_sort({column})"
    # An image that is not annotated has one row, without a name.
    names = "unnest(coalesce({column}, [NULL]))"
    lists = (LABEL_NUMBER, LABEL_TEXT)
    relabels = "several"

    def parse_row(self, cells: Sequence[Any], form: Form) -> list[str] | None:
        """Returns the labels of a cell with a separator, of a list, or of columns with 0 or 1."""
        if form.separator is None:
            found = list(_find_marked(cells, form))
            is_empty = all(_is_empty(cell) for cell in cells)
        else:
            is_empty = _is_empty(cells[0])
            found = [] if is_empty else _split(cells[0], form.separator)
        if is_empty and form.empty == REJECT_EMPTY:
            raise RejectError("empty_label", "the cell of the labels is empty")
        if is_empty and form.empty != NONE_OF_THESE:
            return None
        return list(dict.fromkeys(parse_label(text, form) for text in found))

    def list_names(self, values: pa.ListArray) -> pa.ListArray:
        """Returns the labels."""
        return values

    def number(self, values: pa.Array, label_map: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Returns the labels of each image in the order of their numbers, and these numbers."""
        numbers = pc.index_in(values.flatten(), label_map).to_numpy(zero_copy_only=False)
        lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
        images = np.repeat(np.arange(len(values)), lengths)
        ordered = pa.array(numbers[np.lexsort((numbers, images))], pa.int64())
        return join_images(values, label_map.take(ordered)), join_images(values, ordered)

    def encode(self, value: Sequence[str] | None, numbers: Sequence[int] | None) -> dict[str, Any]:
        """Returns numbers and texts, and whether they are known."""
        if value is None or numbers is None:
            return {LABELS_KNOWN: 0}
        texts = [text.encode() for text in value]
        return {LABEL_NUMBER: list(numbers), LABEL_TEXT: texts, LABELS_KNOWN: 1}

    def make_array(
        self, numbers: Sequence[Sequence[int] | None], size: int
    ) -> np.ndarray[Any, Any]:
        """Returns the vectors, float32 [N, C]."""
        found = np.zeros((len(numbers), size), np.float32)
        for vector, each in zip(found, numbers, strict=True):
            if each is None:
                vector[:] = np.nan
            else:
                vector[each] = 1
        return found

    def decode(self, features: Mapping[str, Sequence[Any]]) -> list[str] | None:
        """Returns the texts of a record."""
        if not features.get(LABELS_KNOWN, [0])[0]:
            return None
        return [text.decode() for text in features.get(LABEL_TEXT, ())]

    def show(self, value: Sequence[str] | None) -> str:
        """Returns the labels, separated by commas."""
        return "" if value is None else ", ".join(value) or "(none)"


def _is_empty(cell: Any) -> bool:
    return isinstance(cell, str) and not cell.strip()


def _split(cell: Any, separator: str) -> list[str]:
    """Returns the texts in a cell, which is text or a list."""
    if isinstance(cell, str):
        parts = cell.split(separator) if separator else [cell]
        if not all(part.strip() for part in parts):
            raise RejectError(
                "empty_label", f"there is no label on one side of a {separator!r}: {cell!r:.80}"
            )
        return parts
    if odd := [each for each in cell if isinstance(each, list | tuple | dict) or each is None]:
        raise RejectError("bad_value", f"the list of labels holds {odd[0]!r:.80}, not a label")
    return [str(each) for each in cell]


def _find_marked(cells: Sequence[Any], form: Form) -> Iterator[str]:
    """Yields the names of the columns that have a 1."""
    if all(map(_is_empty, cells)):
        return
    for name, cell in zip(form.columns, cells, strict=True):
        text = cell.strip()
        if text not in ("0", "1"):
            raise RejectError("bad_value", f"column {name!r}: expected 0 or 1, got {text!r:.80}")
        if text == "1":
            yield name


KIND = LabelsKind()
