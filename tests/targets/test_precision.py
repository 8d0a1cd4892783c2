"""Matching of results with objects, and average precision, against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

from darkroom.targets.boxes.matching import Truth
from darkroom.targets.boxes.metrics import measure_results
from darkroom.targets.boxes.precision import SIZES, THRESHOLDS, average_precision, match_sizes
from darkroom.targets.boxes.results import Results
from darkroom.targets.boxes.verdicts import CONFUSED, FALSE, FOUND, SHIFTED, TWICE, judge_results

SIDE = 200


def make_truth(objects, num_images=1):
    """Returns objects of (image, label, box in pixels, flag): a crowd, a difficult one or none."""
    boxes = np.array([box for _, _, box, *_ in objects], float).reshape(-1, 4).T / SIDE
    flags = [each[3] if len(each) > 3 else "" for each in objects]
    is_crowd = np.array([flag == "crowd" for flag in flags], bool)
    return Truth(
        np.array([each[0] for each in objects], np.int64),
        np.array([each[1] for each in objects], np.int64),
        boxes,
        (boxes[2] - boxes[0]) * (boxes[3] - boxes[1]) * SIDE**2,
        is_crowd,
        is_crowd | np.array([flag == "difficult" for flag in flags], bool),
        np.full(num_images, SIDE**2, float),
        np.ones(num_images, bool),
    )


def make_results(results):
    """Returns results of (image, label, box in pixels, score)."""
    image, label, boxes, score = zip(*results, strict=True)
    return Results(
        np.array(image), np.array(label), np.array(score, float), np.array(boxes, float).T / SIDE
    )


def measure_share(box, other, is_crowd):
    """Returns what two boxes have in common."""
    across = min(box[2], other[2]) - max(box[0], other[0])
    down = min(box[3], other[3]) - max(box[1], other[1])
    common = max(across, 0) * max(down, 0)
    areas = [(each[2] - each[0]) * (each[3] - each[1]) for each in (box, other)]
    return common / (areas[0] if is_crowd else sum(areas) - common)


def measure_by_loops(found, truth, label, least, low, high):
    """Returns the average precision of a class as pycocotools computes it, a result at a time."""
    judged = []
    needed = 0
    for image in range(len(truth.pixels)):
        ours = [
            n for n in range(len(truth.image)) if (truth.image[n], truth.label[n]) == (image, label)
        ]
        ignored = {n: truth.is_ignored[n] or not low <= truth.area[n] <= high for n in ours}
        needed += sum(not each for each in ignored.values())
        ours.sort(key=lambda n: ignored[n])
        taken = set()
        said = [
            n for n in range(len(found.image)) if (found.image[n], found.label[n]) == (image, label)
        ]
        said.sort(key=lambda n: -found.score[n])
        for n in said[:100]:
            best, most = None, least
            for other in ours:
                if other in taken and not truth.is_ignored[other]:
                    continue
                if best is not None and not ignored[best] and ignored[other]:
                    break
                share = measure_share(
                    found.boxes[:, n], truth.boxes[:, other], truth.is_crowd[other]
                )
                if share >= most:
                    best, most = other, share
            left, top, right, bottom = found.boxes[:, n] * SIDE
            is_inside = low <= (right - left) * (bottom - top) <= high
            if best is not None:
                taken.add(best)
            if (best is None and is_inside) or (best is not None and not ignored[best]):
                judged.append((-found.score[n], best is not None))
    if not needed:
        return np.nan
    right = np.cumsum([each for _, each in sorted(judged, key=lambda each: each[0])])
    precision = right / np.arange(1, len(right) + 1)
    recall = right / needed
    points = [max(precision[recall >= each], default=0) for each in np.linspace(0, 1, 101)]
    return np.mean(points)


@pytest.mark.parametrize("seed", range(5))
def test_average_precision_is_that_of_a_loop_over_results(seed):
    rng = np.random.default_rng(seed)
    objects, results = [], []
    for _ in range(150):
        image, label = int(rng.integers(8)), int(rng.integers(3))
        size = np.exp(rng.uniform(2, 5.2, 2))
        start = rng.uniform(0, SIDE - size)
        box = np.array([*start, *(start + size)])
        flag = str(rng.choice(["", "", "", "crowd", "difficult"]))
        objects.append((image, label, box, flag))
        for _ in range(rng.integers(0, 4)):
            moved = box + rng.normal(0, 0.08, 4) * np.tile(size, 2)
            if (moved[2:] > moved[:2]).all():
                results.append((image, label, moved, rng.random()))
    truth, found = make_truth(objects, 8), make_results(results)
    for name, matched in match_sizes(found, truth).items():
        expected = [
            [measure_by_loops(found, truth, label, least, *SIZES[name]) for least in THRESHOLDS]
            for label in range(3)
        ]
        np.testing.assert_allclose(average_precision(matched, truth, 3), expected, atol=1e-12)


def judge(objects, results, least_score=0.0):
    truth, found = make_truth(objects), make_results(results)
    matched = match_sizes(found, truth)["all"]
    verdicts = judge_results(matched, truth, least_score)
    order = np.argsort(-matched.found.score)
    return verdicts.kind[order].tolist(), np.flatnonzero(verdicts.is_missing).tolist()


BOX, OTHER = [0, 0, 100, 100], [120, 120, 180, 180]
NEAR, FAR = [0, 0, 100, 90], [0, 60, 100, 160]


@pytest.mark.parametrize(
    ("results", "kinds", "missing"),
    [
        ([(0, 0, BOX, 0.9)], [FOUND], [1]),
        ([(0, 0, BOX, 0.9), (0, 0, NEAR, 0.8)], [FOUND, TWICE], [1]),
        # The place of an object that is found: the other class is one result too many.
        ([(0, 0, BOX, 0.9), (0, 1, NEAR, 0.8)], [FOUND, TWICE], [1]),
        ([(0, 1, NEAR, 0.9)], [CONFUSED], [1]),
        ([(0, 0, FAR, 0.9)], [SHIFTED], [1]),
        ([(0, 1, FAR, 0.9)], [FALSE], [0, 1]),
        ([(0, 0, BOX, 0.9), (0, 0, FAR, 0.8)], [FOUND, FALSE], [1]),
        ([(0, 0, [0, 150, 50, 200], 0.9), (0, 1, OTHER, 0.8)], [FALSE, FOUND], [0]),
    ],
)
def test_each_result_has_one_verdict_and_what_none_is_about_is_missing(results, kinds, missing):
    assert judge([(0, 0, BOX), (0, 1, OTHER)], results) == (kinds, missing)


def test_results_below_the_score_and_objects_that_do_not_count_are_not_judged():
    assert judge([(0, 0, BOX)], [(0, 0, BOX, 0.4)], 0.5) == ([0], [0])
    assert judge([(0, 0, BOX, "crowd")], [(0, 0, [10, 10, 30, 30], 0.9)]) == ([0], [])
    assert judge([(0, 0, BOX, "difficult")], [(0, 0, BOX, 0.9), (0, 0, NEAR, 0.8)]) == ([0, 0], [])


def test_the_numbers_of_a_detector():
    objects = [(0, 0, BOX), (0, 1, OTHER), (1, 0, BOX)]
    results = [(0, 0, BOX, 0.9), (0, 0, OTHER, 0.2), (1, 1, BOX, 0.6)]
    truth, names = make_truth(objects, 3), ["cat", "dog", "cow"]
    metrics, _ = measure_results(match_sizes(make_results(results), truth), truth, names)
    assert (metrics.records, metrics.objects, metrics.results, metrics.silent) == (3, 3, 3, 1)
    # 51 of the 101 recalls are reached, by one of two classes.
    assert metrics.average_precision == pytest.approx(51 / 101 / 2)
    assert metrics.sizes == {"small": None, "medium": 0.0, "large": pytest.approx(51 / 101)}
    best = metrics.best
    assert (best.score, best.precision, best.recall, best.f1) == (0.9, 1, 1 / 3, 0.5)
    # From the best score on, the other two are not counted.
    counts = {"found": 1, "missing": 2, "doubled": 0, "confused": 0, "shifted": 0, "false": 0}
    assert metrics.errors == counts
    assert [(each.label, each.average_precision, each.objects) for each in metrics.classes] == [
        ("cat", pytest.approx(51 / 101), 2),
        ("dog", 0.0, 1),
        ("cow", None, 0),
    ]
    assert [(each.score, each.results) for each in metrics.points][:2] == [(0.1, 3), (0.2, 3)]
