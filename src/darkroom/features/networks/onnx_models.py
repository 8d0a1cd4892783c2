"""Models of ONNX as networks, without TensorFlow."""

from __future__ import annotations

from darkroom.errors import UsageError, build_missing_extra_error
from darkroom.features.networks.network import Input, Network, shorten, wrap_model

_PROVIDERS = ("CUDAExecutionProvider", "CPUExecutionProvider")
_TYPES = {"tensor(uint8)": "uint8", "tensor(float)": "float32", "tensor(float16)": "float16"}


def open_onnx(path: str, name: str, identity: str) -> Network:
    """Opens a file of ONNX.

    Args:
        path: The file, local.
        name: What people call it.
        identity: A hash of its contents.

    Returns:
        The network. The model gets pixels from 0 to 255, and scales them itself; see `wrap_model`.

    Raises:
        MissingExtraError: ONNX Runtime is not installed.
        UsageError: It is damaged, or not a model of images.
    """
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise build_missing_extra_error(f"The model {name}", "onnx") from error
    available = onnxruntime.get_available_providers()
    providers = [each for each in _PROVIDERS if each in available]
    try:
        session = onnxruntime.InferenceSession(path, providers=providers)
    except Exception as error:  # its classes have no common base
        raise UsageError(
            f"{path} is not a model that ONNX Runtime reads: {shorten(error)}.",
            "Export it again.",
        ) from error
    inputs = session.get_inputs()
    return wrap_model(
        name,
        identity,
        [Input(each.shape, _TYPES.get(each.type, each.type)) for each in inputs],
        lambda images: session.run(None, {inputs[0].name: images}),
    )
