"""The check for splits that differ from train, and for a dataset that differs from an earlier one.

Numbers and labels are compared by the index. Features, where there are any, are compared by a head
that tries to tell one side from the other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from darkroom import storage
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.index_queries import create_index_view
from darkroom.dataset.layout import INDEX_FOLDER
from darkroom.dataset.named import find_named
from darkroom.dataset.opening import check_index_files, open_dataset
from darkroom.dataset.pointer import find_data
from darkroom.features.opening import open_features
from darkroom.targets.kind import find_kind
from darkroom.targets.suspects import Array, find_suspecting
from darkroom.validation.context import Context, fetch_in_order
from darkroom.validation.foretold import Looks, compare_looks, foretell
from darkroom.validation.report.findings import Finding, Row

# What is compared of the index, as SQL.
_NUMBERS = {
    "size": "sqrt(height * width)",
    "aspect": "width / height",
    "brightness": "luminance",
}
# A difference counts from here on, however many images there are, and only if it also is far from
# what random splits have: chance passes that in one of 8,000 comparisons (decision 40).
_LEAST_DISTANCE, _LEAST_AUROC = 0.1, 0.6
_FAR, _DEVIATIONS = 2.2, 5.0
# Fewer images of a side tell nothing; of more, the features of a sample are compared.
_FEWEST, _MOST = 20, 20_000


class Side(NamedTuple):
    """One side of a comparison, by its index.

    Attributes:
        numbers: The values of each number of the index, by its name.
        labels: How many images have each label.
    """

    numbers: Mapping[str, Array]
    labels: Mapping[str, int]


def find_baseline(place: str) -> str:
    """Returns the folder of an earlier dataset, whose index is checked."""
    root = find_data(find_named(place))
    check_index_files(root, open_dataset(root))
    return root


def check_drift(context: Context) -> Iterator[Finding]:
    """Finds splits that differ from train, and a dataset that differs from its baseline."""
    seen, baseline = context.seen, context.options.baseline
    train = _read_side(context, "records", "train")
    for split in context.counts.splits:
        if split != "train":
            moved = [*compare_sides(_read_side(context, "records", split), train)]
            if seen is not None:
                is_train = seen.splits == "train"
                moved += tell_apart(seen.looks, seen.splits == split, is_train)
            yield from _report(
                context,
                f"The split {split} differs from train",
                moved,
                f"Scores on {split} say little about a model that learned from such a train split. "
                "Leave the split column empty, so that rows are assigned at random; or mean it so.",
            )
    if baseline is not None:
        yield from _report(
            context,
            "The dataset differs from the baseline",
            [*_compare_baseline(context, baseline)],
            "A model that learned from the baseline has seen few such images: look at what is new.",
        )


def compare_sides(side: Side, other: Side) -> Iterator[Row]:
    """Yields the numbers of the index that differ, and the labels if their shares do."""
    for name, values in side.numbers.items():
        others = other.numbers[name]
        if min(len(values), len(others)) < _FEWEST:
            continue
        # Kolmogorov and Smirnov: the largest difference between the shares below a value.
        both = np.sort(np.concatenate([values, others]))
        below = [
            np.searchsorted(np.sort(each), both, "right") / len(each) for each in (values, others)
        ]
        distance = abs(below[0] - below[1]).max()
        allowed = max(_LEAST_DISTANCE, _FAR * np.sqrt(1 / len(values) + 1 / len(others)))
        if distance > allowed:
            parts = np.concatenate([np.quantile(each, (0.25, 0.75)) for each in (values, others)])
            detail = "half from {:.4g} to {:.4g}, not {:.4g} to {:.4g}".format(*parts)
            yield _make_row(name, distance, allowed, detail)
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
        detail = ", ".join(f"{names[n]} {shares[0, n]:.1%}, not {shares[1, n]:.1%}" for n in first)
        yield _make_row("labels", distance, allowed, detail)


def tell_apart(looks: Looks, is_side: Array, is_other: Array) -> list[Row]:
    """Returns that features differ, if a head tells one side from the other; else nothing.

    Args:
        looks: All images.
        is_side: Those of one side, bool [N].
        is_other: Those of the other.
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
    detail = "AUROC of telling the sides apart; 0.5 is chance"
    return [_make_row("features", auroc, allowed, detail)] if auroc > allowed else []


def _make_row(what: str, found: float, allowed: float, detail: str) -> Row:
    return {
        "what": what,
        "found": round(float(found), 3),
        "allowed": round(float(allowed), 3),
        "detail": detail,
    }


def _report(context: Context, what: str, moved: list[Row], hint: str) -> Iterator[Finding]:
    if moved:
        names = ", ".join(row["what"] for row in moved)
        policy = context.options.policies["drift"]
        yield Finding("drift", policy, len(moved), f"{what}: {names}.", hint, tuple(moved))


def _read_side(context: Context, records: str, split: str | None = None) -> Side:
    """Reads what is compared of a view of an index; all splits if None."""
    connection, where = context.connection, "WHERE (? IS NULL OR split = ?)"
    columns = ", ".join(
        f"coalesce(({sql})::DOUBLE, 'nan') AS {name}" for name, sql in _NUMBERS.items()
    )
    found = connection.execute(f"SELECT {columns} FROM {records} {where}", [split, split])
    values = {name: np.asarray(each) for name, each in found.fetchnumpy().items()}
    numbers = {name: each[np.isfinite(each)] for name, each in values.items()}
    if context.kind.names is None:
        return Side(numbers, {})
    labels = connection.execute(_COUNT_LABELS.format(records=records, where=where), [split, split])
    return Side(numbers, dict(labels.fetchall()))


def _compare_baseline(context: Context, root: str) -> Iterator[Row]:
    """Yields what differs from an earlier dataset."""
    index_dir, connection = storage.join(root, INDEX_FOLDER), context.connection
    old = open_features(index_dir, uses_cache=context.uses_cache)
    with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
        kind = find_kind(read_dataset(root).target.kind)
        create_index_view(connection, "baseline", index_dir, scratch, kind.told, kind.said)
        yield from compare_sides(_read_side(context, "records"), _read_side(context, "baseline"))
        new, seen = context.features, context.seen
        if old is None or new is None or seen is None:
            return
        contents = fetch_in_order(connection, _CONTENTS, old.rows)["content"].to_numpy()
    if old.model != new.model or old.values.shape[1] != new.values.shape[1]:
        detail = (
            f"they are of two models, {old.model} and {new.model}, and cannot be compared: run "
            "darkroom embed with one model on both datasets"
        )
        yield {"what": "features", "detail": detail}
        return
    random = np.random.default_rng(0)
    mine, others = (np.sort(random.permutation(len(each.rows))[:_MOST]) for each in (new, old))
    values = np.concatenate([new.values[mine], old.values[others]])
    looks = compare_looks(values, np.concatenate([seen.contents[mine], contents[others]]))
    is_new = np.arange(len(values)) < len(mine)
    yield from tell_apart(looks, is_new, ~is_new)


# The several labels of an image count as one.
_COUNT_LABELS = """
SELECT label, count(*) FROM {records} {where} AND label IS NOT NULL GROUP BY label
"""
_CONTENTS = "SELECT row, hash(coalesce(pixel_hash, sha256, key)) AS content FROM baseline"
