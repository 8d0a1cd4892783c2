"""The optimizer of a training, and the course of its rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from darkroom.options.recipe import CONSTANT, RecipeFields

# Decay pulls to 0, which for these is not simpler than any other value.
_WITHOUT_DECAY = ("bias", "beta", "gamma")
# Of the rate, at the end of its course.
_LAST_SHARE = 0.01


class ClippedAdamW(keras.optimizers.AdamW):
    """AdamW that limits the norm of the gradient of a whole batch, on any number of devices.

    Keras's own `global_clipnorm` limits the gradients that each device computed for its share.

    Args:
        clip_norm: The largest norm of all gradients together.
        options: Those of AdamW.
    """

    def __init__(self, *, clip_norm: float, **options: Any) -> None:
        super().__init__(**options)
        self._clip_norm = clip_norm

    def apply(self, grads: Sequence[Any], trainable_variables: Any = None) -> None:
        """See Keras. Only here the gradients are known, and are those of the unscaled loss."""
        known = [tf.convert_to_tensor(each) for each in grads if each is not None]
        context = tf.distribute.get_replica_context()
        replicas = context.num_replicas_in_sync
        if replicas > 1:
            known = context.all_reduce(tf.distribute.ReduceOp.SUM, known)
        clipped, _ = tf.clip_by_global_norm(known, self._clip_norm)
        # Keras adds up those of all devices, which are now the same.
        shares = iter([each / replicas for each in clipped])
        super().apply([g if g is None else next(shares) for g in grads], trainable_variables)


def make_optimizer(options: RecipeFields, num_steps: int) -> Any:
    """Makes an optimizer.

    Args:
        options: Its learning-rate schedule and the rest.
        num_steps: Number of batches in the whole training.

    Returns:
        A Keras optimizer, whose rate depends on its `iterations` alone.
    """
    warmup = int(options.warmup_ratio * num_steps)
    rate = options.learning_rate
    schedule = keras.optimizers.schedules.CosineDecay(
        rate / (warmup + 1) if warmup else rate,
        # Keras takes no 0, where all batches are for the warm-up.
        max(1, num_steps - warmup),
        alpha=1.0 if options.schedule == CONSTANT else _LAST_SHARE,
        warmup_target=rate if warmup else None,
        warmup_steps=warmup,
    )
    values: dict[str, Any] = {"learning_rate": schedule, "weight_decay": options.weight_decay}
    if options.clip_norm:
        optimizer = ClippedAdamW(clip_norm=options.clip_norm, **values)
    else:
        optimizer = keras.optimizers.AdamW(**values)
    optimizer.exclude_from_weight_decay(var_names=_WITHOUT_DECAY)
    return optimizer


def set_place(optimizer: Any, num_done: int) -> None:
    """Says how many batches of the present size are done: it may have changed meanwhile."""
    if isinstance(optimizer.learning_rate, tf.Tensor):
        getattr(optimizer, "inner_optimizer", optimizer).iterations.assign(num_done)
