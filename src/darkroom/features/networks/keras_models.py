"""Models of Keras and SavedModels as networks, and EfficientNet-Lite0 of the extra `pretrained`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from darkroom.errors import UsageError
from darkroom.features.networks import efficientnet_lite
from darkroom.features.networks.keras_files import load_keras_model
from darkroom.features.networks.network import (
    DEFAULT_SIZE,
    Input,
    Network,
    identify_network,
    name_base,
    shorten,
    wrap_model,
)
from darkroom.options.training import EFFICIENTNET_LITE

_SIGNATURE = "serving_default"


def build_pretrained() -> Network:
    """Returns EfficientNet-Lite0, with the features of a training whose base is frozen.

    Raises:
        MissingExtraError: Its weights are not installed.
        StorageError: They are not those that darkroom knows.
    """
    path = efficientnet_lite.find_weights()
    network = efficientnet_lite.build_network(DEFAULT_SIZE)
    efficientnet_lite.load_weights(network, path)
    images = keras.Input((*DEFAULT_SIZE, 3), dtype="uint8")
    pixels = keras.layers.Rescaling(1.0)(images)
    base = keras.Model(images, keras.layers.GlobalAveragePooling2D()(network(pixels)))
    name = name_base(EFFICIENTNET_LITE, "float32", scaled=True)
    identity = identify_network(name, DEFAULT_SIZE, base.get_weights())
    return _wrap(EFFICIENTNET_LITE, identity, base.inputs, partial(base, training=False))


def open_keras(path: str, name: str, identity: str) -> Network:
    """Opens a file of Keras, or the folder of a SavedModel; see `wrap_model`.

    Raises:
        UsageError: It is damaged, or not a model of images.
    """
    try:
        if os.path.isdir(path):
            model = tf.saved_model.load(path)
            specs = model.signatures[_SIGNATURE].structured_input_signature[1]
            # It has its variables only as long as the model is there.
            return _wrap(
                name,
                identity,
                list(specs.values()),
                lambda images: model.signatures[_SIGNATURE](**dict.fromkeys(specs, images)),
            )
        model = load_keras_model(path)
        return _wrap(name, identity, model.inputs, partial(model, training=False))
    except UsageError:
        raise
    except Exception as error:  # what Keras and TensorFlow raise has no common base
        raise UsageError(
            f"{path} is not a model that Keras {keras.__version__} reads: {shorten(error)}.",
            "Give a file as model.save('NAME.keras') writes it, without compression, or the folder "
            "of a SavedModel.",
        ) from error


def _wrap(name: str, identity: str, inputs: Sequence[Any], call: Callable[[Any], Any]) -> Network:
    """Returns a network that calls a graph which is built once."""
    specs = [tf.TensorSpec(each.shape, each.dtype) for each in inputs]
    graph = tf.function(call, input_signature=specs[:1], autograph=False)
    return wrap_model(
        name,
        identity,
        [Input(each.shape, each.dtype.name) for each in specs],
        lambda images: [np.asarray(each) for each in keras.tree.flatten(graph(images))],
    )
