"""What is the matter with each result of a detector, and with each object that none is about."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from darkroom.runtime.arrays import Array
from darkroom.targets.boxes.matching import Truth, pair_boxes
from darkroom.targets.boxes.precision import Matched
from darkroom.targets.boxes.results import Results

# A result: about an object; about one that another result is about; with another class; at
# another place; about nothing. What is not judged is none of these.
NOT_JUDGED, FOUND, TWICE, CONFUSED, SHIFTED, FALSE = range(6)
_ERRORS = {TWICE: "doubled", CONFUSED: "confused", SHIFTED: "shifted", FALSE: "false"}
# Intersection over union from which two boxes are one object, and may be one.
SAME_IOU, NEAR_IOU = 0.5, 0.1


class Verdicts(NamedTuple):
    """What results say of objects.

    Attributes:
        kind: `FOUND` to `FALSE` of each result, or `NOT_JUDGED`, int64 [N].
        object: The object that it is about, int64 [N]; -1 for none.
        share: What both have in common (intersection over union), float64 [N].
        is_missing: Which objects no result is about, bool [objects]: also none with another class,
            or at another place.
    """

    kind: Array
    object: Array
    share: Array
    is_missing: Array


def list_errors(verdicts: Verdicts, found: Results, truth: Truth) -> dict[str, Array]:
    """Returns the place of the image of each error, by what it is called."""
    results = {name: found.image[verdicts.kind == kind] for kind, name in _ERRORS.items()}
    return {"missing": truth.image[verdicts.is_missing], **results}


def judge_results(matched: Matched, truth: Truth, least_score: float) -> Verdicts:
    """Judges results of a score or more.

    Args:
        matched: The results, as they are matched with objects of all sizes.
        truth: The objects.
        least_score: Others are not judged.
    """
    found, taken = matched.found, matched.taken[:, 0]
    is_judged = matched.is_judged[:, 0] & (found.score >= least_score)
    is_found = is_judged & (taken >= 0)
    is_open = ~truth.is_ignored
    is_open[taken[is_found]] = False
    kind, about = np.where(is_found, FOUND, NOT_JUDGED), np.where(is_found, taken, -1)
    share = np.zeros(len(kind))
    others = np.flatnonzero(is_judged & ~is_found)
    kind[others] = FALSE
    pairs = pair_boxes(found.take(others), truth, NEAR_IOU, same_class=False)
    order = np.argsort(pairs.share, kind="stable")
    own, other, common = others[pairs.result[order]], pairs.object[order], pairs.share[order]
    is_same, is_near = found.label[own] == truth.label[other], common >= SAME_IOU
    # The last of them is taken: that with another class rather than that at another place.
    for verdict, fits in (
        (SHIFTED, is_same & ~is_near & is_open[other]),
        (TWICE, is_near & ~is_open[other]),
        (CONFUSED, ~is_same & is_near & is_open[other]),
    ):
        kind[own[fits]], about[own[fits]] = verdict, other[fits]
        share[own[fits]] = common[fits]
    is_open[about[about >= 0]] = False
    return Verdicts(kind, about, share, is_open)
