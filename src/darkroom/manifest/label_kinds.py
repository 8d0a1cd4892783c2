"""Detects texts that are not names of classes: several labels in one, or numbers to predict.

Both would become classes without an error, and a training would report numbers of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from darkroom.dataset.labels import SEE_FORMS
from darkroom.errors import DataError
from darkroom.runtime.text import format_count

_SEPARATOR = re.compile("[;|]")
# Also with a currency or a unit, as $43.51, USD 43.51, 11.3% and 2 kg.
_NUMBER = re.compile(
    r"([A-Z]{3} )?[^\w\s]{0,2}[0-9][0-9.,]*([eE][-+]?[0-9]+)?( ?[^\w\s]| [A-Za-z]{1,3})?"
)
# That many classes may have numbers for names, as digits have, whatever the number of rows.
_MAX_NUMBERS = 20
_CONFIRM = f"convert with --label-kind label (label_kind= in Python). {SEE_FORMS}"


def check_label_kind(counts: Mapping[str, int]) -> None:
    """Checks that labels look like one class each.

    They do not if more than half of them, or of the rows, have a `;` or `|`; or if they are more
    than 20, nine tenths of them numbers, and more than half as many as the rows.

    Args:
        counts: Number of rows by label.

    Raises:
        DataError: They do not.
    """
    rows = sum(counts.values())
    joined = [label for label in counts if _SEPARATOR.search(label)]
    if 2 * len(joined) > len(counts) or 2 * sum(counts[label] for label in joined) > rows:
        raise DataError(
            f"{format_count(len(joined), 'label', 'have', len(counts))} a ';' or '|', as "
            f"{min(joined)!r:.80}: they look like several labels of one image.",
            "If an image has several labels, convert with --label-separator (label_separator= in "
            f"Python). If each of these texts is one label, {_CONFIRM}",
        )
    numbers = [label for label in counts if _NUMBER.fullmatch(label)]
    is_many = len(counts) > _MAX_NUMBERS and 2 * len(counts) > rows
    if is_many and 10 * len(numbers) >= 9 * len(counts):
        raise DataError(
            f"There are {len(counts):,} labels in {rows:,} rows, and {len(numbers):,} are numbers, "
            f"as {min(numbers)!r:.80}: they look like amounts or ids, not like classes.",
            "If they are to be predicted, name their column with --target-columns "
            "(target_columns= in Python); else name the column of the classes with --columns. If "
            f"each number is a class, {_CONFIRM}",
        )
