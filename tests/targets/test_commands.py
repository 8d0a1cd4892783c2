"""Each kind of target goes through train, evaluate, predict and export."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import darkroom
from darkroom.errors import DataError
from darkroom.options.conversion import ConversionOptions
from darkroom.options.training import TrainingOptions
from darkroom.targets.scoring import find_scoring
from darkroom.training.formats import converter, portable

from .conftest import OPTIONS

pytestmark = [
    pytest.mark.crosses,
    pytest.mark.tensorflow,
    pytest.mark.usefixtures("simple_decoder"),
]


@pytest.fixture(scope="module")
def trained(datasets, tmp_path_factory):
    """A function that returns the training of a kind."""
    root = tmp_path_factory.mktemp("trained")
    options = TrainingOptions(epochs=1, image_size=(8, 8), augment="none", profile_input=False)
    return cache(lambda kind: darkroom.train(datasets[kind], root / kind, options=options))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "answers"),
    [
        pytest.param("label", {"label", "score"}, marks=pytest.mark.long),
        ("labels", {"labels", "scores"}),
        pytest.param("numbers", {"w", "h"}, marks=pytest.mark.long),
    ],
)
def test_every_command_takes_a_model_of_every_kind(trained, datasets, listed, kind, answers):
    result = trained(kind)
    folder, scoring = Path(result.checkpoint_dir), find_scoring(kind)
    assert {"training.json", "model.html", "model.keras"} <= {
        each.name for each in folder.iterdir()
    }
    found = darkroom.evaluate(folder, datasets[kind], split="eval")
    assert (found.kind, found.score) == (kind, pytest.approx(result.evaluation.score))
    assert {*scoring.scalars} <= {*vars(found.metrics)}
    assert found.metrics.records == (6 if kind == "labels" else 8)
    [predicted] = darkroom.predict(folder, listed(kind).parent / "3.png").predictions
    assert {*predicted.list_cells()} == answers


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "agree_on"), [("label", "same label"), ("labels", "same labels"), ("numbers", "-")]
)
def test_a_model_of_every_kind_is_exported(
    trained, datasets, monkeypatch, tmp_path, kind, agree_on
):
    folder = Path(trained(kind).checkpoint_dir)

    def convert_here(command, **_):
        converter.main(command[3:])
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(portable, "subprocess", SimpleNamespace(run=convert_here))
    exported = darkroom.export(folder, datasets[kind], tmp_path / "out", ["tflite"])
    [made] = exported.exports
    assert made.max_difference < 1e-3
    assert made.agreement == (None if kind == "numbers" else 1)
    assert agree_on in exported.to_text().splitlines()[2]
    names = {"label": ["even", "odd"], "labels": ["big", "red", "round"], "numbers": ["w", "h"]}
    assert (tmp_path / "out/labels.txt").read_text().split() == names[kind]
    other = datasets["label" if kind == "numbers" else "numbers"]
    with pytest.raises(DataError, match=f"answers with {kind}, and the images are labelled with"):
        darkroom.export(folder, other, tmp_path / "other", ["tflite"])


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        ("labels", (2, "")),
        ("numbers", (3, "")),
        pytest.param("numbers", (slice(3, 5), ""), marks=pytest.mark.long),
    ],
)
def test_nothing_to_learn_is_an_error(listed, tmp_path, kind, cells):
    """A training split without labels, without one of the numbers, and without both."""
    place, text = cells

    def change(rows):
        for row in rows[:24]:
            row[place] = [text] * 2 if isinstance(place, slice) else text
        return rows

    darkroom.convert(
        listed(kind, change), tmp_path / "data", options=ConversionOptions(**OPTIONS[kind])
    )
    said = "of the train split (is annotated|has w)"
    with pytest.raises(DataError, match=f"^None of the .*{said}"):
        darkroom.train(tmp_path / "data", tmp_path / "run", epochs=1, image_size=8)


def test_heads_learn_from_what_is_known():
    """Means, weights and losses, against plain NumPy."""
    from darkroom.targets.labels.head import LabelsHead
    from darkroom.targets.numbers.head import NumbersHead

    rng = np.random.default_rng(3)
    values = rng.normal((5000, -2), (2, 30), (40, 2)).astype(np.float32)
    values[rng.random(values.shape) < 0.2] = np.nan
    head = NumbersHead.fit("wh", lambda most: np.array_split(values[:most], 7), "none")
    np.testing.assert_allclose(head.make_example(has_vectors=False)[0], np.nanmean(values, 0), 1e-5)
    answers = np.nan_to_num(values, nan=7) + rng.normal(0, 20, values.shape).astype(np.float32)
    error = np.abs(values - answers) / np.nanstd(values.astype(np.float64), axis=0)
    slow = [0.5 * e * e if e < 1 else e - 0.5 for e in error.ravel() if e == e]
    assert float(head.make_loss(0, has_vectors=False)(values, answers)) == pytest.approx(
        np.mean(slow), rel=1e-4
    )
    [r2] = head.list_metrics()
    for rows in np.array_split(np.arange(40), 3):
        r2.update_state(values[rows], answers[rows])
    explained = 1 - np.nansum((values - answers) ** 2, 0) / (
        np.nanvar(values.astype(np.float64), 0) * (~np.isnan(values)).sum(0)
    )
    assert float(r2.result()) == pytest.approx(explained.mean(), rel=1e-3)

    truth = (rng.random((30, 2)) < (0.2, 0.6)).astype(np.float32)
    truth[[3, 8]] = np.nan
    scores = rng.uniform(0.05, 0.95, truth.shape).astype(np.float32)
    has = np.nansum(truth, 0)
    weights = (28 - has) / has
    slow = [
        -w * np.log(s) if t else -np.log(1 - s)
        for row, said in zip(truth, scores, strict=True)
        for t, s, w in zip(row, said, weights, strict=True)
        if t == t
    ]
    head = LabelsHead.fit("ab", lambda most: [truth[:9], truth[9:most]], "weights")
    loss = head.make_loss(0, has_vectors=False)
    assert float(loss(truth, scores)) == pytest.approx(np.mean(slow), rel=1e-4)
