"""The folder of a training: which files are darkroom's, and which may be replaced."""

from __future__ import annotations

import re

from darkroom import storage
from darkroom.errors import OutputError, UsageError
from darkroom.evaluation.report.write import EVALUATION_FILES
from darkroom.evaluation.scores.serving import MODEL_FOLDER
from darkroom.profiling.verdict import VERDICT_JSON, VERDICT_MARKDOWN
from darkroom.runtime import streams
from darkroom.storage import ledger
from darkroom.training.state.history import BEST_FOLDER, HISTORY_FILE, TENSORBOARD_FOLDER

CHECKPOINTS_FOLDER = "checkpoints"
# The same model as in the SavedModel, for `keras.models.load_model`.
KERAS_FILE = "model.keras"
# The commit of a training. It is written last, after the model.
RESULT_FILE = "training.json"

_FILES = (
    RESULT_FILE,
    KERAS_FILE,
    HISTORY_FILE,
    VERDICT_JSON,
    VERDICT_MARKDOWN,
    *EVALUATION_FILES,
)
_FOLDERS = (CHECKPOINTS_FOLDER, BEST_FOLDER, TENSORBOARD_FOLDER, MODEL_FOLDER)
# Folders end with a slash.
TRAINING_NAMES = dict.fromkeys((*_FILES, *(f"{folder}/" for folder in _FOLDERS)), ledger.ANY)
# The files of a SavedModel with a label map.
_MODEL_FILE = re.compile(
    r"saved_model\.pb|fingerprint\.pb|assets/labels\.txt|"
    r"variables/variables\.(index|data-\d{5}-of-\d{5})"
)
_HINT = "Choose another --checkpoint-dir, which may be new."


def check_checkpoint_place(folder: str) -> None:
    """Checks that TensorFlow can write a training's checkpoints to a place.

    Raises:
        UsageError: They would be in a store that it cannot write to, or it would take the folder
            for a pattern.
    """
    if storage.has_wildcard(folder):
        raise UsageError(
            f"checkpoint_dir is {folder!r}, expected a name without *, ? and [.",
            "TensorFlow takes these for a pattern when it deletes an old checkpoint, and would "
            "delete that of another training. Choose another folder.",
        )
    if not storage.is_remote(folder):
        return
    with streams.quiet_tensorflow():
        import tensorflow as tf

    scheme = folder.partition("://")[0]
    if scheme not in tf.io.gfile.get_registered_schemes():
        raise UsageError(
            f"checkpoint_dir is {folder!r}, but this TensorFlow cannot write to {scheme}://.",
            "Train in a local folder, and copy it when the training is done.",
        )


def claim_folder(folder: str) -> None:
    """Checks that a training may write into a folder, and makes the folder darkroom's.

    It may when the folder is new, empty, or has an earlier training.

    Raises:
        OutputError: It has other files. Nothing was changed.
    """
    if not ledger.is_listed(folder, RESULT_FILE):
        ledger.check_alone(folder, TRAINING_NAMES, _HINT)
    ledger.claim(folder, TRAINING_NAMES, _HINT)


def delete_model(folder: str) -> None:
    """Deletes the files of the SavedModel in the folder of a training, and no other.

    Raises:
        OutputError: There is a link, through which the next model would be written elsewhere.
    """
    model = storage.join(folder, MODEL_FOLDER)
    there = storage.list_everything(model)
    links = [name for name, size in there.items() if size == storage.NOT_REGULAR]
    if links:
        raise OutputError(f"{model} has a link that darkroom did not write: {links[0]}.", _HINT)
    names = filter(_MODEL_FILE.fullmatch, there)
    storage.delete_files(storage.join(model, name) for name in names)
