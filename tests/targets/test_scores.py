"""What every command says of a model, whatever it answers with; its numbers, counted by hand."""

from __future__ import annotations

import csv
import json
import re
from functools import cache

import numpy as np
import pyarrow.parquet as pq
import pytest

import darkroom
from darkroom.cli import main
from darkroom.errors import DataError
from darkroom.evaluation.report.result import Evaluation
from darkroom.options.conversion import ConversionOptions
from darkroom.targets.labels.metrics import measure as measure_labels
from darkroom.targets.labels.thresholds import choose_thresholds
from darkroom.targets.numbers.metrics import measure as measure_numbers

from .served import write_model

pytestmark = pytest.mark.crosses


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A function that returns the path of the model of a kind."""
    root = tmp_path_factory.mktemp("served")
    return cache(lambda kind: str(write_model(root / kind, kind)))


def count_slowly(scores, truth, thresholds):
    """Returns average precision, counts and exact answers, image by image."""
    rows = [n for n in range(len(truth)) if truth[n][0] == truth[n][0]]
    found = []
    for label, threshold in enumerate(thresholds):
        own = [n for n in rows if truth[n][label] == 1]
        says = [n for n in rows if scores[n][label] >= threshold]
        precisions = []
        for each in own:
            above = [n for n in rows if scores[n][label] >= scores[each][label]]
            precisions.append(sum(truth[n][label] == 1 for n in above) / len(above))
        mean = sum(precisions) / len(own) if own else None
        found.append((len(own), len(says), sum(n in own for n in says), mean))
    exact = sum(
        all((scores[n][c] >= t) == (truth[n][c] == 1) for c, t in enumerate(thresholds))
        for n in rows
    )
    return found, exact / len(rows)


def test_several_labels_are_measured_as_by_hand():
    rng = np.random.default_rng(5)
    scores = rng.integers(0, 9, (60, 4)) / 8  # with ties
    truth = (rng.random((60, 4)) < [0.5, 0.2, 0.7, 0.0]).astype(np.float32)
    truth[[3, 17]] = np.nan
    thresholds = (0.5, 0.25, 0.875, 0.5)
    found = measure_labels(scores.astype(np.float32), truth, list("abcd"), thresholds)
    expected, exact = count_slowly(scores.tolist(), truth.tolist(), thresholds)
    f1 = []
    for each, (support, predicted, right, precision) in zip(found.labels, expected, strict=True):
        assert (each.support, each.predicted) == (support, predicted)
        assert each.precision == pytest.approx(right / predicted)
        assert each.average_precision == (precision and pytest.approx(precision))
        if support:
            assert each.recall == pytest.approx(right / support)
            f1.append(2 * right / (support + predicted))
            assert each.f1 == pytest.approx(f1[-1])
    assert found.labels[3].recall is found.labels[3].f1 is None
    assert (found.records, found.unannotated, found.exact) == (58, 2, pytest.approx(exact))
    known = [each for each in expected if each[0]]
    assert found.mean_average_precision == pytest.approx(sum(each[3] for each in known) / 3)
    assert found.macro_f1 == pytest.approx(sum(f1) / 3)
    totals = [sum(each[column] for each in expected) for column in range(3)]
    assert found.micro_f1 == pytest.approx(2 * totals[2] / (totals[0] + totals[1]))
    assert found.baseline == pytest.approx(totals[0] / 58 / 3)


def test_chance_and_perfection_are_the_ends_of_the_scale():
    truth = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], np.float32)
    perfect = measure_labels(truth, truth, ["a", "b"], (0.5, 0.5))
    assert (perfect.mean_average_precision, perfect.exact, perfect.micro_f1) == (1, 1, 1)
    same = measure_labels(np.full((4, 2), 0.5, np.float32), truth, ["a", "b"], (0.5, 0.5))
    assert same.mean_average_precision == same.baseline == 0.5
    none = measure_labels(truth, np.zeros((4, 2), np.float32), ["a", "b"], (0.5, 0.5))
    assert none.mean_average_precision == 0
    with pytest.raises(DataError, match="None of the 4 images to score is annotated"):
        measure_labels(truth, truth * np.nan, ["a", "b"], (0.5, 0.5))


def count_f1(scores, has, threshold):
    says = scores >= threshold
    return 2 * (says & has).sum() / (says.sum() + has.sum())


def test_a_threshold_is_that_with_the_highest_f1_of_all():
    rng = np.random.default_rng(9)
    scores = (rng.integers(1, 40, (80, 3)) / 40).astype(np.float32)  # with ties
    truth = (
        rng.random((80, 3)) < np.stack([scores[:, 0], 1 - scores[:, 1], 0.1 * scores[:, 2]], 1)
    ).astype(np.float32)
    assert truth[:, 2].sum() < 10
    chosen = choose_thresholds(
        np.vstack([scores, scores[:3]]), np.vstack([truth, truth[:3] * np.nan])
    )
    # The third label is too rare to choose by, so it has the threshold of all labels together.
    parts = [
        (scores[:, 0], truth[:, 0] > 0),
        (scores[:, 1], truth[:, 1] > 0),
        (scores.ravel(), truth.ravel() > 0),
    ]
    for threshold, (each, has) in zip(chosen, parts, strict=True):
        best = max(count_f1(each, has, limit) for limit in np.unique(each))
        assert count_f1(each, has, threshold) == best
        # In the middle between two scores, so that no rounding of a server decides.
        assert np.abs(each - threshold).min() > 0.01


def test_without_any_image_of_a_label_the_threshold_is_a_half():
    assert choose_thresholds(np.full((30, 2), 0.9), np.zeros((30, 2))) == (0.5, 0.5)


@pytest.mark.tensorflow
def test_the_metric_of_training_is_the_mean_average_precision():
    from darkroom.targets.labels.head import KnownAveragePrecision

    rng = np.random.default_rng(4)
    scores = rng.random((400, 3)).astype(np.float32)
    truth = (rng.random((400, 3)) < scores).astype(np.float32)
    truth[::7] = np.nan
    metric = KnownAveragePrecision(3)
    for part in range(0, 400, 100):
        metric.update_state(truth[part : part + 100], scores[part : part + 100])
    exact = measure_labels(scores, truth, list("abc"), (0.5, 0.5, 0.5)).mean_average_precision
    # Keras counts at 200 thresholds.
    assert float(metric.result()) == pytest.approx(exact, abs=0.01)
    plain = KnownAveragePrecision(3)
    plain.update_state(np.nan_to_num(truth), scores)
    assert abs(float(plain.result()) - exact) > 0.03


def test_numbers_are_measured_as_by_hand():
    rng = np.random.default_rng(3)
    truth = np.stack([rng.normal(50, 9, 40), np.full(40, 7.0), rng.random(40)], 1)
    answers = truth + rng.normal(0, 2, (40, 3))
    truth[[1, 5], 0] = np.nan
    truth[9] = np.nan
    truth[:, 2] = np.nan
    found = measure_numbers(answers, truth, ["a", "same", "none"])
    pairs = [(x, y) for x, y in zip(answers[:, 0], truth[:, 0], strict=True) if y == y]
    mean = sum(y for _, y in pairs) / 37
    squares, spread = sum((x - y) ** 2 for x, y in pairs), sum((y - mean) ** 2 for _, y in pairs)
    first, same, none = found.numbers
    assert (first.records, first.missing, found.records, found.unannotated) == (37, 2, 39, 1)
    assert first.mae == pytest.approx(sum(abs(x - y) for x, y in pairs) / 37)
    assert first.rmse == pytest.approx((squares / 37) ** 0.5)
    assert first.r2 == found.r2 == pytest.approx(1 - squares / spread)
    assert (first.mean, first.baseline_rmse) == pytest.approx((mean, (spread / 37) ** 0.5))
    assert (same.r2, same.baseline_rmse, same.mean) == (None, 0, 7)
    assert (none.records, none.mae, none.r2) == (0, None, None)


@pytest.mark.tensorflow
def test_several_labels_are_evaluated(served, datasets, tmp_path, capsys):
    report = tmp_path / "report"
    command = ["evaluate", served("labels"), str(datasets["labels"]), "--split", "eval"]
    assert main([*command, "--report", str(report)]) == 0
    said = capsys.readouterr().out
    # Of eight images, six are annotated: four are big, two red and two round.
    assert said.splitlines()[0] == (
        "Score      0.4444 on the eval split of 6 records (mean average precision)"
    )
    assert "Not annotated, and not scored: 2 records of the eval split." in said
    assert re.search(r"big +0\.667 +0\.667 +1\.000 +0\.800 +0\.250 +6 +4", said)
    page = (report / "model.html").read_text()
    for text in ("Mean average precision 0.444 on the eval split", "Labels", "Worst mistakes"):
        assert text in page
    assert '<b class="no">big</b> (big 0.75)<span class="truth">is <b>round</b></span>' in page
    # Of a right image, the label that is closest to its threshold is named.
    assert '<b class="yes">big</b> (red 0.25)' in page
    assert (
        "| red | 0.333 | - | 0.000 | 0.000 | 0.500 | 0 | 2 |" in (report / "model.md").read_text()
    )
    found = darkroom.evaluate(served("labels"), datasets["labels"], "eval")
    assert (found.kind, found.score) == ("labels", pytest.approx(4 / 9))
    assert (found.metrics.exact, found.metrics.baseline) == (pytest.approx(2 / 6), found.score)
    assert Evaluation.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert "big" in found._repr_html_()


@pytest.mark.tensorflow
def test_numbers_are_evaluated(served, datasets, tmp_path, capsys):
    report = tmp_path / "report"
    command = ["evaluate", served("numbers"), str(datasets["numbers"]), "--split", "train"]
    assert main([*command, "--report", str(report)]) == 0
    lines = capsys.readouterr().out.splitlines()
    # w is 0 to 11.5, and h 100 to 77 without 97: the model knows them in another order.
    h = [100 - n for n in range(24) if n != 3]
    mae = sum(abs(each - 80) for each in h) / 23
    assert lines[1] == f"MAE        h {mae:.4g}, w 6.25"
    assert "Note       Missing, and not scored: h of 1 records." in lines
    assert "Note       The predictions are not better than always the mean." in lines
    page = (report / "model.html").read_text()
    assert "w: true numbers to the right, predicted ones upwards." in page
    assert page.count("<circle") == 23 + 24
    assert '<b class="no">h 80, w 12</b><span class="truth">is <b>h 100, w 0</b></span>' in page
    found = darkroom.evaluate(served("numbers"), datasets["numbers"], "train")
    assert found.metrics.numbers[1].mae == pytest.approx(6.25)
    assert found.score == pytest.approx(sum(each.r2 for each in found.metrics.numbers) / 2)
    assert Evaluation.from_dict(json.loads(json.dumps(found.to_dict()))) == found


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("kind", "head", "cells", "values", "line"),
    [
        ("labels", ["labels", "scores"], ["big", "0.750000"],
         {"labels": ["big"], "scores": "0.750000"}, "big 0.7500"),
        ("numbers", ["h", "w"], ["80", "12"], {"h": 80.0, "w": 12.0}, "h 80, w 12"),
    ],
)  # fmt: skip
def test_predictions_are_written(served, listed, tmp_path, capsys, kind, head, cells, values, line):
    image = str(listed(kind).parent / "3.png")
    for ending in ("csv", "jsonl"):
        path = tmp_path / f"found.{ending}"
        assert main(["predict", served(kind), image, "--output", str(path)]) == 0
        if ending == "csv":
            rows = list(csv.reader(path.read_text().splitlines()))
            assert rows == [["image_uri", *head], [image, *cells]]
        else:
            assert json.loads(path.read_text()) == {"image_uri": image, **values}
        more = {"label_kind": "labels"} if kind == "labels" else {"target_columns": ("h", "w")}
        if ending == "csv" and kind == "labels":
            more["label_separator"] = ";"
        options = ConversionOptions(**more)
        darkroom.convert(path, tmp_path / ending, options=options)
        [row] = pq.read_table(tmp_path / ending / "index").to_pylist()
        assert row["label"] == (["big"] if kind == "labels" else [80.0, 12.0])
    capsys.readouterr()
    assert main(["predict", served(kind), image]) == 0
    assert capsys.readouterr().out == f"{line}  {image}\n"
    assert "prediction" in darkroom.predict(served(kind), image)._repr_html_()


@pytest.mark.tensorflow
def test_a_model_and_data_of_two_kinds_do_not_meet(served, datasets, listed, capsys):
    assert main(["evaluate", served("labels"), str(datasets["numbers"]), "--split", "eval"]) == 1
    said = capsys.readouterr().err
    assert "answers with labels, and the images are labelled with numbers." in said
    assert main(["evaluate", served("numbers"), str(listed("numbers"))]) == 2
    assert "Convert it, and evaluate the model on the dataset." in capsys.readouterr().err
    with pytest.raises(DataError, match=r"from_logits is True, but the model in .* predicts numb"):
        darkroom.predict(served("numbers"), listed("numbers").parent, from_logits=True)
