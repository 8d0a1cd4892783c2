"""Evaluation of an exported model on records, as TFMA does it in the pipeline."""

from __future__ import annotations

from collections.abc import Sequence

import keras
import tensorflow as tf

from darkroom.dataset.example import LABEL_NUMBER
from darkroom.training.export import EXAMPLES_SIGNATURE, PROBABILITIES_KEY

_BATCH_SIZE = 256


def measure_accuracy(model_dir: str, files: Sequence[str]) -> float:
    """Returns the share of records of which the model finds the label.

    The records go through the model's own signature, so this measures what will be served.

    Args:
        model_dir: The folder of a SavedModel that `export_model` wrote.
        files: Local TFRecord files without compression.

    Returns:
        The accuracy, 0 to 1.
    """
    model = tf.saved_model.load(model_dir)
    predict = model.signatures[EXAMPLES_SIGNATURE]
    accuracy = keras.metrics.SparseCategoricalAccuracy()
    label = {LABEL_NUMBER: tf.io.FixedLenFeature([], tf.int64)}
    for records in tf.data.TFRecordDataset(list(files)).batch(_BATCH_SIZE):
        expected = tf.io.parse_example(records, label)[LABEL_NUMBER]
        accuracy.update_state(expected, predict(examples=records)[PROBABILITIES_KEY])
    return float(accuracy.result())
