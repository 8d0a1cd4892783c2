"""A prior is added in training alone, so that what is left counts every label the same."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from darkroom.errors import UsageError
from darkroom.training.recipe.balance import PriorShift, add_prior

pytestmark = pytest.mark.tensorflow

COUNTS = np.array([18, 2])


def _build():
    inputs = keras.Input((3,))
    outputs = keras.layers.Dense(2, activation="softmax")(inputs)
    return keras.Model(inputs, outputs, name="own")


def test_training_multiplies_by_the_shares_of_the_labels():
    layer, scores = PriorShift(COUNTS), np.array([[0.5, 0.5], [0.1, 0.9]], np.float32)
    np.testing.assert_allclose(layer(scores, training=True), [[0.9, 0.1], [0.5, 0.5]], rtol=1e-6)
    np.testing.assert_array_equal(layer(scores, training=False), scores)


def test_a_model_that_sees_nothing_learns_the_prior_only_without_it():
    # 200 batches, each with all labels as often as they are there.
    images, labels = np.zeros((4000, 3), np.float32), np.tile(np.repeat([0, 1], COUNTS), 200)
    answers = []
    for counts in (None, COUNTS):
        model = _build()
        trained = model if counts is None else add_prior(model, counts)
        rate = keras.optimizers.SGD(1.0)
        trained.compile(optimizer=rate, loss="sparse_categorical_crossentropy")
        trained.fit(images, labels, batch_size=20, shuffle=False, verbose=0)
        answers.append(model.predict(images[:1], verbose=0)[0])
    np.testing.assert_allclose(answers, [[0.9, 0.1], [0.5, 0.5]], atol=0.01)


def test_a_model_with_a_prior_has_the_same_variables():
    model = _build()
    trained = add_prior(model, COUNTS)
    assert [id(each) for each in trained.variables] == [id(each) for each in model.variables]


def test_a_model_with_a_loss_or_step_of_its_own_takes_no_prior():
    compiled = _build()
    compiled.compile(loss="sparse_categorical_crossentropy")

    class Stepping(keras.Model):
        def train_step(self, data):
            return {}

    inputs = keras.Input((3,))
    own = Stepping(inputs, keras.layers.Softmax()(inputs))
    for model in (compiled, own):
        with pytest.raises(UsageError, match="its own loss or training step") as raised:
            add_prior(model, COUNTS)
        assert raised.value.hint == "Use --balance weights."
