"""What results of a detector say against the objects of a list, the likeliest faults first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from darkroom.runtime.arrays import Array
from darkroom.targets.boxes.located import locate_object
from darkroom.targets.boxes.matching import Truth
from darkroom.targets.boxes.precision import compare_results, match_sizes
from darkroom.targets.boxes.results import Results
from darkroom.targets.boxes.verdicts import (
    CONFUSED,
    FALSE,
    SHIFTED,
    Verdicts,
    judge_results,
)

# Results of lower scores are mostly the detector's own errors.
LEAST_SCORE = 0.3
MISSING_BOXES, WRONG_CLASSES = "missing_boxes", "wrong_classes"
SHIFTED_BOXES, FALSE_BOXES = "shifted_boxes", "false_boxes"
_KINDS = {MISSING_BOXES: FALSE, WRONG_CLASSES: CONFUSED, SHIFTED_BOXES: SHIFTED}

_Row = dict[str, Any]


def find_doubts(
    path: str, index: pa.Table, labels: Sequence[str], annotations: str | None = None
) -> Mapping[str, Sequence[_Row]]:
    """Returns the rows of a finding of each kind of doubt, the likeliest fault first.

    Kinds are never mixed: a detector has errors of its own, of some kinds more than of others. A
    row has the class and the box of the result; of a box without a result, those of the list. Its
    `object` is that of the list, or the result where the list has none.

    Args:
        path: A file or a folder of results; see `read_detections`.
        index: `RESULT_COLUMNS` and `TRUTH_COLUMNS` of the index, with `row`, `uri` and `split`.
        labels: The label map of the dataset.
        annotations: The file of COCO that the detector had.

    Raises:
        DataError: They are not results of these images.
        OSError: Something cannot be read.
    """
    found, truth = compare_results(path, index, labels, annotations)
    matched = match_sizes(found, truth, ["all"], [0.5])["all"]
    found, taken, is_judged = matched.found, matched.taken[:, 0], matched.is_judged[:, 0]
    verdicts = judge_results(found, truth, taken, is_judged, LEAST_SCORE)
    any_score = judge_results(found, truth, taken, is_judged, 0.0)
    doubts = {
        name: [*_list_results(index, found, truth, verdicts, kind, labels)]
        for name, kind in _KINDS.items()
    }
    return {**doubts, FALSE_BOXES: [*_list_alone(index, found, truth, any_score, labels)]}


def _list_results(
    index: pa.Table,
    found: Results,
    truth: Truth,
    verdicts: Verdicts,
    kind: int,
    labels: Sequence[str],
) -> Iterator[_Row]:
    """Yields the results with a verdict, the highest score first."""
    chosen = np.flatnonzero(verdicts.kind == kind)
    chosen = chosen[np.argsort(-found.score[chosen], kind="stable")]
    rows = _list_images(index, found.image[chosen])
    for (row, size), number in zip(rows, chosen.tolist(), strict=True):
        said, about = labels[found.label[number]], verdicts.object[number]
        detail = f"score {found.score[number]:.2f}"
        if kind != FALSE:
            detail += f", {verdicts.share[number]:.2f} of both in common"
        yield {
            **row,
            "label": said if kind == FALSE else labels[truth.label[about]],
            "object": locate_object(None, found.boxes[:, number], *size)
            if kind == FALSE
            else _locate(truth, about, size),
            **({"suggested": said} if kind == CONFUSED else {}),
            "detail": detail,
            "box": np.clip(found.boxes[:, number], 0, 1).round(5).tolist(),
        }


def _list_alone(
    index: pa.Table, found: Results, truth: Truth, verdicts: Verdicts, labels: Sequence[str]
) -> Iterator[_Row]:
    """Yields the objects without any result; first those of classes that are mostly found."""
    is_said = np.isin(truth.image, found.image)
    objects, alone = (
        np.bincount(truth.label[each], minlength=len(labels))
        for each in (is_said & ~truth.is_ignored, is_said & verdicts.is_missing)
    )
    rate = 1 - alone / np.maximum(objects, 1)
    chosen = np.flatnonzero(is_said & verdicts.is_missing)
    chosen = chosen[np.lexsort((-truth.area[chosen], -rate[truth.label[chosen]]))]
    rows = _list_images(index, truth.image[chosen])
    for (row, size), number in zip(rows, chosen.tolist(), strict=True):
        label = truth.label[number]
        yield {
            **row,
            "label": labels[label],
            "object": _locate(truth, number, size),
            "detail": f"{rate[label]:.0%} of the objects of this class have a result",
            "box": truth.boxes[:, number].round(5).tolist(),
        }


def _list_images(index: pa.Table, images: Array) -> Iterator[tuple[_Row, tuple[int, int]]]:
    """Yields what findings say of images, and their width and height in pixels."""
    names = ["row", "uri", "split", "source_width", "source_height"]
    for row in index.select(names).take(pa.array(images)).to_pylist():
        yield row, (row.pop("source_width"), row.pop("source_height"))


def _locate(truth: Truth, number: int, size: tuple[int, int]) -> _Row:
    """Returns where an object of the list is."""
    first = int(np.searchsorted(truth.image, truth.image[number]))
    return locate_object(int(number) - first, truth.boxes[:, number], *size)
