"""The rate of a training, its decay, and the limit of its gradients."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from darkroom.options.training import TrainingOptions
from darkroom.targets.label.head import LabelHead
from darkroom.training.recipe.optimizer import make_optimizer, set_place

pytestmark = pytest.mark.tensorflow


def _make(num_steps=100, **values):
    return make_optimizer(TrainingOptions(**values), num_steps)


def _read_rates(optimizer, *places):
    rates = []
    for place in places:
        set_place(optimizer, place)
        rates.append(float(optimizer.learning_rate))
    return rates


def test_the_rate_rises_and_falls_as_planned():
    optimizer = _make(learning_rate=0.2, schedule="cosine", warmup_ratio=0.1)
    rates = _read_rates(optimizer, 0, 5, 10, 55, 100, 1000)
    assert rates == pytest.approx([0.2 / 11, 0.1 + 0.1 / 11, 0.2, 0.101, 0.002, 0.002])


def test_a_constant_rate_stays_after_the_warm_up():
    optimizer = _make(learning_rate=0.2, schedule="constant", warmup_ratio=0.5)
    assert _read_rates(optimizer, 0, 50, 100, 1000) == pytest.approx([0.2 / 51, 0.2, 0.2, 0.2])
    optimizer = _make(learning_rate=0.2, schedule="constant", warmup_ratio=0.0)
    assert _read_rates(optimizer, 0, 7) == pytest.approx([0.2, 0.2])


def test_all_batches_may_be_for_the_warm_up():
    optimizer = _make(4, learning_rate=0.5, warmup_ratio=1.0)
    assert _read_rates(optimizer, 0, 2) == pytest.approx([0.1, 0.3])
    assert _read_rates(_make(1, learning_rate=0.5), 0) == pytest.approx([0.5])


def test_the_place_of_a_rate_that_is_not_planned_is_left_alone():
    optimizer = keras.optimizers.SGD(0.5)
    set_place(optimizer, 9)
    assert int(optimizer.iterations) == 0
    scaled = keras.optimizers.LossScaleOptimizer(_make())
    set_place(scaled, 9)
    assert int(scaled.iterations) == 9


def _step(optimizer, gradients):
    """Returns what a step makes of weights that are 1."""
    names = ("kernel", "bias", "gamma")[: len(gradients)]
    variables = [keras.Variable(np.ones(1, np.float32), name=name) for name in names]
    optimizer.build(variables)
    optimizer.apply([np.array(g, np.float32) for g in gradients], variables)
    return [variable.numpy() for variable in variables]


def test_only_kernels_decay():
    optimizer = _make(learning_rate=0.5, warmup_ratio=0.0, weight_decay=0.1)
    kernel, bias, gamma = _step(optimizer, [[0.0], [0.0], [0.0]])
    assert (kernel.item(), bias.item(), gamma.item()) == pytest.approx((0.95, 1, 1))
    optimizer = _make(learning_rate=0.5, weight_decay=0.0)
    assert _step(optimizer, [[0.0]])[0].item() == 1


@pytest.mark.parametrize(("norm", "expected"), [(1.0, [0.6, 0.8]), (50.0, [3.0, 4.0])])
def test_gradients_are_limited_together(norm, expected):
    optimizer = _make(clip_norm=norm)
    _step(optimizer, [[3.0], [4.0]])
    first = [v.numpy().item() for v in optimizer.variables if "momentum" in v.name]
    assert first == pytest.approx([0.1 * each for each in expected])


def test_a_weight_without_a_gradient_is_left_out_of_the_limit():
    optimizer = _make(clip_norm=1.0, weight_decay=0.0)
    kernel, bias = (keras.Variable(np.ones(1, np.float32), name=n) for n in ("kernel", "bias"))
    optimizer.build([kernel, bias])
    with pytest.warns(UserWarning, match="Gradients do not exist"):
        optimizer.apply([None, np.array([4.0], np.float32)], [kernel, bias])
    assert kernel.numpy() == 1
    assert bias.numpy() != 1


def test_smoothed_numbers_have_the_loss_of_smoothed_vectors():
    labels, scores = np.array([2, 0, 1]), np.random.default_rng(0).dirichlet(np.ones(4), 3)
    weights = np.array([1.0, 0.5, 2.0])
    found = LabelHead(4).make_loss(0.2, has_vectors=False)(labels, scores, weights)
    expected = LabelHead(4).make_loss(0.2, has_vectors=True)(np.eye(4)[labels], scores, weights)
    assert float(found) == pytest.approx(float(expected), rel=1e-6)
    one = LabelHead(4).make_loss(0.2, has_vectors=False)(labels[:1], scores[:1])
    plain = -(0.8 * np.log(scores[0, 2]) + 0.2 * np.log(scores[0]).mean())
    assert float(one) == pytest.approx(plain, rel=1e-5)


def test_without_smoothing_the_loss_is_keras_own():
    assert LabelHead(4).make_loss(0.0, has_vectors=False) == "sparse_categorical_crossentropy"
    assert LabelHead(4).make_loss(0.0, has_vectors=True) == "categorical_crossentropy"
