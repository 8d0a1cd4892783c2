"""Fine-tuning of a network whose head is trained: which layers, and how fast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras

from darkroom.options.training import TrainingOptions
from darkroom.training.state.course import Phase
from darkroom.training.state.history import ALL_PHASE, TOP_PHASE

# Shares of the layers that are trained: the last ones.
_SHARES = {TOP_PHASE: 1 / 3, ALL_PHASE: 1.0}
# For the default learning rate; with another one, they change by the same factor.
_RATES = {TOP_PHASE: 3e-4, ALL_PHASE: 5e-4}
# The weights at the end of an epoch are their mean over about this share of it: with a few hundred
# images, single steps go to and fro.
_AVERAGED = 1 / 3


def choose_trained_layers(base: Any, phase: str) -> None:
    """Makes those layers of a network trainable that a phase trains, and no other.

    Batch normalisation never is: with the batches of a few hundred images its statistics would get
    worse. Keras then also uses those that it has.

    Args:
        base: A Keras model, from images to features.
        phase: The name of the phase.
    """
    layers = [layer for layer in _list_layers(base) if layer.weights]
    norms = [layer for layer in layers if isinstance(layer, keras.layers.BatchNormalization)]
    others = [layer for layer in layers if layer not in norms]
    first = round(len(others) * (1 - _SHARES[phase]))
    for layer in (*norms, *others[:first]):
        layer.trainable = False
    for layer in others[first:]:
        layer.trainable = True


def release_layers(base: Any) -> None:
    """Makes all layers of a network trainable again, for who trains it further."""
    for layer in _list_layers(base):
        layer.trainable = True


def build_optimizer(
    options: TrainingOptions, phase: Phase, num_steps: int, *, averages: bool = True
) -> Any:
    """Builds the optimizer of a phase, whose rate rises for an epoch and then falls to zero.

    Args:
        options: The options of the training.
        phase: The phase.
        num_steps: Batches in an epoch.
        averages: At the end of each epoch, the weights become their mean over the last steps, from
            which the next epoch continues.
    """
    rate = _RATES[phase.name] * options.learning_rate / TrainingOptions.learning_rate
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0,
        max(1, (phase.epochs - 1) * num_steps),
        warmup_target=rate,
        warmup_steps=num_steps,
    )
    momentum = max(0.0, 1 - 1 / max(1.0, _AVERAGED * num_steps))
    return keras.optimizers.Adam(schedule, use_ema=averages, ema_momentum=momentum)


def _list_layers(model: Any) -> Iterator[Any]:
    """Yields the layers of a model, and those of the models in it, in their order."""
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            yield from _list_layers(layer)
        else:
            yield layer
