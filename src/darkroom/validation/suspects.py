"""The check for labels and numbers that are probably wrong, by the features of the images."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from darkroom.options.validation import OFF
from darkroom.runtime.arrays import Array
from darkroom.runtime.text import MAX_LISTED_ROWS, format_count, list_first
from darkroom.targets.suspects import MIN_IMAGES, find_suspecting
from darkroom.validation.context import Context
from darkroom.validation.counts import fetch_named_records
from darkroom.validation.foretold import foretell
from darkroom.validation.ignored import fetch_hidden
from darkroom.validation.quality import find_spoilt
from darkroom.validation.report.findings import MAX_RANKED_ROWS, Finding

# Of images by labels: memory grows with it, to some 2 GB.
_MOST_VALUES = 50_000_000
# How far the target of a copy is trusted.
_TRUSTED = 0.9
_COPIES = """
SELECT DISTINCT a.row, b.row FROM near
JOIN near_looks AS a ON a.number = one JOIN near_looks AS b ON b.number = other
WHERE correlation IS NOT NULL
"""


def check_suspect_labels(context: Context) -> Iterator[Finding]:
    """Finds targets that the features of all other images speak against."""
    seen, counts, kind = context.seen, context.counts, context.kind
    if seen is None:
        return
    named = (name for classes in counts.classes.values() for name in classes if name)
    names = tuple(dict.fromkeys((*counts.numbers, *counts.labels, *named)))
    if len(seen.rows) * len(names) > _MOST_VALUES:
        yield context.report(
            "suspect_labels",
            len(seen.rows),
            f"Wrong labels were not looked for: {len(seen.rows):,} images times {len(names):,} "
            f"labels are more than {_MOST_VALUES:,}.",
            "Look for them in a part of the dataset, or set the policy to off.",
        )
        return
    place = np.flatnonzero(seen.targets.is_valid().to_numpy(zero_copy_only=False))
    values, numbers = kind.number(seen.targets.take(pa.array(place)), pa.array(names, pa.string()))
    numbers = values if counts.numbers else numbers
    targets = kind.make_array(numbers.to_pylist(), len(names))
    suspecting = find_suspecting(kind.name)
    known = suspecting.encode(targets, names)
    if np.isnan(known).all():
        return
    given = np.full((len(seen.rows), len(names)), np.nan, np.float32)
    given[place] = known
    told = foretell(seen.looks, given, suspecting)[place]
    told = _heed_copies(known, told, _find_copies(context, seen.rows[place]))
    doubts = suspecting.judge(known, told, targets, names)
    rows = seen.rows[place[doubts.images]].tolist()
    hidden = fetch_hidden(context.connection) | find_spoilt(context)
    shown = {
        row: {
            "suggested": value if isinstance(value, str) else _to_json(value),
            suspecting.score: float(f"{score:.3g}"),
        }
        for row, value, score in zip(rows, doubts.suggested, doubts.scores, strict=True)
        if row not in hidden
    }
    if count := len(shown):
        order = seen.rows[place[_rank(known, told, np.isin(names, doubts.untold))]].tolist()
        left_out = {*rows, *hidden}
        ranked = [*shown, *(row for row in order if row not in left_out)][:MAX_RANKED_ROWS]
        found = fetch_named_records(context.connection, ranked)
        listed = [{**found[row], **shown[row]} for row in ranked[:count]]
        yield context.report(
            "suspect_labels",
            count,
            f"{format_count(count, 'image', 'are')} probably labelled wrong: features of the other "
            "images speak against it.",
            "Look at them from the first one on, and correct those that are wrong, in the source "
            "or in the gallery: option gallery, or darkroom gallery RECORDS. "
            f"Labels with fewer than {MIN_IMAGES} images are not judged.",
            tuple(listed),
            next_rows=tuple(found[row] for row in ranked[count:]),
        )
    if untold := doubts.untold:
        noun = format_count(len(untold), "label")
        yield context.report(
            "suspect_labels",
            len(untold),
            f"{noun} cannot be told from the features, so no image with one is called wrong: "
            f"{list_first(untold)}.",
            "Look at some of these images. Either the label says something that the features do "
            "not show, or most of its images have another label.",
            tuple({"label": name} for name in untold[:MAX_LISTED_ROWS]),
        )


def _find_copies(context: Context, rows: Array) -> Array:
    """Returns the verified pairs of near copies, int64 [pairs, 2], as places among rows."""
    if context.options.policies["near_conflicts"] == OFF:
        return np.empty((0, 2), np.int64)
    _ = context.near_pairs  # makes the tables of pairs
    pairs = np.array(context.connection.execute(_COPIES).fetchall(), np.int64).reshape(-1, 2)
    pairs = pairs[np.isin(pairs, rows).all(1)]
    order = np.argsort(rows, kind="stable")
    places: Array = order[np.searchsorted(rows, pairs, sorter=order)]
    return places


def _heed_copies(known: Array, told: Array, pairs: Array) -> Array:
    """Returns what is foretold, with what is known of copies.

    Of two copies with two targets one is wrong: that which is less like what is foretold. So it is
    foretold mostly what the other one has. Nothing changes where their targets are the same.
    """
    differs = (known[pairs[:, 0]] != known[pairs[:, 1]]) & ~np.isnan(known[pairs]).any(1)
    pairs = pairs[differs.any(1)]
    doubt = np.nan_to_num(abs(known - told)).sum(1)[pairs]
    worse, better = np.take_along_axis(pairs, np.argsort(-doubt, 1, kind="stable"), 1).T
    heeded = told.copy()
    moved = _TRUSTED * known[better] + (1 - _TRUSTED) * told[worse]
    heeded[worse] = np.where(np.isnan(moved), told[worse], moved)
    return heeded


def _rank(known: Array, told: Array, untold: Array) -> Array:
    """Returns all images by doubt, the most doubtful first, and those that are not judged last."""
    doubt = np.nan_to_num(abs(known - told)[:, ~untold]).max(1, initial=0)
    doubt[(known[:, untold] == 1).any(1)] = 0
    return np.argsort(-doubt, kind="stable")


def _to_json(value: object) -> str:
    """Returns a list as the column `label` of a row shows it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
