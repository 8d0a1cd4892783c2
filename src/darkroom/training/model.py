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
from darkroom.targets.head import Head
from darkroom.training.models import build_model
from darkroom.training.recipe.balance import LabelCounts, add_prior
from darkroom.training.recipe.optimizer import make_optimizer


class Parts(NamedTuple):
    """A model, and the part of it that is trained.

    Attributes:
        model: uint8 [B, height, width, 3] to answers [B, C]. It has the layers of the others.
        trained: The compiled model that is trained: the whole, or its head, which takes features.
        head: What it learns, at its end.
        base: The model from images to features, where only the head is trained; else None.
        counts: Training images of each label, int64 [C], for their prior; None for no prior.
    """

    model: Any
    trained: Any
    head: Head
    base: Any | None = None
    counts: LabelCounts | None = None


def make_parts(
    options: TrainingOptions,
    head: Head,
    num_steps: int,
    labels: Sequence[str] = (),
    counts: LabelCounts | None = None,
) -> Parts:
    """Builds the model, and compiles the trained part of it.

    Args:
        options: The options of the training.
        head: The end of the model.
        num_steps: Number of batches in an epoch.
        labels: The labels, or the names of the numbers, where they are known.
        counts: Training images of each label, int64 [C], for their prior; None for no prior.

    Returns:
        The parts. The trained one has all variables that a checkpoint restores. Its loss takes
        the targets of the head.

    Raises:
        UsageError: The model cannot be built; mixup makes labels vectors, and the model was
            compiled for numbers; or it was compiled, and there is a prior, or the loss takes
            logits.
    """
    keras.utils.set_random_seed(options.seed)
    model = build_model(options.model, head, options.image_size, options.weights, labels)
    if not options.is_frozen:
        parts = Parts(model, model, head)
        example: Any = np.zeros((1, *options.image_size, 3), np.uint8)
    else:
        parts = split_head(model, head)
        example = np.zeros((1, *parts.trained.input_shape[1:]))
    if counts is not None:
        parts = parts._replace(trained=add_prior(parts.trained, counts), counts=counts)
    if not parts.trained.compiled:
        optimizer = make_optimizer(options, options.epochs * num_steps)
        _compile(parts.trained, options, head, optimizer)
    elif any(getattr(e, "from_logits", False) for e in keras.tree.flatten(parts.trained.loss)):
        raise UsageError(
            f"The model {options.model} ends in {head.activation}, but comes compiled with a loss "
            "that takes logits.",
            "Compile it with from_logits=False, or do not compile it.",
        )
    _build(parts.trained, example, options, head)
    return parts


def split_head(model: Any, head: Head) -> Parts:
    """Splits a model before its last dropout, with which its head begins."""
    is_dropout = [isinstance(layer, keras.layers.Dropout) for layer in model.layers]
    layers = model.layers[-1 - is_dropout[::-1].index(True) :]
    # Before the head is made: a layer that is called twice has no single input.
    base = keras.Model(model.inputs, layers[0].input, name="base")
    x = features = keras.Input(base.output_shape[1:], dtype="float32")
    for layer in layers:
        x = layer(x)
    return Parts(model, keras.Model(features, x, name="head"), head, base)


def compile_model(parts: Parts, options: TrainingOptions, optimizer: Any) -> Any:
    """Compiles the whole model, of which the head is trained, with all variables of its training.

    Args:
        parts: The model, its head and its base.
        options: The options of the training.
        optimizer: Its optimizer.

    Returns:
        The model to train: uint8 [B, height, width, 3] to answers [B, C].
    """
    model = parts.model if parts.counts is None else add_prior(parts.model, parts.counts)
    _compile(model, options, parts.head, optimizer)
    _build(model, np.zeros((1, *options.image_size, 3), np.uint8), options, parts.head)
    return model


def _compile(model: Any, options: TrainingOptions, head: Head, optimizer: Any) -> None:
    """Compiles a model for its head. Mixup makes the labels vectors, which need another loss."""
    has_vectors = bool(options.input_options.augmentation.mixup)
    loss = head.make_loss(options.label_smoothing, has_vectors=has_vectors)
    model.compile(
        optimizer=optimizer,
        loss=loss,
        metrics=head.list_metrics(),
        steps_per_execution=options.steps_per_execution,
    )


def _build(model: Any, example: Any, options: TrainingOptions, head: Head) -> None:
    """Makes all variables of a compiled model's training."""
    has_vectors = bool(options.input_options.augmentation.mixup)
    if has_vectors and head.counts_labels:
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
    label = head.make_example(has_vectors=has_vectors)
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
