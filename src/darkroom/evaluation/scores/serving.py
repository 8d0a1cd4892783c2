"""An exported model as a server has it: its signatures, its label map, and its answers."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from darkroom import storage
from darkroom.dataset.labels import parse_labels
from darkroom.dataset.layout import LABELS_FILE
from darkroom.errors import DataError, UsageError, is_environment
from darkroom.evaluation.scores.metrics import Floats
from darkroom.evaluation.scores.probabilities import make_probabilities
from darkroom.runtime.text import format_count
from darkroom.storage import copies

if TYPE_CHECKING:
    import tensorflow as tf

# In the folder of a training.
MODEL_FOLDER = "model"

IMAGES_SIGNATURE = "serving_default"
LABEL_KEY, SCORE_KEY, SCORES_KEY = "label", "score", "scores"
EXAMPLES_SIGNATURE, PROBABILITIES_KEY = "serving_examples", "probabilities"

_TENSORFLOW = "tensorflow"
_GRAPH_FILE = "saved_model.pb"
_LABELS = f"assets/{LABELS_FILE}"
# Whatever else is in the folder is the user's.
_PARTS = (_GRAPH_FILE, "assets/", "variables/")
_MAX_LABEL_BYTES = 1 << 28
_HINT = "Name the folder of a training, or an exported SavedModel."
_DAMAGE_HINT = (
    "In the folder of a training: delete the folder model in it, and run the same darkroom train "
    "again, which then only exports the model. Of a copy: copy the model again."
)


@dataclass(frozen=True)
class ServedModel:
    """A SavedModel that darkroom exported.

    Attributes:
        folder: Its folder.
        labels: Its label map.
        signatures: Its signatures by name.
        from_logits: Whether it gives logits, of which probabilities are made here.
    """

    folder: str
    labels: tuple[str, ...]
    signatures: Any
    from_logits: bool = False

    def score_images(self, images: tf.Tensor | Sequence[bytes]) -> Floats:
        """Returns the probabilities that a server answers for image files, [N, C].

        Raises:
            DataError: The model gives something else.
        """
        return self._take(self._ask(images)[SCORES_KEY])

    def answer_images(self, images: Sequence[bytes]) -> list[tuple[str, float]]:
        """Returns the label and its probability that a server answers for each image file.

        Raises:
            DataError: The model gives no probabilities.
        """
        answer = self._ask(images)
        labels = [each.decode() for each in answer[LABEL_KEY].numpy().tolist()]
        scores = self._take(answer[SCORES_KEY]).max(axis=1)
        return list(zip(labels, scores.tolist(), strict=True))

    def score_examples(self, examples: tf.Tensor) -> Floats:
        """Returns the same for records, serialised tf.train.Example."""
        answer = self.signatures[EXAMPLES_SIGNATURE](examples=examples)
        return self._take(answer[PROBABILITIES_KEY])

    def _ask(self, images: tf.Tensor | Sequence[bytes]) -> Any:
        import tensorflow as tf

        return self.signatures[IMAGES_SIGNATURE](image_bytes=tf.convert_to_tensor(images))

    def _take(self, scores: Any) -> Floats:
        return make_probabilities(np.asarray(scores), self.folder, from_logits=self.from_logits)


def check_backend() -> None:
    """Checks that Keras uses TensorFlow. It is not imported for that.

    Raises:
        UsageError: It uses another backend.
    """
    keras = sys.modules.get("keras")
    backend = keras.config.backend() if keras else _find_backend()
    if backend != _TENSORFLOW:
        raise UsageError(
            f"Keras has the backend {backend}, and darkroom trains and exports with TensorFlow.",
            "Unset KERAS_BACKEND, or set it to tensorflow, before Keras is imported. Without it, "
            "the backend is that of ~/.keras/keras.json.",
        )


def _find_backend() -> str:
    """Returns the backend that Keras would choose."""
    if chosen := os.environ.get("KERAS_BACKEND"):
        return chosen
    folder = os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras")
    try:
        with open(os.path.join(folder, "keras.json"), encoding="utf-8") as file:
            return str(json.load(file).get("backend", _TENSORFLOW))
    except (OSError, ValueError, AttributeError):
        return _TENSORFLOW


def find_model(path: str) -> str:
    """Returns the folder of the SavedModel that a path names.

    Args:
        path: The folder itself, or that of a training.

    Raises:
        DataError: There is no SavedModel.
        MissingPathError: There is nothing at the path.
    """
    place = storage.absolute(path)
    for folder in (place, storage.join(place, MODEL_FOLDER)):
        if storage.exists(storage.join(folder, _GRAPH_FILE)):
            return folder
    if not storage.exists(place) and not storage.is_folder(place):
        raise storage.build_missing_error(place, "The model")
    raise DataError(f"There is no {_GRAPH_FILE} in {place}.", _HINT)


def load_model(folder: str, *, from_logits: bool = False) -> ServedModel:
    """Loads a SavedModel.

    Args:
        folder: Its folder.
        from_logits: Whether it gives logits.

    Raises:
        DataError: It is damaged, or darkroom did not export it.
    """
    import tensorflow as tf

    labels_path = storage.join(folder, _LABELS)
    if not storage.exists(labels_path):
        raise DataError(f"The model in {folder} has no label map, {_LABELS}.", _HINT)
    try:
        labels = parse_labels(storage.read_bytes(labels_path, _MAX_LABEL_BYTES).decode())
        with copies.use_local_copy(folder) as local:
            signatures = tf.saved_model.load(local).signatures
    # TensorFlow raises an IndexError for a file of variables that is too short.
    except (tf.errors.OpError, ValueError, OSError, IndexError) as error:
        if is_environment(error):
            raise
        raise DataError(
            f"The model in {folder} is damaged ({type(error).__name__}).", _DAMAGE_HINT
        ) from error
    try:
        known = {name: signatures[name].structured_outputs for name in signatures}
        widths = {
            known[IMAGES_SIGNATURE][SCORES_KEY].shape[1],
            known[EXAMPLES_SIGNATURE][PROBABILITIES_KEY].shape[1],
        }
    except (KeyError, IndexError) as error:
        raise DataError(f"The signatures of the model in {folder} lack {error}.", _HINT) from error
    if widths != {len(labels)}:
        raise DataError(
            f"The model in {folder} has {format_count(len(labels), 'label')}, and scores for "
            f"{max(widths)}.",
            _HINT,
        )
    return ServedModel(folder, tuple(labels), signatures, from_logits)


def identify_model(folder: str) -> str:
    """Returns a hash of the files of a SavedModel, 64 hexadecimal digits."""
    sums = {
        name: storage.hash_file(storage.join(folder, name))
        for name, size in storage.list_everything(folder).items()
        if size != storage.NOT_REGULAR and name.startswith(_PARTS)
    }
    return hashlib.sha256(json.dumps(sorted(sums.items())).encode()).hexdigest()
