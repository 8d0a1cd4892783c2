"""`run_fn`, the entry point of TFX's Trainer, and the folders where its trainings are kept.

TFX gives every execution a new folder. So checkpoints are in a folder that the pipeline names, in
a separate one for each training, and are copied when the training is done.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from darkroom import storage
from darkroom.data.open import list_examples
from darkroom.data.splits import (
    Commits,
    fetch_datasets,
    join_commits,
    read_shared_labels,
)
from darkroom.dataset.splits import EVAL, TRAIN
from darkroom.errors import UsageError
from darkroom.evaluation.report.facts import FACTS_FILE
from darkroom.options.input import choose_augmentation
from darkroom.options.training import CHECKPOINT_DIR_KEY, CONFIG_KEY, TrainingOptions
from darkroom.runtime import progress
from darkroom.runtime.text import format_count
from darkroom.storage import copies
from darkroom.training.devices.environment import read_cluster
from darkroom.training.export import export_model
from darkroom.training.formats.keras_file import write_keras_file
from darkroom.training.run import train_splits
from darkroom.training.sources import check_data
from darkroom.training.state.facts import write_facts
from darkroom.training.state.folder import (
    CHECKPOINTS_FOLDER,
    KERAS_FILE,
    TRAINING_NAMES,
    check_checkpoint_place,
)
from darkroom.training.state.history import BEST_FOLDER, read_history

__all__ = ["read_example_labels"]

# Written last: the training was done, and its files are copied.
DONE_FILE = "done.json"
_EPOCHS = "epochs"
# Options that only say when a training ends.
_ENDS = (_EPOCHS, "fit_minutes")
_LOGGER = logging.getLogger(__name__)


def run_fn(fn_args: Any) -> None:
    """Trains and exports a model; the entry point of TFX's Trainer.

    Args:
        fn_args: TFX's FnArgs. `custom_config["darkroom"]` is `TrainingOptions.to_dict()`.
            `custom_config["checkpoint_dir"]`, if given, is a folder that keeps checkpoints
            until the training is done. `custom_config` may be JSON text, as on Kubeflow.
            `labels.txt` is read from the root of the Examples artifact.

    Raises:
        DataError: A split has no records, the label map is missing, or shards are damaged.
        UsageError: An option is wrong.
    """
    # The Trainer has no terminal: only its log is seen.
    logging.getLogger("darkroom.training").setLevel(logging.INFO)
    config = _parse_custom_config(fn_args.custom_config)
    options = TrainingOptions.from_dict(config[CONFIG_KEY])
    splits = list_examples({TRAIN: fn_args.train_files, EVAL: fn_args.eval_files})
    options = choose_augmentation(options, splits[TRAIN].target.kind)
    commits = join_commits(splits.values())
    read_shared_labels(commits)
    check_data(splits)
    run_dir = fn_args.model_run_dir
    if checkpoint_dir := config.get(CHECKPOINT_DIR_KEY):
        run_dir = choose_run_folder(checkpoint_dir, config, commits)
    check_checkpoint_place(run_dir)
    trained = train_splits(splits, options, run_dir, stage=False)
    for hint in trained.hints:
        progress.note(f"Next: {hint}")
        _LOGGER.info("Next: %s", hint)
    export_model(
        trained.model,
        trained.learned,
        options.image_size,
        fn_args.serving_model_dir,
        resize=options.resize,
    )
    write_keras_file(trained.model, storage.join(run_dir, KERAS_FILE))
    write_facts(run_dir, options, trained.exported.epoch, commits)
    if run_dir != fn_args.model_run_dir:
        finish_folder(run_dir, fn_args.model_run_dir)


def read_example_labels(file_patterns: str | Sequence[str]) -> list[str]:
    """Reads the label map at the root of the Examples artifacts, and checks their shards.

    Args:
        file_patterns: Paths or patterns like `ROOT/Split-train/*`.

    Raises:
        DataError: No file matches, a root is not a finished darkroom dataset, two label maps
            differ, or the label map or shards are damaged.
    """
    [split] = list_examples({TRAIN: file_patterns}).values()
    fetch_datasets([split], stage=False)
    return read_shared_labels(split.commits)


def choose_run_folder(checkpoint_dir: str, config: Mapping[str, Any], commits: Commits) -> str:
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
        own = {DONE_FILE, FACTS_FILE, *(each.rstrip("/") for each in TRAINING_NAMES)}
        names = [each for each in storage.list_everything(folder) if each.partition("/")[0] in own]
        storage.delete_files(storage.join(folder, each) for each in names)
        storage.remove_empty_folders(folder)
    if not storage.has_files(folder) and (done := _find_earlier(checkpoint_dir, name, epochs)):
        earlier = storage.join(checkpoint_dir, f"{name}-{done}")
        # It may have ended before the last epoch that it was to do.
        if trained := len(read_history(earlier)):
            several = format_count(trained, "epoch")
            progress.note(f"Resumes from {several}, which an earlier run trained.")
        storage.delete_file(storage.join(earlier, DONE_FILE))
        if storage.is_remote(earlier):
            # The list of checkpoints leads nowhere until all files of the newest exist.
            copies.move_folder(earlier, folder)
        else:
            storage.rename(earlier, folder)
    return folder


def finish_folder(folder: str, destination: str) -> None:
    """Copies the results of a training, and marks it as done.

    Its checkpoints stay in `folder` alone: they are twice as large as the model.
    """

    def is_kept(name: str) -> bool:
        part, _, file = name.partition("/")
        return part == CHECKPOINTS_FOLDER or (part == BEST_FOLDER and not file.endswith(".json"))

    copies.copy_folder(folder, destination, leave_out=is_kept)
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


def _parse_custom_config(config: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    values = json.loads(config) if isinstance(config, str) else config
    if not isinstance(values, Mapping) or CONFIG_KEY not in values:
        raise UsageError(
            f"The Trainer's custom_config is {config!r}, expected a dict with {CONFIG_KEY!r}.",
            "Pass {'darkroom': TrainingOptions(...).to_dict()}.",
        )
    return values
