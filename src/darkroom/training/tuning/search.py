"""The search for the best options: which to try next, and the record of each trial.

KerasTuner says what to try next. It is asked from the start at each run, and told the scores that
are known, so a search that was stopped resumes with the trial where it stopped.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from darkroom import storage
from darkroom.errors import DataError
from darkroom.options.training import TrainingOptions
from darkroom.runtime import progress
from darkroom.training.tuning.space import Space, make_space

TRIALS_FILE = "trials.json"
# Trials that are tried at random before KerasTuner's model of the scores has a say.
_NUM_RANDOM = 6


@dataclass(frozen=True)
class Trial:
    """A training with some options.

    Attributes:
        trial: Its number, from 1; the first one has the options that were given.
        values: The options that were tried, by name.
        score: The metric on the eval split of the best epoch; 0 if the loss was not finite.
        epoch: That epoch, from 1; 0 if none is known.
    """

    trial: int
    values: Mapping[str, Any]
    score: float
    epoch: int


@dataclass(frozen=True)
class _Saved:
    """The content of `trials.json`."""

    plan: Mapping[str, Any]
    trials: tuple[Trial, ...]


# Trains with some options in a folder, and returns score and number of the best epoch.
TrainTrial = Callable[[TrainingOptions, str], tuple[float, int]]


class Trials:
    """The trials of a training, which `trials.json` keeps.

    Args:
        folder: The folder of the trials.
        plan: Values for JSON that decide the result of a trial.
        options: The options that were given.
        metric: The metric that is the score.
    """

    def __init__(
        self,
        folder: str,
        plan: Mapping[str, Any],
        options: TrainingOptions,
        metric: str = "accuracy",
    ) -> None:
        self._folder, self._options, self._metric = folder, options, metric
        self._plan = {**plan, "space": make_space(options)}
        self._found = self._read()

    def search(self, number: int, train: TrainTrial) -> list[Trial]:
        """Returns trials, after those that are not known were trained.

        Raises:
            MissingExtraError: KerasTuner is not installed.
            DataError: Images or records cannot be read.
        """
        given = {name: getattr(self._options, name) for name in self._plan["space"]}
        trials = [self._try(1, number, given, train)]
        if number == 1:
            return trials
        with tempfile.TemporaryDirectory() as scratch:
            oracle = _make_oracle(self._plan["space"], self._options.seed, number - 1, scratch)
            while (asked := oracle.create_trial("darkroom")).status == "RUNNING":
                values = dict(asked.hyperparameters.values)
                trials.append(self._try(len(trials) + 1, number, values, train))
                oracle.update_trial(asked.trial_id, {"score": trials[-1].score})
                asked.status = "COMPLETED"
                oracle.end_trial(asked)
        return trials

    def _try(self, trial: int, number: int, values: Mapping[str, Any], train: TrainTrial) -> Trial:
        for found in self._found:
            if (found.trial, found.values) == (trial, values):
                return found
        folder = storage.join(self._folder, f"trial-{trial:03}")
        with progress.step(f"Trial {trial}/{number}"):
            with progress.fold():
                score, epoch = train(replace(self._options, **values), folder)
            found = Trial(trial, values, score, epoch)
            self._found.append(found)
            is_best = epoch and find_best(self._found) == found
            said = format_trial(found, self._metric)
            progress.remark(said + (", the best so far" if is_best else ""))
        content = {"plan": self._plan, "trials": [asdict(each) for each in self._found]}
        text = json.dumps(content, indent=1) + "\n"
        storage.write_bytes(storage.join(self._folder, TRIALS_FILE), text.encode())
        storage.delete(folder)
        return found

    def _read(self) -> list[Trial]:
        path = storage.join(self._folder, TRIALS_FILE)
        if not storage.exists(path):
            return []
        try:
            saved = storage.read_json(path, _Saved)
            if saved.plan != json.loads(json.dumps(self._plan)):
                return []
            for each in saved.trials:
                replace(self._options, **each.values)  # which checks them
            return [*saved.trials]
        except (ValueError, TypeError) as error:
            raise DataError(f"{path} is damaged: {error!r}.", "Delete it.") from error


def find_best(trials: list[Trial]) -> Trial:
    """Returns the trial with the best score; the first one of equals."""
    # R² may be less than the 0 of a trial that failed.
    return max(trials, key=lambda each: (each.epoch > 0, each.score))


def _make_oracle(space: Space, seed: int, number: int, scratch: str) -> Any:
    """Returns KerasTuner's oracle, which is asked for values and told their score."""
    import keras_tuner
    from keras_tuner import oracles

    parameters = keras_tuner.HyperParameters()
    for name, each in space.items():
        if "choices" in each:
            parameters.Choice(name, list(each["choices"]))
        else:
            parameters.Float(name, each["least"], each["greatest"], sampling=each["scale"])
    oracle = oracles.BayesianOptimizationOracle(
        keras_tuner.Objective("score", "max"),
        max_trials=number,
        num_initial_points=_NUM_RANDOM,
        hyperparameters=parameters,
        # It takes 0 for no seed.
        seed=seed + 1,
        tune_new_entries=False,
        allow_new_entries=False,
    )
    oracle.verbose = 0
    # It writes files at each step, which nobody reads.
    oracle._set_project_dir(scratch, "tuning")
    return oracle


def format_trial(trial: Trial, metric: str = "accuracy") -> str:
    """Returns the result of a trial, and with which options."""
    result = f"val_{metric} {trial.score:.4f} in epoch {trial.epoch}"
    if not trial.epoch:
        result = "the loss was not a finite number"
    return f"{result}: {format_values(trial.values)}"


def format_values(values: Mapping[str, Any]) -> str:
    """Returns the options of a trial as they are said, as "learning_rate 0.002, augment flip"."""
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in values.items()
    )
