"""A separate process that makes one format of a model, opens it, and answers with it.

TensorFlow's converter ends its process when it meets a part that it cannot convert, and says a lot
meanwhile.

    python -m darkroom.training.formats.converter MODEL FORMAT FILE FOLDER

`FOLDER` has `sample.npy`, pixels that quantization takes its ranges from, and `pixels.npy`, those
to answer for; it gets `answers.npy`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

TFLITE, FLOAT16, ONNX = "tflite", "tflite-float16", "onnx"
DYNAMIC, INT8 = "tflite-dynamic", "tflite-int8"
SAMPLE_FILE, PIXELS_FILE, ANSWERS_FILE = "sample.npy", "pixels.npy", "answers.npy"

_OPSET = 17
_BATCH = 16


def main(arguments: list[str]) -> None:
    """Converts; see the top of the file."""
    import tensorflow as tf

    model_dir, kind, path, folder = arguments
    model = tf.saved_model.load(model_dir)
    if kind == ONNX:
        convert_onnx(model, path)
        answer = make_onnx_function(path)
    else:
        sample = np.load(os.path.join(folder, SAMPLE_FILE))
        with open(path, "wb") as file:
            file.write(convert_tflite(model, kind, sample))
        answer = open_tflite(path)
    pixels = np.load(os.path.join(folder, PIXELS_FILE), mmap_mode="r")
    starts = range(0, len(pixels), _BATCH)
    answers = [answer(np.asarray(pixels[start : start + _BATCH])) for start in starts]
    np.save(os.path.join(folder, ANSWERS_FILE), np.concatenate(answers))


def convert_tflite(model: Any, kind: str, sample: npt.NDArray[Any]) -> bytes:
    """Returns a model for TFLite, from uint8 [N, height, width, 3] to float32 [N, C].

    Args:
        model: The result of `tf.saved_model.load` for a model that `export_model` wrote.
        kind: `TFLITE`; `FLOAT16`, with weights of half the size; `DYNAMIC`, with weights of 8
            bits; `INT8`, which also computes with 8 bits where TFLite has operations for that.
        sample: Pixels uint8 [M, height, width, 3], for the ranges of `INT8`.
    """
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as folder:
        # Not from the function itself: that fails for batch normalisation of Keras 3.
        tf.saved_model.save(model, folder, signatures=model.classify)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        if kind != TFLITE:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if kind == FLOAT16:
            converter.target_spec.supported_types = [tf.float16]
        if kind == INT8:
            operations = tf.lite.OpsSet
            converter.target_spec.supported_ops = [
                operations.TFLITE_BUILTINS_INT8,
                operations.TFLITE_BUILTINS,
            ]
            converter.representative_dataset = lambda: ([image] for image in sample[:, None])
        return bytes(converter.convert())


def open_tflite(path: str) -> Callable[[npt.NDArray[Any]], npt.NDArray[Any]]:
    """Returns the function of a TFLite model: uint8 [N, height, width, 3] to [N, C]."""
    import tensorflow as tf

    interpreter = tf.lite.Interpreter(model_path=path)
    [given], [found] = interpreter.get_input_details(), interpreter.get_output_details()

    def answer(pixels: npt.NDArray[Any]) -> npt.NDArray[Any]:
        interpreter.resize_tensor_input(given["index"], pixels.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(given["index"], pixels)
        interpreter.invoke()
        return np.array(interpreter.get_tensor(found["index"]))

    return answer


def convert_onnx(model: Any, path: str) -> None:
    """Writes a model of ONNX, from uint8 [N, height, width, 3] to float32 [N, C]."""
    import tensorflow as tf
    import tf2onnx

    [spec] = model.classify.input_signature
    function = tf.function(model.classify, input_signature=[spec])
    tf2onnx.convert.from_function(function, input_signature=[spec], opset=_OPSET, output_path=path)


def make_onnx_function(path: str) -> Callable[[npt.NDArray[Any]], npt.NDArray[Any]]:
    """Returns the function of an ONNX model: uint8 [N, height, width, 3] to [N, C]."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    [given] = session.get_inputs()
    return lambda pixels: np.asarray(session.run(None, {given.name: pixels})[0])


if __name__ == "__main__":
    main(sys.argv[1:])
