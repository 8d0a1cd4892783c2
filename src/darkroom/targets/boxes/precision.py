"""Average precision, as COCO computes it: equal to pycocotools, by columns of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from darkroom.errors import DataError
from darkroom.runtime import progress
from darkroom.runtime.arrays import Array
from darkroom.targets.boxes.matching import (
    TRUTH_COLUMNS,
    Truth,
    match_boxes,
    pair_boxes,
    rank_results,
)
from darkroom.targets.boxes.results import (
    GIVE_ANNOTATIONS,
    RESULT_COLUMNS,
    Results,
)

THRESHOLDS = tuple(np.linspace(0.5, 0.95, 10))
_RECALLS = np.linspace(0, 1, 101)
# By the area in pixels; both ends belong to a size.
SIZES: Mapping[str, tuple[float, float]] = {
    "all": (0, 1e10),
    "small": (0, 32**2),
    "medium": (32**2, 96**2),
    "large": (96**2, 1e10),
}
# Columns of an index that results are compared with.
COMPARED_COLUMNS = [*dict.fromkeys(["row", "split", *RESULT_COLUMNS, *TRUTH_COLUMNS])]
# Results of lower scores are mostly the detector's own errors.
LEAST_SCORE = 0.3
# So many results show whether they are about these images and classes; and so many surer ones.
_MAX_COMPARED, _LEAST_SURE = 50_000, 50
# Which share of them is right at least, and of how many more the class may be the next one.
_LEAST_SHARE, _MOST_BETTER = 0.1, 2
# With so many orders of the images chance is measured.
_ORDERS = 20


class Matched(NamedTuple):
    """The results that are judged, and what each takes, for one size of objects.

    Attributes:
        found: The results, by image, class and score.
        taken: The object that each takes, int32 [N, thresholds]; -1 for none.
        is_right: Whether it is one that is judged, bool [N, thresholds].
        is_judged: Whether it counts at all, bool [N, thresholds].
        is_needed: Which objects have to be found, bool [objects].
    """

    found: Results
    taken: Array
    is_right: Array
    is_judged: Array
    is_needed: Array


def match_sizes(
    found: Results,
    truth: Truth,
    sizes: Sequence[str] = tuple(SIZES),
    least: Sequence[float] = THRESHOLDS,
) -> dict[str, Matched]:
    """Matches results with the objects of each size, and with those of all.

    Args:
        found: The results, in any order.
        truth: The objects.
        sizes: The names of the sizes.
        least: The thresholds: what a result must have in common with its object.
    """
    found, rank = rank_results(found, truth)
    pairs = pair_boxes(found, truth, least[0], same_class=True)
    left, top, right, bottom = found.boxes
    area = (right - left) * (bottom - top) * truth.pixels[found.image]
    matched = {}
    for name in sizes:
        low, high = SIZES[name]
        is_needed = ~truth.is_ignored & (truth.area >= low) & (truth.area <= high)
        taken = match_boxes(pairs, rank, truth, ~is_needed, least)
        is_right = (taken >= 0) & np.append(is_needed, False)[taken]
        is_inside = ((area >= low) & (area <= high))[:, None]
        is_judged = is_right | ((taken < 0) & is_inside)
        matched[name] = Matched(found, taken, is_right, is_judged, is_needed)
    return matched


def average_precision(
    matched: Matched, truth: Truth, num_classes: int, images: Array | None = None
) -> Array:
    """Returns the average precision of each class at each threshold, float64 [classes, thresholds].

    It is NaN for a class without objects.

    Args:
        matched: The results of a size.
        truth: The objects.
        num_classes: How many classes there are.
        images: Which images count, bool; all if None.
    """
    found, is_needed = matched.found, matched.is_needed
    chosen = np.lexsort((-found.score, found.label))
    if images is not None:
        chosen, is_needed = chosen[images[found.image[chosen]]], is_needed & images[truth.image]
    needed = np.bincount(truth.label[is_needed], minlength=num_classes)
    ends = np.searchsorted(found.label[chosen], np.arange(num_classes + 1))
    result = np.full((num_classes, matched.taken.shape[1]), np.nan)
    for label in np.flatnonzero(needed):
        own = chosen[ends[label] : ends[label + 1]]
        right = np.cumsum(matched.is_right[own], 0)
        judged = np.cumsum(matched.is_judged[own], 0)
        precision = right / np.maximum(judged, 1)
        # The best precision at this recall or a larger one.
        best = np.maximum.accumulate(precision[::-1], 0)[::-1]
        best = np.concatenate([best, np.zeros((1, best.shape[1]))])
        recall = right / needed[label]
        for column in range(result.shape[1]):
            places = np.searchsorted(recall[:, column], _RECALLS)
            result[label, column] = best[places, column].mean()
    return result


def check_about(
    path: str, results: Results, truth: Truth, num_classes: int, *, doubts_list: bool = False
) -> None:
    """Checks that results are about these images and classes.

    Even a weak detector finds more objects of an image than what it says of other images does.

    Args:
        path: The file of the results.
        results: What it says.
        truth: The objects of the images.
        num_classes: How many classes there are.
        doubts_list: Whether they are to say what is wrong in the list. Results that are right by
            chance alone are refused then; as a score, they are only what they are.

    Raises:
        DataError: They are not.
    """
    found = rank_results(results, truth)[0].take(slice(_MAX_COMPARED))
    if not len(found.image):
        return
    shares = _weigh_classes(found, truth, num_classes)
    own, before, after = shares[[0, -1, 1 % num_classes]].tolist()
    if (other := max(before, after)) > max(_MOST_BETTER * own, _LEAST_SHARE):
        which = "before" if before >= after else "after"
        raise DataError(
            f"{path}: the numbers of all classes seem to be shifted by one: {own:.0%} of the "
            f"results are about an object of their class, and {other:.0%} about one of the class "
            f"{which}.",
            GIVE_ANNOTATIONS,
        )
    if own >= _LEAST_SHARE:
        return
    is_better = own > _measure_chance(found, truth, shares)
    what = (
        f"{path}: only {own:.0%} of the results are about an object of their class"
        f"{'' if is_better else ', no more than by chance'}. Ids or names mean other images or "
        "classes, places are in other pixels, or the detector has not learned much."
    )
    # A few results, or unsure ones, may miss by chance.
    if doubts_list and not is_better and (found.score >= LEAST_SCORE).sum() >= _LEAST_SURE:
        raise DataError(what, GIVE_ANNOTATIONS)
    progress.warn(f"{what} {GIVE_ANNOTATIONS}")


def _measure_chance(found: Results, truth: Truth, shares: Array) -> float:
    """Returns the largest share that is right if classes, or images, mean the next ones."""
    images, place = np.unique(found.image, return_inverse=True)
    orders = (np.roll(images, by)[place] for by in range(1, min(len(images), _ORDERS)))
    others = [_weigh_classes(found._replace(image=each), truth, len(shares)) for each in orders]
    return float(max([0.0, *shares[1:].tolist(), *(each[0] for each in others)]))


def _weigh_classes(found: Results, truth: Truth, num_classes: int) -> Array:
    """Returns the shares of results, by their scores, that are about an object of a class.

    Of their own class, and of each one after it, the first one after the last; float64 [classes].
    """
    pairs = pair_boxes(found, truth, THRESHOLDS[0], same_class=False)
    away = (truth.label[pairs.object] - found.label[pairs.result]) % num_classes
    weight = np.bincount(away, found.score[pairs.result], num_classes)
    total = max(found.score.sum(), np.finfo(float).tiny)
    shares: Array = np.minimum(weight / total, 1)
    return shares
