"""What results of a detector say against the objects of a list, the likeliest faults first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from darkroom.dataset.read_as import ReadAs
from darkroom.runtime.arrays import Array
from darkroom.targets.boxes.located import locate_object
from darkroom.targets.boxes.matching import Truth, read_truth
from darkroom.targets.boxes.precision import LEAST_SCORE, check_about, match_sizes
from darkroom.targets.boxes.results import DetectorFiles, Results, read_detections
from darkroom.targets.boxes.verdicts import CONFUSED, FALSE, SHIFTED, Verdicts, judge_results

_KINDS = {"missing_boxes": FALSE, "wrong_classes": CONFUSED, "shifted_boxes": SHIFTED}

_SIDES = ("source_width", "source_height")

_Row = Mapping[str, Any]


class BoxDoubts(NamedTuple):
    """What results of a detector speak against.

    Kinds are never mixed: a detector has errors of its own, of some kinds more than of others. A
    row has the class and the box of the result; of a box without a result, those of the list. Its
    `object` is that of the list, or the result where the list has none.

    Attributes:
        rows: The rows of a finding of each kind of doubt, the likeliest fault first.
        silent: How many annotated images the detector did not look at.
    """

    rows: Mapping[str, Sequence[_Row]]
    silent: int


def find_doubts(
    files: DetectorFiles, index: pa.Table, labels: Sequence[str], read_as: ReadAs | None
) -> BoxDoubts:
    """Returns what results speak against.

    Args:
        files: What the detector wrote and had; see `read_detections`.
        index: `COMPARED_COLUMNS` of the index.
        labels: The label map of the dataset.
        read_as: How the source of the dataset was read; None where nobody knows.

    Raises:
        DataError: They are not results of these images.
        OSError: Something cannot be read.
    """
    found, is_looked = read_detections(files, index, labels, read_as)
    truth = read_truth(index, labels)
    check_about(files.results, found, truth, len(labels), doubts_list=True)
    matched = match_sizes(found, truth, ["all"], [0.5])["all"]
    found, verdicts = matched.found, judge_results(matched, truth, LEAST_SCORE)
    rows = {
        name: _list_results(index, found, truth, verdicts, kind, labels)
        for name, kind in _KINDS.items()
    }
    # A low score says little against a box, and something for it.
    any_score = judge_results(matched, truth, 0.0)
    rows["false_boxes"] = _list_alone(index, is_looked, truth, any_score, labels)
    return BoxDoubts(rows, int((truth.is_annotated & ~is_looked).sum()))


def _list_results(
    index: pa.Table,
    found: Results,
    truth: Truth,
    verdicts: Verdicts,
    kind: int,
    labels: Sequence[str],
) -> list[_Row]:
    """Returns the results with a verdict, the highest score first."""
    chosen = np.flatnonzero(verdicts.kind == kind)
    chosen = chosen[np.argsort(-found.score[chosen], kind="stable")]
    facts = list[_Row]()
    for number in chosen.tolist():
        said, about = labels[found.label[number]], verdicts.object[number]
        detail = f"score {found.score[number]:.2f}"
        if kind != FALSE:
            detail += f", {verdicts.share[number]:.2f} of both in common"
        label = said if kind == FALSE else labels[truth.label[about]]
        suggested = {"suggested": said} if kind == CONFUSED else {}
        facts.append({"label": label, **suggested, "detail": detail})
    about = np.full(len(chosen), -1) if kind == FALSE else verdicts.object[chosen]
    return _list_rows(index, found, chosen, truth, about, facts)


def _list_alone(
    index: pa.Table, is_looked: Array, truth: Truth, verdicts: Verdicts, labels: Sequence[str]
) -> list[_Row]:
    """Returns the objects without any result; first those of classes that are mostly found."""
    is_said = is_looked[truth.image]
    objects, alone = (
        np.bincount(truth.label[each], minlength=len(labels))
        for each in (is_said & ~truth.is_ignored, is_said & verdicts.is_missing)
    )
    rate = 1 - alone / np.maximum(objects, 1)
    chosen = np.flatnonzero(is_said & verdicts.is_missing)
    chosen = chosen[np.lexsort((-truth.area[chosen], -rate[truth.label[chosen]]))]
    facts = [
        {
            "label": labels[label],
            "detail": f"{rate[label]:.0%} of the objects of this class have a result",
        }
        for label in truth.label[chosen]
    ]
    return _list_rows(index, truth, chosen, truth, chosen, facts)


def _list_rows(
    index: pa.Table,
    shown: Results | Truth,
    chosen: Array,
    truth: Truth,
    about: Array,
    facts: Sequence[_Row],
) -> list[_Row]:
    """Returns the rows of a finding.

    Args:
        index: The images.
        shown: The boxes that are drawn.
        chosen: Which of these, one for each row.
        truth: The objects of the list.
        about: Which of these it is about; -1 for none of them.
        facts: What else the rows say.
    """
    names = ["row", "uri", "split", *_SIDES]
    images = index.select(names).take(pa.array(shown.image[chosen])).to_pylist()
    first = np.searchsorted(truth.image, shown.image[chosen])
    rows = list[_Row]()
    for image, each, place, start, said in zip(images, chosen, about, first, facts, strict=True):
        sides = [image.pop(side) for side in _SIDES]
        box = shown.boxes[:, each]
        if place < 0:
            where = locate_object(None, box, *sides)
        else:
            where = locate_object(int(place - start), truth.boxes[:, place], *sides)
        box = box.clip(0, 1).round(5).tolist()
        rows.append({**image, **said, "object": where, "box": box})
    return rows
