"""The search of `darkroom train --tune N` for the best options."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from darkroom import storage
from darkroom.errors import DataError, UsageError, build_missing_extra_error
from darkroom.options.training import TrainingOptions
from darkroom.runtime import progress
from darkroom.runtime.text import format_count
from darkroom.storage.locks import FolderLock
from darkroom.training.devices.cluster import read_cluster
from darkroom.training.state.folder import TUNING_FOLDER, claim_folder, delete_training
from darkroom.training.state.history import History, find_best_epoch, read_history
from darkroom.training.tuning.search import Trial, Trials, find_best, format_values

# Trains with some options in a folder, and returns the history.
Train = Callable[[TrainingOptions, str], History]
# The options of the last training in the folder.
_CHOSEN_FILE = "chosen.json"


def choose_options(
    options: TrainingOptions,
    identity: Mapping[str, object],
    folder: str,
    tune: int,
    train: Train,
    metric: str = "accuracy",
) -> TrainingOptions:
    """Searches for the best options of a training.

    Each trial is a training with some options, which is scored on the eval split. The test split is
    not looked at. A search that was stopped resumes where it stopped, and one that was finished
    resumes when `tune` is greater.

    Args:
        options: Of the first trial. The others differ in the options that `make_space` names.
        identity: Values for JSON that change with the data.
        folder: The folder of the training; trials are in its folder `tuning`.
        tune: Number of trials.
        train: Trains with options in a folder, and returns the history.
        metric: The metric of the eval split by which trials are compared.

    Returns:
        The options of the best trial. A training in the folder with others was deleted.

    Raises:
        DarkroomError: As `train`; or several processes train, or KerasTuner is missing.
    """
    if tune < 1:
        raise UsageError(f"tune is {tune!r}, expected a number of trials, from 1.")
    if read_cluster().num_workers > 1:
        raise UsageError(
            "--tune trains in one process, and TF_CONFIG names several.",
            "Search on one machine; train with the options it finds on all.",
        )
    # Before the first trial, which takes as long as a training. Its oracle needs scikit-learn.
    if not all(map(importlib.util.find_spec, ("keras_tuner", "sklearn"))):
        raise build_missing_extra_error("--tune", "tune")
    inside = storage.join(folder, TUNING_FOLDER)
    plan = {"options": options.to_dict(), "data": identity}
    storage.make_folder(folder)
    with FolderLock(folder):
        claim_folder(folder)
        trials = Trials(inside, plan, options, metric).search(
            tune, lambda tried, place: _train_trial(train, tried, place, metric)
        )
        best = find_best(trials)
        _report(trials, best, metric)
        chosen = replace(options, **best.values)
        path = storage.join(inside, _CHOSEN_FILE)
        content = (json.dumps(chosen.to_dict(), indent=1) + "\n").encode()
        if not storage.exists(path) or storage.read_bytes(path) != content:
            delete_training(folder)
            storage.write_bytes(path, content)
    return chosen


def _train_trial(
    train: Train, options: TrainingOptions, folder: str, metric: str
) -> tuple[float, int]:
    import keras

    storage.make_folder(folder)
    # The last trial's model would stay in memory.
    keras.backend.clear_session()
    try:
        history = train(options, folder)
    except DataError as error:
        if not _has_diverged(error, folder):
            raise
        return 0.0, 0
    best = find_best_epoch(history)
    entry = history[best - 1]
    if f"val_{metric}" not in entry:
        raise UsageError(
            f"--tune compares val_{metric}, and {options.model} has no metric {metric}.",
            f"Compile it with metrics=[{metric!r}].",
        )
    score = entry[f"val_{metric}"]
    return (score if math.isfinite(score) else 0.0), best


def _has_diverged(error: DataError, folder: str) -> bool:
    """Tells whether a training failed because its loss was not a finite number."""
    from darkroom.training.devices.loops import DivergedError

    if isinstance(error.__context__, DivergedError):
        return True
    history = read_history(folder)
    return bool(history) and not find_best_epoch(history)


def _report(trials: Sequence[Trial], best: Trial, metric: str) -> None:
    first = trials[0]
    several = format_count(len(trials), "trial")
    same = best.trial == first.trial
    compared = "that is yours" if same else f"with your options it is {first.score:.4f}"
    progress.note(
        f"Best of {several}: {best.trial} with {format_values(best.values)}. Its val_{metric} is "
        f"{best.score:.4f}; {compared}."
    )
