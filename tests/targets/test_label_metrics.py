"""The numbers of an evaluation, against values that were worked out by hand, and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from darkroom.targets.label.metrics import (
    Bin,
    ClassScore,
    RocPoint,
    find_wilson_interval,
    measure,
    measure_calibration,
    measure_roc,
)

# Ten records of three labels: four of a, six of b, none of c.
LABELS = ["a", "b", "c"]
TRUTH = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
SCORES = np.array(
    [
        [0.90, 0.05, 0.05],
        [0.80, 0.10, 0.10],
        [0.50, 0.30, 0.20],
        [0.20, 0.70, 0.10],  # b
        [0.10, 0.90, 0.00],
        [0.10, 0.90, 0.00],
        [0.00, 1.00, 0.00],
        [0.60, 0.40, 0.00],  # a
        [0.30, 0.30, 0.40],  # c
        [0.20, 0.60, 0.20],
    ]
)


def test_numbers_worked_out_by_hand():
    found = measure(SCORES, TRUTH, LABELS)
    assert (found.records, found.accuracy) == (10, 0.7)
    # a: 3 of 4 records, 4 predictions; b: 4 of 6, 5 predictions; c: 1 prediction, which is wrong.
    assert found.classes == (
        ClassScore("a", 4, 4, 0.75, 0.75, 0.75),
        ClassScore("b", 6, 5, 0.8, 4 / 6, 8 / 11),
        ClassScore("c", 0, 1, 0.0, None, None),
    )
    assert found.macro_recall == pytest.approx((3 / 4 + 4 / 6) / 2)
    assert found.macro_f1 == pytest.approx((3 / 4 + 8 / 11) / 2)
    assert (found.majority_label, found.majority_accuracy) == ("b", 0.6)
    assert found.top5_accuracy is None


def test_a_roc_curve_worked_out_by_hand():
    second = np.array([0.9, 0.8, 0.8, 0.3, 0.1])
    scores = np.stack([1 - second, second], axis=1)
    found = measure(scores, np.array([1, 0, 1, 1, 0]), ["a", "b"])
    # Records with one score are said together.
    assert [*found.roc] == [
        RocPoint(1.0, 0.0, 0.0),
        RocPoint(0.9, 0.0, pytest.approx(1 / 3)),
        RocPoint(0.8, 0.5, pytest.approx(2 / 3)),
        RocPoint(0.3, 0.5, 1.0),
        RocPoint(0.1, 1.0, 1.0),
    ]
    assert measure(scores, np.array([1] * 5), ["a", "b"]).roc == ()
    assert measure(SCORES, TRUTH, LABELS).roc == ()


def test_a_roc_curve_of_many_records_has_few_points_and_both_ends():
    random = np.random.default_rng(0)
    found = measure_roc(random.random(5_000), random.random(5_000) < 0.5)
    assert len(found) == 101
    assert (found[0], found[-1].false_positive_rate, found[-1].recall) == (RocPoint(1, 0, 0), 1, 1)
    assert [*found] == sorted(found, key=lambda point: -point.threshold)


def test_the_label_is_among_five():
    scores = np.tile(np.array([0.3, 0.25, 0.2, 0.1, 0.08, 0.05, 0.02]), (7, 1))
    found = measure(scores, np.arange(7), list("abcdefg"))
    assert found.accuracy == pytest.approx(1 / 7)
    assert found.top5_accuracy == pytest.approx(5 / 7)


def test_of_equal_scores_the_first_labels_count():
    found = measure(np.full((7, 7), 1 / 7), np.arange(7), list("abcdefg"))
    assert found.accuracy == pytest.approx(1 / 7)
    assert found.top5_accuracy == pytest.approx(5 / 7)


@pytest.mark.parametrize(
    ("right", "records", "low", "high"),
    [
        # Newcombe 1998, table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        # By hand: 1 / (1 + z²) for one of one.
        (1, 1, 0.2065, 1.0),
    ],
)
def test_wilson_s_interval(right, records, low, high):
    assert find_wilson_interval(right, records) == pytest.approx((low, high), abs=5e-5)


def test_the_interval_holds_the_share_itself():
    for records in range(1, 60):
        for right in range(records + 1):
            low, high = find_wilson_interval(right, records)
            assert 0 <= low <= right / records <= high <= 1


def test_calibration_worked_out_by_hand():
    # 15 bins: 0.95 and 1.0 in the last one, 0.5 in the eighth, 0.1 in the second.
    confidence = np.array([0.95, 1.0, 0.5, 0.5, 0.1])
    is_right = np.array([True, False, True, True, False])
    bins = measure_calibration(confidence, is_right)
    assert bins == (Bin(1, 0.1, 0.0), Bin(2, 0.5, 1.0), Bin(2, 0.975, 0.5))
    scores = np.stack([confidence, 1 - confidence], axis=1)[:4]
    found = measure(scores, np.array([0, 1, 0, 0]), ["a", "b"])
    assert found.calibration_error == pytest.approx((2 * 0.5 + 2 * 0.475) / 4)


def test_scores_of_half_the_precision_give_the_same_numbers():
    exact, found = measure(SCORES, TRUTH, LABELS), measure(SCORES.astype(np.float32), TRUTH, LABELS)
    assert found.classes == exact.classes
    assert found.calibration_error == pytest.approx(exact.calibration_error, abs=1e-6)
    assert isinstance(found.bins[0].confidence, float)
