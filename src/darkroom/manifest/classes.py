"""The label map: which texts are classes, which number each has, and what says so."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from darkroom.dataset.labels import SEE_FORMS, build_label_map, is_usable, normalise_label
from darkroom.dataset.read_as import (
    COLUMN_ORDER,
    GIVEN_MAP,
    OLD_MAP,
    OWN_NUMBERS,
    SORTED_NUMBERS,
    SORTED_TEXT,
    SOURCE_ORDER,
    Doubt,
)
from darkroom.dataset.splits import list_below
from darkroom.errors import DataError
from darkroom.manifest.sources.base import Source
from darkroom.options.manifest import ManifestOptions
from darkroom.options.source import AUTO_LABEL, CLASS_ORDER
from darkroom.runtime.text import format_count
from darkroom.targets.kind import TargetKind

WHOLE_NUMBER = re.compile(r"-?[0-9]+", re.ASCII)
_SEPARATOR = re.compile("[;|]")
# Also with a currency or a unit, as $43.51, USD 43.51, 11.3% and 2 kg.
_NUMBER = re.compile(
    r"([A-Z]{3} )?[^\w\s]{0,2}[0-9][0-9.,]*([eE][-+]?[0-9]+)?( ?[^\w\s]| [A-Za-z]{1,3})?"
)
# That many classes may have numbers for names, as digits have, whatever the number of rows.
_MAX_NUMBERS = 20
_CONFIRM = f"convert with --label-kind label (label_kind= in Python). {SEE_FORMS}"


class LabelMap(NamedTuple):
    """The labels in the order of their numbers.

    Attributes:
        labels: Them; none where targets have no labels.
        origin: What numbers them, for `ReadAs.labels`; empty where there are none.
        doubts: What of it may not be meant.
    """

    labels: list[str]
    origin: str = ""
    doubts: Sequence[Doubt] = ()


def make_label_map(
    found: Mapping[str, int],
    old: Sequence[str],
    sources: Sequence[Source],
    kind: TargetKind,
    options: ManifestOptions,
) -> LabelMap:
    """Returns the label map of targets with labels.

    The user's comes first, then the columns of labels, then whole numbers that number themselves.
    Labels of a dataset that is updated keep their numbers. Classes of objects have the order that
    the source gives them, then that of their numbers; all other labels are sorted as text.

    Args:
        found: The labels that rows have, with the number of rows of each.
        old: The label map of the dataset that is updated; empty without one.
        sources: The files of one source.
        kind: What images are labelled with.
        options: How rows became entries.

    Raises:
        DataError: There are too many labels for classes, or they do not look like classes.
    """
    if options.labels is not None:
        return LabelMap(build_label_map((), options.labels), GIVEN_MAP)
    if kind.name == "label" and options.label_kind == AUTO_LABEL:
        check_are_classes(found)
    if options.label_columns:
        # Also those that no image has.
        return LabelMap(build_label_map((), options.label_columns), COLUMN_ORDER)
    known = {*found, *old}
    if sources[0].schema.has_integer_labels:
        return LabelMap(build_label_map(known, are_numbers=True), OWN_NUMBERS)
    if kind.objects is None:
        own = LabelMap(build_label_map(known), SORTED_TEXT)
    else:
        own = _order_classes(known, sources)
    labels = [*dict.fromkeys((*old, *own.labels))]
    return own if labels == own.labels else LabelMap(labels, OLD_MAP)


def check_are_classes(counts: Mapping[str, int]) -> None:
    """Checks that labels look like one class each: others would become classes without an error.

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


def _order_classes(known: Collection[str], sources: Sequence[Source]) -> LabelMap:
    """Returns classes of objects in the order of the source, or of their numbers, or as text."""
    # Also those that no object has.
    order, doubts = join_classes(sources)
    listed = {*order}
    others = [label for label in build_label_map({*known, *order}) if label not in listed]
    origin = SORTED_TEXT
    if others and all(map(WHOLE_NUMBER.fullmatch, others)):
        others.sort(key=int)
        origin = SORTED_NUMBERS
    return LabelMap([*order, *others], SOURCE_ORDER if order else origin, doubts)


def order_names(names: Mapping[Any, str]) -> dict[Any, str]:
    """Returns names of classes as labels are written, in the order of their numbers.

    Ids that are not all numbers have the order in which they are. Names that cannot be labels are
    left out.
    """
    are_numbers = all(isinstance(each, int | float) for each in names)
    ids = sorted(names) if are_numbers else names
    labels = {each: normalise_label(names[each]) for each in ids}
    return {each: label for each, label in labels.items() if is_usable(label)}


def join_classes(sources: Sequence[Source]) -> tuple[list[str], list[Doubt]]:
    """Returns the order of classes in sources that have one, and the doubt where files differ.

    It is that of the first file, then come the names that it lacks, in the order of the next one.
    """
    files = [each for each in sources if each.classes]
    places: dict[str, int] = {}
    named: dict[Any, str] = {}
    differences = []
    for path, each in zip(list_below([each.name for each in files]), files, strict=True):
        names = order_names(each.classes)
        for number, name in names.items():
            if (other := named.setdefault(number, name)) != name:
                differences.append(f"{path} has {name!r} as number {number}, which is {other!r}")
        shared = [name for name in dict.fromkeys(names.values()) if name in places]
        for name, after in pairwise(shared):
            if places[name] > places[after]:
                differences.append(f"{path} has {name!r} before {after!r}")
        for name in names.values():
            places.setdefault(name, len(places))
    return [*places], [_build_order(each) for each in differences[:1]]


def _build_order(difference: str) -> Doubt:
    """Returns the doubt about files that number classes in different ways."""
    return Doubt(
        CLASS_ORDER,
        f"Files number classes in different ways: {difference} in a file before it.",
        "The first file numbers them, then come the names that it lacks. To number them yourself: "
        "--label-map FILE (label_map= in Python). If their numbers do not matter: "
        f"--accept {CLASS_ORDER} (accept=).",
    )
