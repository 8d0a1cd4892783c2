"""A model that gives logits: refused, or its probabilities are made of them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import darkroom
from darkroom.cli import main
from darkroom.errors import DataError
from darkroom.targets.label.probabilities import are_probabilities, make_probabilities

from ..simple_decoder import decode_simply
from .conftest import LABELS

LOGITS = np.array([[2.0, -1.0, 0.5], [0.0, 800.0, 1.0]], np.float32)
SHARES = np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]], np.float32)


@pytest.mark.parametrize(
    ("row", "is_one"),
    [
        ([0.2, 0.3, 0.5], True),
        ([0.2, 0.3, 0.5009], True),
        ([1.0000001, 0.0, 0.0], True),
        ([0.2, 0.3, 0.4989], False),
        ([0.5, 0.5, 0.5], False),
        ([1.1, -0.1, 0.0], False),
        ([2.0, -1.0, 0.5], False),
    ],
)
def test_what_counts_as_probabilities(row, is_one):
    assert are_probabilities(np.array([[0.0, 1.0, 0.0], row], np.float32)) is is_one


def test_probabilities_of_logits():
    found = make_probabilities(LOGITS, "m", from_logits=True)
    powers = np.exp(LOGITS[0])
    np.testing.assert_allclose(found, [powers / powers.sum(), [0, 1, 0]], rtol=1e-6)
    np.testing.assert_array_equal(make_probabilities(SHARES, "m", from_logits=False), SHARES)


@pytest.mark.parametrize(
    ("scores", "from_logits", "message"),
    [
        (LOGITS, False, r"in m does not give probabilities: for an image 2, -1, 0\.5"),
        (np.vstack([SHARES, LOGITS]), False, r"for an image 2, -1, 0\.5"),
        (SHARES, True, r"but the model in m gives probabilities: 0\.5, 0\.25, 0\.25"),
        (LOGITS * np.nan, False, "not finite numbers for 2 of 2 images"),
        (LOGITS * np.nan, True, "not finite numbers for 2 of 2 images"),
    ],
)
def test_anything_else_is_refused(scores, from_logits, message):
    with pytest.raises(DataError, match=message):
        make_probabilities(scores, "m", from_logits=from_logits)


@pytest.mark.tensorflow
def test_an_exported_model_that_gives_logits(model, colors, tmp_path, capsys, monkeypatch):
    import keras
    import tensorflow as tf

    from darkroom.training import export

    inputs = keras.Input((6, 5, 3), dtype="uint8")
    means = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(inputs))
    logits = keras.Model(inputs, keras.ops.flip(means, axis=1) * 5)
    folder = tmp_path / "logits"
    monkeypatch.setattr(export, "check_answers", lambda *_, **options: None)
    monkeypatch.setattr(tf.saved_model, "load", cache(tf.saved_model.load))
    with decode_simply():
        export.export_model(logits, LABELS, (6, 5), str(folder))
    for command in (["evaluate"], ["predict"]):
        assert main([*command, str(folder), str(colors)]) == 1
        assert f"The model in {folder} does not give probabilities" in capsys.readouterr().err
    assert darkroom.evaluate(folder, colors, from_logits=True).accuracy == 0.7
    answers = darkroom.predict(folder, colors, from_logits=True).predictions
    for each, same in zip(answers, darkroom.predict(model, colors).predictions, strict=True):
        assert (each.path, each.label) == (same.path, same.label)
        assert each.score == pytest.approx(same.score, rel=1e-6)
    with pytest.raises(DataError, match="from_logits is True, but"):
        darkroom.predict(model, colors, from_logits=True)
