"""The check for splits that differ from train, and for a dataset that differs from an earlier one.

Numbers and labels are compared by the index. Features, where there are any, are compared by a head
that tries to tell one side from the other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, NamedTuple

import numpy as np

from darkroom import storage
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.index_queries import create_index_view
from darkroom.dataset.layout import INDEX_FOLDER
from darkroom.dataset.named import find_named_data
from darkroom.dataset.opening import check_index_files, open_dataset
from darkroom.dataset.read_as import BY_COLUMN, BY_FOLDER
from darkroom.features.opening import open_features
from darkroom.features.table import Features
from darkroom.runtime.arrays import Array
from darkroom.runtime.text import MAX_LISTED_ROWS
from darkroom.targets.kind import find_kind
from darkroom.targets.suspects import find_suspecting
from darkroom.validation.context import Context, Seen, fetch_in_order
from darkroom.validation.counts import fetch_named_records
from darkroom.validation.foretold import Looks, compare_looks, foretell
from darkroom.validation.report.findings import Finding

# What is compared of the index, as SQL; and what people read of it.
_NUMBERS = {
    "size": "sqrt(height * width)",
    "aspect": "width / height",
    "brightness": "luminance",
}
_MEASURES = {
    "size": "size (root of the number of pixels)",
    "aspect": "aspect (width divided by height)",
    "brightness": "brightness (0 to 255)",
}
_HINTS = {
    BY_COLUMN: "leave the split column empty, so that rows are assigned at random",
    BY_FOLDER: "put the images of all splits into the same folders of labels, so that they are "
    "assigned at random",
}
_BY_HASH = "rows were assigned by their hash, so look which groups or what later data is in it"
# A difference counts from here on, however many images there are, and only if it also is far from
# what random splits have: chance passes that in one of 8,000 comparisons (decision 40).
_LEAST_DISTANCE, _LEAST_AUROC = 0.1, 0.6
_FAR, _DEVIATIONS = 2.2, 5.0
# Fewer images of a side tell nothing; of more, the features of a sample are compared.
_FEWEST, _MOST = 20, 20_000


class Side(NamedTuple):
    """One side of a comparison, by its index.

    Attributes:
        name: As people read it.
        rows: Rows of the index, int64 [N].
        numbers: The values of each number of the index, by its name, [N]; NaN where not known.
        labels: How many images have each label.
        examples: The first rows of each label.
    """

    name: str
    rows: Array
    numbers: Mapping[str, Array]
    labels: Mapping[str, int]
    examples: Mapping[str, Sequence[int]]


class Moved(NamedTuple):
    """A measure in which one side differs from the other.

    Attributes:
        what: Its name.
        found: By how much they differ.
        allowed: By how much they may.
        detail: What that means, in words.
        images: The rows of the images of the side that show it most, with the value of each.
    """

    what: str
    found: float
    allowed: float
    detail: str
    images: Mapping[int, Any]


def find_baseline(place: str) -> str:
    """Returns the folder of an earlier dataset, whose index is checked."""
    root = find_named_data(place)
    check_index_files(root, open_dataset(root))
    return root


def check_drift(context: Context) -> Iterator[Finding]:
    """Finds splits that differ from train, and a dataset that differs from its baseline."""
    seen, baseline = context.seen, context.options.baseline
    train = _read_side(context, "records", "train", "train")
    for split in context.counts.splits:
        if split != "train":
            moved = [*compare_sides(_read_side(context, "records", split, split), train)]
            if seen is not None:
                is_train = seen.splits == "train"
                moved += tell_apart(seen.looks, seen.splits == split, is_train, seen.rows)
            how = _HINTS.get(context.read_as.splits, _BY_HASH) if context.read_as else _BY_HASH
            hint = (
                f"Scores on {split} say little about a model that learned from such a train split. "
                f"If that is not meant, {how}."
            )
            yield from _report(context, f"The split {split} differs from train", moved, hint)
    if baseline is not None:
        yield from _compare_baseline(context, baseline)


def compare_sides(side: Side, other: Side) -> Iterator[Moved]:
    """Yields the numbers of the index that differ, and the labels if their shares do."""
    for name in side.numbers:
        known = np.isfinite(side.numbers[name])
        rows, values = side.rows[known], side.numbers[name][known]
        others = other.numbers[name][np.isfinite(other.numbers[name])]
        if min(len(values), len(others)) < _FEWEST:
            continue
        # Kolmogorov and Smirnov: the largest difference between the shares below a value.
        both = np.sort(np.concatenate([values, others]))
        below = [
            np.searchsorted(np.sort(each), both, "right") / len(each) for each in (values, others)
        ]
        at = abs(below[0] - below[1]).argmax()
        distance = abs(below[0][at] - below[1][at])
        allowed = max(_LEAST_DISTANCE, _FAR * np.sqrt(1 / len(values) + 1 / len(others)))
        if distance > allowed:
            parts = np.concatenate([np.quantile(each, (0.25, 0.75)) for each in (values, others)])
            detail = (
                f"{below[0][at]:.0%} of {side.name} and {below[1][at]:.0%} of {other.name} are at "
                f"most {both[at]:.4g}: a difference of {distance:.3f}, and {allowed:.3f} is "
                f"allowed. The middle half of {side.name} is from {parts[0]:.4g} to "
                f"{parts[1]:.4g}, that of {other.name} from {parts[2]:.4g} to {parts[3]:.4g}"
            )
            # The farthest from the middle of the other side, where this one has more.
            more = -1 if below[0][at] < below[1][at] else 1
            far = np.argsort(more * values, kind="stable")[:MAX_LISTED_ROWS]
            shown = {int(rows[place]): float(f"{values[place]:.4g}") for place in far}
            yield Moved(name, distance, allowed, detail, shown)
    names = sorted({*side.labels, *other.labels})
    counts = np.array([[each.labels.get(name, 0) for name in names] for each in (side, other)])
    totals = counts.sum(1)
    if not names or totals.min() < _FEWEST:
        return
    shares = counts / totals[:, None]
    pooled = counts.sum(0) / totals.sum()
    variance = pooled * (1 - pooled) * (1 / totals).sum()
    chance = np.sqrt(2 / np.pi * variance).sum() / 2
    spread = np.sqrt((1 - 2 / np.pi) * variance.sum()) / 2
    distance = np.abs(shares[0] - shares[1]).sum() / 2
    allowed = max(_LEAST_DISTANCE, chance + _DEVIATIONS * spread)
    if distance > allowed:
        first = np.argsort(-np.abs(shares[0] - shares[1]), kind="stable")[:3]
        detail = "; ".join(
            f"{names[n]}: {shares[0, n]:.1%} of {side.name}, {shares[1, n]:.1%} of {other.name}"
            for n in first
        )
        detail += (
            f". Half the sum of such differences is {distance:.3f}, and {allowed:.3f} is allowed"
        )
        most = names[(shares[0] - shares[1]).argmax()]
        yield Moved("labels", distance, allowed, detail, dict.fromkeys(side.examples[most]))


def tell_apart(looks: Looks, is_side: Array, is_other: Array, rows: Array) -> list[Moved]:
    """Returns that features differ, if a head tells one side from the other; else nothing.

    Args:
        looks: All images.
        is_side: Those of one side, bool [N].
        is_other: Those of the other.
        rows: The row of each image, int64 [N].
    """
    random = np.random.default_rng(0)
    sides = np.full((len(is_side), 1), np.nan, np.float32)
    for value, is_in in enumerate((is_other, is_side)):
        sides[random.permutation(np.flatnonzero(is_in))[:_MOST]] = value
    sizes = np.array([(sides == value).sum() for value in (0, 1)])
    if sizes.min() < _FEWEST:
        return []
    told = foretell(looks, sides, find_suspecting("labels"))
    ranked = np.sort(told[sides == 0])
    below = [np.searchsorted(ranked, told[sides == 1], edge).mean() for edge in ("left", "right")]
    auroc = sum(below) / 2 / len(ranked)
    deviation = np.sqrt((sizes.sum() + 1) / (12 * sizes.prod()))
    allowed = max(_LEAST_AUROC, 0.5 + _DEVIATIONS * deviation)
    if auroc <= allowed:
        return []
    detail = (
        f"of two images, one of each side, a classifier tells which is which in {auroc:.1%} of "
        f"cases (AUROC), and {allowed:.1%} is allowed; 50% is chance. It is surest of these images"
    )
    far = np.argsort(np.where(sides == 1, -told, np.inf)[:, 0], kind="stable")[:MAX_LISTED_ROWS]
    shown = {int(rows[place]): round(float(told[place, 0]), 3) for place in far}
    return [Moved("features", auroc, allowed, detail, shown)]


def _report(context: Context, what: str, moved: Sequence[Moved], hint: str) -> Iterator[Finding]:
    """Yields a finding of all that differs, with the images that show it, in turns."""
    if not moved:
        return
    texts = [f"in {_MEASURES.get(each.what, each.what)}: {each.detail}." for each in moved]
    shown: dict[int, dict[str, Any]] = {}
    turns = zip_longest(*([(each.what, *image) for image in each.images.items()] for each in moved))
    for name, row, value in filter(None, chain.from_iterable(turns)):
        shown.setdefault(row, {}).update({} if value is None else {name: value})
    records = fetch_named_records(context.connection, shown)
    yield context.report(
        "drift",
        len(shown),
        f"{what} {' Also '.join(texts)}",
        hint,
        tuple({**records[row], **values} for row, values in shown.items()),
        measured={
            each.what: {
                "found": round(float(each.found), 3),
                "allowed": round(float(each.allowed), 3),
            }
            for each in moved
        },
    )


def _read_side(context: Context, records: str, name: str, split: str | None = None) -> Side:
    """Reads what is compared of a view of an index; all splits if None."""
    connection, where = context.connection, "WHERE (? IS NULL OR split = ?)"
    columns = ", ".join(
        f"coalesce(({sql})::DOUBLE, 'nan') AS {name}" for name, sql in _NUMBERS.items()
    )
    sql = f"SELECT row, {columns} FROM {records} {where} ORDER BY row"
    values = connection.execute(sql, [split, split]).fetchnumpy()
    numbers = {name: np.asarray(values[name]) for name in _NUMBERS}
    labels = []
    if context.kind.names is not None:
        sql = _COUNT_LABELS.format(records=records, where=where, most=MAX_LISTED_ROWS)
        labels = connection.execute(sql, [split, split]).fetchall()
    counts, examples = ({label: row[n] for label, *row in labels} for n in (0, 1))
    return Side(name, np.asarray(values["row"]), numbers, counts, examples)


def _compare_baseline(context: Context, root: str) -> Iterator[Finding]:
    """Finds what differs from an earlier dataset."""
    what = "The dataset differs from the baseline"
    hint = "A model that learned from the baseline has seen few such images: look at what is new."
    index_dir, connection = storage.join(root, INDEX_FOLDER), context.connection
    old = open_features(index_dir, uses_cache=context.uses_cache)
    with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
        kind = find_kind(read_dataset(root).target.kind)
        create_index_view(connection, "baseline", index_dir, scratch, kind.told, kind.said)
        places = ("records", "the dataset"), ("baseline", "the baseline")
        sides = (_read_side(context, *place) for place in places)
        moved = [*compare_sides(*sides)]
        new, seen = context.features, context.seen
        if old is not None and new is not None and seen is not None:
            if (old.model, old.values.shape[1]) == (new.model, new.values.shape[1]):
                contents = fetch_in_order(connection, _CONTENTS, old.rows)["content"].to_numpy()
                moved += _tell_from(old, contents, new, seen)
            else:
                yield context.report(
                    "drift",
                    1,
                    "The features of the baseline and of the dataset are of two models, "
                    f"{old.model} and {new.model}, and cannot be compared.",
                    "Run darkroom embed with one model on both datasets.",
                )
    yield from _report(context, what, moved, hint)


def _tell_from(old: Features, contents: Array, new: Features, seen: Seen) -> list[Moved]:
    """Returns that features differ from those of an earlier dataset, if they do."""
    random = np.random.default_rng(0)
    mine, others = (np.sort(random.permutation(len(each.rows))[:_MOST]) for each in (new, old))
    values = np.concatenate([new.values[mine], old.values[others]])
    looks = compare_looks(values, np.concatenate([seen.contents[mine], contents[others]]))
    is_new = np.arange(len(values)) < len(mine)
    rows = np.concatenate([new.rows[mine], old.rows[others]])
    return tell_apart(looks, is_new, ~is_new, rows)


# The several labels of an image count as one.
_COUNT_LABELS = """
SELECT label, count(*), list(row ORDER BY row)[:{most}]
FROM {records} {where} AND label IS NOT NULL GROUP BY label
"""
_CONTENTS = "SELECT row, hash(coalesce(pixel_hash, sha256, key)) AS content FROM baseline"
