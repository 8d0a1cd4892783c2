"""The check for images that a person may want to look at: tiny, dark, blurred and others.

What is usual depends on the dataset: an image is marked where it is far from the middle half of all
and beyond a limit that no good image passes. Each problem marks at most 2 % of the images, the
worst ones. Contrast and blur are measured on pixels, of all images or of a random sample of many.

One problem does not depend on the others: images of 16 bits that only use the lower ones, as X-rays
of 12 bits do, are dark when the upper eight are left. The conversion marks them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from darkroom import storage
from darkroom.errors import RejectError
from darkroom.images.decoders import ImagePreparer
from darkroom.options.image import RAW_ENCODING, ImageOptions
from darkroom.options.validation import OFF
from darkroom.runtime.text import format_count
from darkroom.validation.context import Context
from darkroom.validation.counts import fetch_named_records, fetch_number
from darkroom.validation.ignored import fetch_hidden
from darkroom.validation.report.findings import MAX_RANKED_ROWS, Finding, FindingRow
from darkroom.validation.report.pictures import RecordFolders, read_found_images

_Numbers = npt.NDArray[np.float64]

_MAX_SHARE = 0.02
# How far from the middle half, in its widths, and at least by a factor of two.
_WIDTHS, _LEAST_GAP = 2.0, 1.0
# Images whose pixels are measured, at the size that a network sees.
_MAX_MEASURED, _SHORT_SIDE = 20_000, 256
# By how much neighbours differ without a reason, as squares of levels: a sixth by rounding.
_NOISE = 0.5
# Fewer images do not say what is usual.
_LEAST_IMAGES, _LEAST_IN_CLASS = 10, 20


class QualityProblem(NamedTuple):
    """A number of each image, in powers of two: the larger, the worse.

    Attributes:
        name: What is wrong with the worst images.
        rows: The rows of the index.
        values: A number for each row.
        limit: What is not above this is good in any dataset.
        gap: How far from the middle half the others are at least.
        among: Among how many images it was looked for, where not among all.
    """

    name: str
    rows: npt.NDArray[np.int64]
    values: _Numbers
    limit: float
    gap: float = _LEAST_GAP
    among: str = ""


def check_quality(context: Context) -> Iterator[Finding]:
    """Finds images that differ from the others in size, light, contrast, sharpness or bits."""
    hidden = {*fetch_hidden(context.connection)}
    yield from _find_low_bits(context, hidden)
    problems = [*_list_known(context), *_measure_pixels(context), *_find_far(context)]
    marked: dict[int, tuple[float, list[str]]] = {}
    for problem in problems:
        for row, excess in find_outliers(problem):
            worst, names = marked.get(row, (0.0, []))
            marked[row] = max(worst, excess), [*names, problem.name]
    for row in hidden:
        marked.pop(row, None)
    if not marked:
        return
    counts = Counter(name for _, names in marked.values() for name in names)
    listed = sorted(marked, key=lambda row: (-marked[row][0], row))[:MAX_RANKED_ROWS]
    shown = ", ".join(
        f"{each.name} {counts[each.name]:,}{each.among}" for each in problems if counts[each.name]
    )
    yield context.report(
        "quality",
        len(marked),
        f"{format_count(len(marked), 'image', 'differ')} much from the others: {shown}.",
        "Look at them: leave out those that a model cannot learn from, as in the gallery (option "
        "gallery, or darkroom gallery RECORDS).",
        _list_rows(context, {row: ", ".join(marked[row][1]) for row in listed}),
    )


def find_spoilt(context: Context) -> set[int]:
    """Returns the rows of images that this check calls tiny, dark or bright, by the index alone."""
    if context.options.policies["quality"] == OFF:
        return set()
    spoilt = [each for each in _list_known(context) if each.name in ("tiny", "dark", "bright")]
    return {row for problem in spoilt for row, _ in find_outliers(problem)}


def _find_low_bits(context: Context, hidden: Collection[int]) -> Iterator[Finding]:
    """Yields a finding of images that are dark because of their bits, if there are any."""
    rows = [row for (row,) in context.connection.execute(_LOW_BITS).fetchall()]
    rows = [row for row in rows if row not in hidden]
    if not rows:
        return
    yield context.report(
        "quality",
        len(rows),
        f"{format_count(len(rows), 'image', 'have')} more than 8 bits, of which only the lower "
        "ones are used, so what is stored is nearly black: at most 63 of 255.",
        "Of 16 bits, the upper eight are stored. Multiply the values to fill all 16, as by 16 "
        "those of an X-ray of 12 bits, then convert the images again.",
        _list_rows(context, dict.fromkeys(rows[:MAX_RANKED_ROWS], "nearly black")),
    )


def _list_rows(context: Context, problems: Mapping[int, str]) -> tuple[FindingRow, ...]:
    """Returns the rows of a finding, in the order of their problems by row."""
    found = fetch_named_records(context.connection, problems)
    return tuple({**found[row], "problem": problem} for row, problem in problems.items())


def find_outliers(problem: QualityProblem) -> list[tuple[int, float]]:
    """Returns rows far above the middle half, and how far, in its widths; the worst first."""
    values = problem.values
    if len(values) < _LEAST_IMAGES:
        return []
    low, high = np.quantile(values, (0.25, 0.75))
    width = max(high - low, problem.gap / _WIDTHS)
    excess = (values - high) / width
    places = np.flatnonzero((excess > _WIDTHS) & (values > problem.limit))
    places = places[np.argsort(-excess[places], kind="stable")]
    most = max(1, int(_MAX_SHARE * len(values)))
    return [(int(problem.rows[place]), float(excess[place])) for place in places[:most]]


def _list_known(context: Context) -> Iterator[QualityProblem]:
    """Yields the problems that the index tells."""
    found: Mapping[str, Any] = context.connection.execute(_SIZES).fetchnumpy()
    height, width = (found[name].astype(np.float64) for name in ("height", "width"))
    short, long = np.minimum(height, width), np.maximum(height, width)
    yield QualityProblem("tiny", found["row"], -np.log2(short), -np.log2(128))
    yield QualityProblem("extreme aspect", found["row"], np.log2(long / short), np.log2(2.5))
    found = context.connection.execute(_LIGHT).fetchnumpy()
    light = found["luminance"].astype(np.float64)
    yield QualityProblem("dark", found["row"], -np.log2(1 + light), -np.log2(1 + 40))
    yield QualityProblem("bright", found["row"], -np.log2(256 - light), -np.log2(256 - 235))


def _measure_pixels(context: Context) -> Iterator[QualityProblem]:
    """Yields the problems that pixels tell, of a random sample of the records on a disk."""
    records = context.records
    if records is None or any(map(storage.is_remote, records)):
        return
    sample = dict(context.connection.execute(_SAMPLE, [_MAX_MEASURED]).fetchall())
    total = fetch_number(context.connection, _COUNT_IMAGES)
    among = f" (of {len(sample):,} of {total:,})" if len(sample) < total else ""
    measured = [(row, *_measure(levels)) for row, levels in _decode(records, sample)]
    numbers = np.array([row for row, *_ in measured], np.int64)
    contrast = np.array([each for _, each, _ in measured])
    edges = np.array([each for *_, each in measured])
    uniform = -np.log2(1 + contrast)
    yield QualityProblem("nearly uniform", numbers, uniform, -np.log2(1 + 10), among=among)
    # A uniform image has no edges that could be sharp.
    is_seen = contrast > 10
    blur = -np.log2(edges[is_seen])
    yield QualityProblem("blurred", numbers[is_seen], blur, -np.log2(0.04), among=among)


def _decode(records: RecordFolders, uris: Mapping[int, str]) -> Iterator[tuple[int, _Numbers]]:
    """Yields rows and green levels [height, width] of their images, reduced."""
    options = ImageOptions(encoding=RAW_ENCODING, resize_short_side=_SHORT_SIDE)
    with closing(ImagePreparer(options)) as preparer:
        for row, data in read_found_images(records, uris):
            try:
                image = preparer.prepare(data)
            except RejectError:
                continue
            shape = image.height, image.width, image.channels
            pixels = np.frombuffer(image.encoded, np.uint8).reshape(shape)
            yield row, pixels[..., image.channels // 2].astype(np.float64)


def _measure(levels: _Numbers) -> tuple[float, float]:
    """Returns the standard deviation of levels, and by how much they are sharper than a blur.

    Levels differ more two pixels away than one: where all is smooth four times as much, as squares,
    at sharp edges twice. However few edges there are, and however strong. Where all is smooth, most
    differences are those of rounding and of JPEG, which are left out.
    """
    one, two = (
        sum(
            np.square(each[step:] - each[:-step]).sum() - _NOISE * each[step:].size
            for each in (levels, levels.T)
        )
        for step in (1, 2)
    )
    edges = one / two - 0.25 if min(one, two) > 0 else 0
    return float(levels.std()), max(float(edges), 1e-3)


def _find_far(context: Context) -> Iterator[QualityProblem]:
    """Yields how far images are from the centre of their class, where there are features."""
    features = context.features
    if features is None:
        return
    labels = dict(context.connection.execute(_LABELS).fetchall())
    numbers = np.array([labels.get(row, 0) for row in features.rows.tolist()], np.int64)
    far = np.zeros(len(numbers))
    for number in np.flatnonzero(np.bincount(numbers)[1:] >= _LEAST_IN_CLASS) + 1:
        places = np.flatnonzero(numbers == number)
        values = features.values[places].astype(np.float64)
        values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-9)
        distance = np.linalg.norm(values - values.mean(axis=0), axis=1)
        far[places] = np.log2(np.maximum(distance, 1e-9) / max(float(np.median(distance)), 1e-9))
    yield QualityProblem("far from its class", features.rows, far, np.log2(1.2), 0.3)


_SIZES = "SELECT row, height, width FROM records WHERE height > 0 AND width > 0 ORDER BY row"
_LIGHT = "SELECT row, luminance FROM records WHERE luminance BETWEEN 0 AND 255 ORDER BY row"
_LOW_BITS = """
SELECT row FROM records WHERE list_contains(string_split(changes, ','), 'low_bits')
ORDER BY luminance, row
"""
_COUNT_IMAGES = "SELECT count(*) FROM records WHERE sha256 IS NOT NULL"
# Keys are hashes: the smallest are a random sample.
_SAMPLE = "SELECT row, uri FROM records WHERE sha256 IS NOT NULL ORDER BY key LIMIT ?"
_LABELS = """
SELECT row, dense_rank() OVER (ORDER BY label) AS number FROM named WHERE label <> ''
"""
