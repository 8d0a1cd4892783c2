"""An exported model as a server has it: its signatures, what it has learned, and its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from darkroom import storage
from darkroom.dataset.labels import parse_labels
from darkroom.dataset.layout import LABELS_FILE
from darkroom.errors import DataError, is_environment
from darkroom.runtime import streams
from darkroom.storage import copies
from darkroom.targets.kind import check_learned, find_kind
from darkroom.targets.learned import LEARNED_FILE, Learned, decode_learned
from darkroom.targets.scoring import Floats, Scoring, find_scoring

if TYPE_CHECKING:
    import tensorflow as tf

# In the folder of a training.
MODEL_FOLDER = "model"

IMAGES_SIGNATURE = "serving_default"
EXAMPLES_SIGNATURE = "serving_examples"
# The output of the first one that says why an image is refused.
ERROR_KEY = "error"

GRAPH_FILE = "saved_model.pb"
_LABELS, _LEARNED = f"assets/{LABELS_FILE}", f"assets/{LEARNED_FILE}"
# Whatever else is in the folder is the user's.
_PARTS = (GRAPH_FILE, "assets/", "variables/")
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
        learned: What it answers.
        signatures: Its signatures by name.
        from_logits: Whether it gives logits, of which probabilities are made here.
    """

    folder: str
    learned: Learned
    signatures: Any
    from_logits: bool = False

    @property
    def scoring(self) -> Scoring:
        """What its kind of target says about its answers."""
        return find_scoring(self.learned.kind)

    def answer_images(self, images: tf.Tensor) -> Floats:
        """Returns what a server answers for image files, [N, C].

        Raises:
            DataError: The model gives something else than its kind of target does.
        """
        answer = self.signatures[IMAGES_SIGNATURE](image_bytes=images)
        return self._take(answer[self.scoring.outputs[-1]])

    def answer_examples(self, examples: tf.Tensor | Sequence[bytes]) -> Floats:
        """Returns the same for records, serialised tf.train.Example."""
        import tensorflow as tf

        answer = self.signatures[EXAMPLES_SIGNATURE](examples=tf.convert_to_tensor(examples))
        return self._take(answer[self.scoring.records_key])

    def _take(self, answers: Any) -> Floats:
        return self.scoring.check(np.asarray(answers), self.folder, from_logits=self.from_logits)


def find_model(path: str, hint: str = _HINT) -> str:
    """Returns the folder of the SavedModel that a path names.

    Args:
        path: The folder itself, or that of a training.
        hint: What to name instead of a path without one.

    Raises:
        DataError: There is no SavedModel.
        MissingPathError: There is nothing at the path.
    """
    place = storage.absolute(path)
    for folder in (place, storage.join(place, MODEL_FOLDER)):
        if storage.exists(storage.join(folder, GRAPH_FILE)):
            return folder
    if not storage.exists(place) and not storage.is_folder(place):
        raise storage.build_missing_error(place, "The model")
    raise DataError(f"There is no {GRAPH_FILE} in {place}.", hint)


def read_learned(folder: str) -> Learned:
    """Reads what a SavedModel answers. One that does not say its kind has a label map.

    Raises:
        DataError: It is damaged, or darkroom did not export it.
    """
    known, labels = storage.join(folder, _LEARNED), storage.join(folder, _LABELS)
    try:
        if storage.exists(known):
            return decode_learned(storage.read_bytes(known, _MAX_LABEL_BYTES))
        if storage.exists(labels):
            text = storage.read_bytes(labels, _MAX_LABEL_BYTES).decode()
            return Learned("label", tuple(parse_labels(text)))
    except ValueError as error:
        raise DataError(
            f"The model in {folder} is damaged ({type(error).__name__}).", _DAMAGE_HINT
        ) from error
    raise DataError(f"The model in {folder} has no label map, {_LABELS}.", _HINT)


def check_model_kind(folder: str, learned: Learned, kind: str) -> None:
    """Checks that a model answers with what images are labelled with.

    Raises:
        DataError: It does not, or none of darkroom does.
    """
    check_learned(kind)
    if learned.kind != kind:
        raise DataError(
            f"The model in {folder} answers with {learned.kind}, and the images are labelled with "
            f"{kind}.",
            "Give images that are labelled as those that it was trained on.",
        )


def load_model(folder: str, *, from_logits: bool = False) -> ServedModel:
    """Loads a SavedModel.

    Args:
        folder: Its folder.
        from_logits: Whether it gives logits.

    Raises:
        DataError: It is damaged, or darkroom did not export it.
    """
    with streams.quiet_tensorflow():
        import tensorflow as tf

    learned = read_learned(folder)
    find_kind(learned.kind)
    try:
        with copies.use_local_copy(folder) as local:
            signatures = tf.saved_model.load(local).signatures
    # TensorFlow raises an IndexError for a file of variables that is too short.
    except (tf.errors.OpError, ValueError, OSError, IndexError) as error:
        if is_environment(error):
            raise
        raise DataError(
            f"The model in {folder} is damaged ({type(error).__name__}).", _DAMAGE_HINT
        ) from error
    model = ServedModel(folder, learned, signatures, from_logits)
    try:
        known = {name: signatures[name].structured_outputs for name in signatures}
        widths = {
            known[IMAGES_SIGNATURE][model.scoring.outputs[-1]].shape[1],
            known[EXAMPLES_SIGNATURE][model.scoring.records_key].shape[1],
        }
    except (KeyError, IndexError) as error:
        raise DataError(f"The signatures of the model in {folder} lack {error}.", _HINT) from error
    if widths != {len(learned.names)}:
        raise DataError(
            f"The model in {folder} has {len(learned.names)} {model.scoring.names_are}, and "
            f"answers for {max(widths)}.",
            _HINT,
        )
    return model


def identify_model(folder: str) -> str:
    """Returns a hash of the files of a SavedModel, 64 hexadecimal digits."""
    return storage.hash_folder(folder, _PARTS)
