"""Builds and compiles the model of a training: its parts, its loss, and all its variables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import keras
import numpy as np

from darkroom.errors import UsageError
from darkroom.options.training import TrainingOptions
from darkroom.training.models import build_model
from darkroom.training.recipe.balance import Counts, add_prior
from darkroom.training.recipe.optimizer import make_optimizer


class SmoothedCrossentropy(keras.losses.Loss):
    """Cross-entropy with smoothed labels, which are numbers. Keras's own takes vectors.

    Args:
        num_classes: C, the number of labels.
        label_smoothing: Label smoothing: the share of each label spread evenly over all labels.
    """

    def __init__(self, num_classes: int, label_smoothing: float) -> None:
        super().__init__(name="smoothed_crossentropy")
        self._num_classes, self._label_smoothing = num_classes, label_smoothing

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss of each image, [B], of labels [B] and probabilities [B, C]."""
        labels = keras.ops.cast(keras.ops.reshape(y_true, (-1,)), "int32")
        vectors = keras.ops.one_hot(labels, self._num_classes, dtype=y_pred.dtype)
        return keras.losses.categorical_crossentropy(
            vectors, y_pred, label_smoothing=self._label_smoothing
        )


class Parts(NamedTuple):
    """A model, and the part of it that is trained.

    Attributes:
        model: uint8 [B, height, width, 3] to probabilities [B, C]. It has the layers of the others.
        trained: The compiled model that is trained: the whole, or its head, which takes features.
        base: The model from images to features, where only the head is trained; else None.
        counts: Training images of each label, int64 [C], for their prior; None for no prior.
    """

    model: Any
    trained: Any
    base: Any | None = None
    counts: Counts | None = None


def make_parts(
    options: TrainingOptions,
    num_classes: int,
    num_steps: int,
    labels: Sequence[str] = (),
    counts: Counts | None = None,
) -> Parts:
    """Builds the model, and compiles the trained part of it.

    Args:
        options: The options of the training.
        num_classes: C, the number of labels.
        num_steps: Number of batches in an epoch.
        labels: The labels in the order of their numbers, where they are known.
        counts: Training images of each label, int64 [C], for their prior; None for no prior.

    Returns:
        The parts. The trained one has all variables that a checkpoint restores. Its loss takes
        labels int64 [B]; with mixup float32 [B, C].

    Raises:
        UsageError: The model cannot be built; mixup makes labels vectors, and the model was
            compiled for numbers; or it was compiled, and there is a prior, or the loss takes
            logits.
    """
    keras.utils.set_random_seed(options.seed)
    model = build_model(options.model, num_classes, options.image_size, options.weights, labels)
    if not options.is_frozen:
        parts = Parts(model, model)
        example: Any = np.zeros((1, *options.image_size, 3), np.uint8)
    else:
        parts = split_head(model)
        example = np.zeros((1, *parts.trained.input_shape[1:]))
    parts = parts._replace(trained=add_prior(parts.trained, counts), counts=counts)
    if not parts.trained.compiled:
        optimizer = make_optimizer(options, options.epochs * num_steps)
        _compile(parts.trained, options, num_classes, optimizer)
    elif any(getattr(e, "from_logits", False) for e in keras.tree.flatten(parts.trained.loss)):
        raise UsageError(
            f"The model {options.model} gives probabilities, but comes compiled with a loss that "
            "takes logits.",
            "Compile it with from_logits=False, or do not compile it.",
        )
    _build(parts.trained, example, options, num_classes)
    return parts


def split_head(model: Any) -> Parts:
    """Splits a model that ends in a dropout and a layer for the classes; they are its head."""
    *_, dropout, classes = model.layers
    # Before the head is made: a layer that is called twice has no single input.
    base = keras.Model(model.inputs, dropout.input, name="base")
    features = keras.Input(base.output_shape[1:], dtype="float32")
    head = keras.Model(features, classes(dropout(features)), name="head")
    return Parts(model, head, base)


def compile_model(parts: Parts, options: TrainingOptions, optimizer: Any) -> Any:
    """Compiles the whole model, of which the head is trained, with all variables of its training.

    Args:
        parts: The model, its head and its base.
        options: The options of the training.
        optimizer: Its optimizer.

    Returns:
        The model to train: uint8 [B, height, width, 3] to probabilities [B, C].
    """
    model, num_classes = add_prior(parts.model, parts.counts), int(parts.model.output_shape[-1])
    _compile(model, options, num_classes, optimizer)
    _build(model, np.zeros((1, *options.image_size, 3), np.uint8), options, num_classes)
    return model


def make_loss(num_classes: int, label_smoothing: float, *, has_vectors: bool) -> Any:
    """Returns the loss, for Keras's `compile`.

    Args:
        num_classes: C, the number of labels.
        label_smoothing: Label smoothing: the share of each label spread evenly over all labels.
        has_vectors: Labels are float32 [B, C], as mixup makes them; else int64 [B].
    """
    if not label_smoothing:
        return "categorical_crossentropy" if has_vectors else "sparse_categorical_crossentropy"
    if has_vectors:
        return keras.losses.CategoricalCrossentropy(label_smoothing=label_smoothing)
    return SmoothedCrossentropy(num_classes, label_smoothing)


def _compile(model: Any, options: TrainingOptions, num_classes: int, optimizer: Any) -> None:
    has_vectors = bool(options.input_options.augmentation.mixup)
    loss = make_loss(num_classes, options.label_smoothing, has_vectors=has_vectors)
    model.compile(
        optimizer=optimizer,
        loss=loss,
        # Keras chooses the accuracy for numbers or for vectors itself.
        metrics=["accuracy"],
        steps_per_execution=options.steps_per_execution,
    )


def _build(model: Any, example: Any, options: TrainingOptions, num_classes: int) -> None:
    """Makes all variables of a compiled model's training."""
    has_vectors = bool(options.input_options.augmentation.mixup)
    label = np.zeros(1, np.int64)
    if has_vectors:
        # A sparse metric would accept vectors silently.
        config = model.get_compile_config()
        used = [config.get(part) for part in ("loss", "metrics", "weighted_metrics")]
        if "sparse" in json.dumps(used, default=str).lower():
            raise UsageError(
                f"The model {options.model} comes compiled with a sparse loss or metric, but mixup "
                "makes labels vectors.",
                "Compile it with categorical_crossentropy and 'accuracy', or augment without "
                "mixup.",
            )
        label = np.eye(1, num_classes, dtype=np.float32)
    scores = model(example, training=False)
    model.optimizer.build(model.trainable_variables)
    model.compute_loss(x=example, y=label, y_pred=scores, training=False)
    model.compute_metrics(example, label, scores, sample_weight=None)


@contextmanager
def use_precision(precision: str) -> Iterator[None]:
    """Sets Keras's dtype policy for layers that are made in the block, a user's layers too."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
