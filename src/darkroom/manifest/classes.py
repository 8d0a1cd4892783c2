"""The label map: which number each label has, and what says so."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from darkroom.dataset.labels import build_label_map, is_usable, normalise_label
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
from darkroom.manifest.sources.base import Source
from darkroom.options.manifest import ManifestOptions
from darkroom.options.source import CLASS_ORDER
from darkroom.targets.kind import TargetKind

WHOLE_NUMBER = re.compile(r"-?[0-9]+", re.ASCII)


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
    found: Iterable[str],
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
        found: The labels that rows have.
        old: The label map of the dataset that is updated; empty without one.
        sources: The files of one source.
        kind: What images are labelled with.
        options: How rows became entries.

    Raises:
        DataError: There are too many labels for classes.
    """
    if options.labels is not None:
        return LabelMap(build_label_map((), options.labels), GIVEN_MAP)
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
