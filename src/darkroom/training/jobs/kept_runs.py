"""The folders where trainings of TFX's Trainer are kept, so that a later one resumes.

TFX gives every execution a new folder. So checkpoints are in a folder that the pipeline names, in
a separate one for each training, and are copied when the training is done.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from darkroom import storage
from darkroom.evaluation.report.facts import FACTS_FILE
from darkroom.input.commits import Commits
from darkroom.options.training import CONFIG_KEY
from darkroom.runtime import progress
from darkroom.runtime.text import format_count
from darkroom.storage import copies
from darkroom.training.cluster import read_cluster
from darkroom.training.folder import CHECKPOINTS_FOLDER, TRAINING_NAMES
from darkroom.training.history import BEST_FOLDER, read_history

# Written last: the training was done, and its files are copied.
DONE_FILE = "done.json"
_EPOCHS = "epochs"
# Options that only say when a training ends.
_ENDS = (_EPOCHS, "fit_minutes")


def choose_folder(checkpoint_dir: str, config: Mapping[str, Any], commits: Commits) -> str:
    """Returns the folder of a training, with the checkpoint to resume from, if any.

    A training that was stopped resumes. One that was done resumes when all is the same but more
    epochs are asked for. One that is asked for again, as it was, is done again.

    Args:
        checkpoint_dir: The folder of all trainings.
        config: The Trainer's `custom_config`.
        commits: The commits of the data by its root.
    """
    name, epochs = _identify_training(config, commits), int(config[CONFIG_KEY][_EPOCHS])
    folder = storage.join(checkpoint_dir, f"{name}-{epochs}")
    if not read_cluster().is_chief:
        return folder
    if storage.exists(storage.join(folder, DONE_FILE)):
        _clear_folder(folder)
    if not storage.has_files(folder) and (done := _find_earlier(checkpoint_dir, name, epochs)):
        earlier = storage.join(checkpoint_dir, f"{name}-{done}")
        # It may have ended before the last epoch that it was to do.
        if trained := len(read_history(earlier)):
            several = format_count(trained, "epoch")
            progress.note(f"Resumes from {several}, which an earlier run trained.")
        storage.delete_file(storage.join(earlier, DONE_FILE))
        _move_folder(earlier, folder)
    return folder


def finish_folder(folder: str, destination: str) -> None:
    """Copies the results of a training, and marks it as done.

    Its checkpoints stay in `folder` alone: they are twice as large as the model.
    """
    copies.copy_folder(folder, destination, leave_out=_is_kept)
    storage.write_bytes(storage.join(folder, DONE_FILE), b"{}\n")


def _identify_training(config: Mapping[str, Any], commits: Commits) -> str:
    """Returns a name that trainings share if they do the same on the same data, epoch by epoch."""
    data = [dataset.fingerprint for _, dataset in sorted(commits.items()) if dataset]
    options = {name: each for name, each in config[CONFIG_KEY].items() if name not in _ENDS}
    text = json.dumps([{**config, CONFIG_KEY: options}, data], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _find_earlier(checkpoint_dir: str, name: str, epochs: int) -> int:
    """Returns the most epochs below a number of those that trainings of a name were to do; or 0."""
    found = re.compile(rf"{name}-(\d+)")
    numbers = [
        int(match[1])
        for each in storage.list_folder(checkpoint_dir)
        if (match := found.fullmatch(each))
    ]
    return max((each for each in numbers if each < epochs), default=0)


def _is_kept(name: str) -> bool:
    """Tells whether a file belongs to a checkpoint, or to the weights of the best epoch."""
    folder, _, file = name.partition("/")
    return folder == CHECKPOINTS_FOLDER or (folder == BEST_FOLDER and not file.endswith(".json"))


def _clear_folder(folder: str) -> None:
    own = {DONE_FILE, FACTS_FILE, *(each.rstrip("/") for each in TRAINING_NAMES)}
    names = [each for each in storage.list_everything(folder) if each.partition("/")[0] in own]
    storage.delete_files(storage.join(folder, each) for each in names)
    storage.remove_empty_folders(folder)


def _move_folder(source: str, destination: str) -> None:
    if storage.is_remote(source):
        # The list of checkpoints leads nowhere until all files of the newest exist.
        copies.move_folder(source, destination)
    else:
        storage.rename(source, destination)
