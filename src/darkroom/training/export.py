"""Export of a trained model as a SavedModel that takes encoded images."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from darkroom import storage
from darkroom.dataset.example import (
    IMAGE_CHANNELS,
    IMAGE_ENCODED,
    IMAGE_FORMAT,
    IMAGE_HEIGHT,
    IMAGE_WIDTH,
)
from darkroom.dataset.labels import format_labels
from darkroom.dataset.layout import LABELS_FILE
from darkroom.errors import STORAGE_HINT, StorageError
from darkroom.evaluation.scores.serving import (
    ERROR_KEY,
    EXAMPLES_SIGNATURE,
    IMAGES_SIGNATURE,
)
from darkroom.images.pixels import RAW
from darkroom.input.graph.decode import decode_file, make_decoder
from darkroom.options.input import STRETCH
from darkroom.options.source import ONE_LABEL
from darkroom.targets.head import make_head
from darkroom.targets.learned import LEARNED_FILE, Learned
from darkroom.targets.scoring import find_scoring
from darkroom.training.devices.environment import check_backend
from darkroom.training.networks.answers import check_answers

__all__ = ["export_model"]

PIXELS_KEY = "pixels"

# Records of other tools may have nothing but the image.
_FEATURES = {
    IMAGE_ENCODED: tf.io.FixedLenFeature([], tf.string),
    IMAGE_FORMAT: tf.io.FixedLenFeature([], tf.string, default_value=""),
    IMAGE_HEIGHT: tf.io.FixedLenFeature([], tf.int64, default_value=0),
    IMAGE_WIDTH: tf.io.FixedLenFeature([], tf.int64, default_value=0),
    IMAGE_CHANNELS: tf.io.FixedLenFeature([], tf.int64, default_value=0),
}


def export_model(
    model: Any,
    labels: Sequence[str] | Learned,
    image_size: tuple[int, int],
    directory: str,
    *,
    resize: str = STRETCH,
    from_logits: bool = False,
) -> None:
    """Writes a SavedModel with two signatures. Both decode images as evaluation does.

    `serving_default` takes `image_bytes`, string [N]: encoded images. It returns `label`, string
    [N]: the most likely label; `score`, float32 [N]: its probability; `scores`, float32 [N, C]: all
    probabilities, in the order of the label map, which is the asset `labels.txt`. With several
    labels an image it returns `scores`, and `labels`, string [N, C]: each label that reaches its
    threshold, else empty text. With numbers it returns `values`, float32 [N, K]. `error`, string
    [N], says why an image is refused, because its pixels would not be those of training; else it is
    empty text. The answers for such an image are empty text and 0; numbers are NaN.
    `serving_examples`, for TFMA, takes `examples`, string [N]: serialised tf.train.Example. It
    returns `probabilities`, float32 [N, C], or `values`.

    The result of `tf.saved_model.load` has two functions besides: `classify` takes pixels, uint8
    [N, height, width, 3], to the same numbers; `describe_resize` returns how images become that
    size. Other formats are made of them. The asset `target.json` says what the model has learned.

    Args:
        model: A Keras model, uint8 [N, height, width, 3] to probabilities [N, C], or to
            logits; or to numbers [N, K].
        labels: The C labels in the order of their numbers; or what else the model has learned.
        image_size: (height, width) in pixels.
        directory: Where the SavedModel is written.
        resize: How images become `image_size`, as in the `InputOptions` of evaluation.
        from_logits: The model gives logits: a softmax, or a sigmoid, is exported with it.

    Raises:
        StorageError: The folder cannot be written.
        UsageError: The model gives something else, or Keras has another backend.
    """
    check_backend()
    learned = labels if isinstance(labels, Learned) else Learned(ONE_LABEL, tuple(labels))
    head, records_key = make_head(learned), find_scoring(learned.kind).records_key
    more = ", or pass from_logits=True"
    check_answers(model, "The model", image_size, head, from_logits=from_logits, more=more)
    module = tf.Module()
    # Only the variables: with the Keras model, its optimizer and its layers would be saved, too.
    module.model_variables = [variable.value for variable in model.variables]
    pixels = tf.TensorSpec([None, *image_size, 3], tf.uint8, name=PIXELS_KEY)

    @tf.function(input_signature=[pixels], autograph=False)
    def classify(pixels: tf.Tensor) -> tf.Tensor:
        return head.serve(model(pixels, training=False), from_logits=from_logits)

    module.classify = classify
    module.describe_resize = tf.function(lambda: tf.constant(resize), input_signature=[])

    view = tf.TensorSpec((*image_size, 3), tf.uint8)

    def decode_all(decode: Any, images: Any, signature: Any) -> Any:
        # Always on the CPU, so that the pixels are the same as in the input pipeline.
        with tf.device("/CPU:0"):
            return tf.map_fn(
                lambda image: decode(image, image_size, resize),
                images,
                fn_output_signature=signature,
            )

    def serve_images(image_bytes: tf.Tensor) -> dict[str, tf.Tensor]:
        # Refused images are zeros here, so that the others of a request get their answers.
        signature = view, tf.TensorSpec((), tf.string)
        views, forms = decode_all(decode_file, image_bytes, signature)
        is_taken = tf.equal(forms, "")
        answers = tf.where(is_taken[:, tf.newaxis], classify(views), head.refusal)
        named = head.name_answers(answers, learned)
        kept = {name: _hide_text(each, is_taken) for name, each in named.items()}
        reasons = tf.strings.join(("The image is ", forms, ", which this model does not read."))
        return {**kept, ERROR_KEY: tf.where(is_taken, "", reasons)}

    def serve_examples(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        parsed = tf.io.parse_example(examples, _FEATURES)
        return {records_key: classify(decode_all(_decode_features, parsed, view))}

    with tempfile.TemporaryDirectory() as folder:
        module.assets = _make_assets(learned, folder)
        signatures = {
            IMAGES_SIGNATURE: _make_signature(serve_images, "image_bytes"),
            EXAMPLES_SIGNATURE: _make_signature(serve_examples, "examples"),
        }
        _save(module, directory, signatures)


def _save(module: tf.Module, directory: str, signatures: Mapping[str, Any]) -> None:
    """Writes a SavedModel, and names it where TensorFlow's error does not."""
    try:
        tf.saved_model.save(module, directory, signatures=signatures)
    except tf.errors.OpError as error:
        if str(error):
            raise
        # On a full disk, TensorFlow names neither the problem nor the place.
        message = f"The model cannot be written to {directory}: {type(error).__name__}."
        raise StorageError(message, STORAGE_HINT) from error


def _hide_text(answers: tf.Tensor, is_taken: tf.Tensor) -> tf.Tensor:
    """Returns empty text for images that are not taken; numbers stay."""
    if answers.dtype != tf.string:
        return answers
    column = tf.reshape(is_taken, (-1, *[1] * (answers.shape.rank - 1)))
    return tf.where(column, answers, "")


def _decode_features(
    features: dict[str, tf.Tensor], image_size: tuple[int, int], resize: str
) -> tf.Tensor:
    """Returns the image of a record, which may store raw pixels."""
    encoded = features[IMAGE_ENCODED]
    shape = tf.cast(tf.stack((features[IMAGE_HEIGHT], features[IMAGE_WIDTH])), tf.int32)
    channels = features[IMAGE_CHANNELS]
    decode = make_decoder(image_size, resize, None, scaled=True, resized=True)
    return tf.cond(
        tf.equal(features[IMAGE_FORMAT], RAW),
        lambda: decode(encoded, None, shape, channels)[0],
        lambda: decode(encoded, None, None, None)[0],
    )


def _make_signature(function: Any, name: str) -> Any:
    spec = tf.TensorSpec([None], tf.string, name=name)
    return tf.function(function, input_signature=[spec], autograph=False)


def _make_assets(learned: Learned, folder: str) -> list[tf.saved_model.Asset]:
    """Returns the files that become assets of a SavedModel, after writing them to a folder."""
    # Servers of classifiers read the names of their outputs in the second one.
    contents = {LEARNED_FILE: learned.encode(), LABELS_FILE: format_labels(learned.names).encode()}
    paths = {os.path.join(folder, name): data for name, data in contents.items()}
    for path, data in paths.items():
        storage.write_bytes(path, data)
    return [tf.saved_model.Asset(path) for path in paths]
