"""The course of a training: its phases, its time, and what comes next. It reads and writes nothing.

A training of the whole model has one phase. Where a base is frozen there are three: its head alone,
then the last layers, too, then all.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from darkroom.options.training import LAST, TrainingOptions
from darkroom.runtime.display import format_seconds
from darkroom.runtime.text import format_count
from darkroom.training.state.history import (
    ALL_PHASE,
    HEAD_PHASE,
    MONITOR,
    PHASE,
    TOP_PHASE,
    WHOLE_PHASE,
    History,
    find_best_epoch,
)

# A head has its lowest eval loss after few epochs, and all that follow are for nothing.
_HEAD_PATIENCE = 10
# The default epochs of fine-tuning.
_FINE_TUNE_EPOCHS = 6
# How long training on an image takes, as a multiple of the frozen base's time for one.
_COSTS = {TOP_PHASE: 2.0, ALL_PHASE: 3.5}
# To build the graph of a phase.
_START_SECONDS = 10.0


class Phase(NamedTuple):
    """A part of a training, with a separate optimizer.

    Attributes:
        name: Its name in the history.
        epochs: Number of its epochs.
    """

    name: str
    epochs: int


class TrainingStep(NamedTuple):
    """What a training does next.

    Attributes:
        phase: The phase of which it trains an epoch, or the rest of one; None: it has ended.
        epochs: Number of all epochs, as far as it is known.
        end: Why it has ended before the epochs that were asked for, as a sentence.
    """

    phase: Phase | None
    epochs: int = 0
    end: str = ""


class TimeBudget:
    """Counts the seconds of a training, also those before a restart.

    Attributes:
        minutes: How many minutes the training may take; None for any number.
        epoch_seconds: How long an epoch took, by phase.
        view_seconds: How long a frozen base takes for a view of an image; 0 if not known.
        fine_tune_epochs: The epochs after those of a frozen base, once the first of them begins.
    """

    def __init__(
        self, minutes: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.minutes = minutes
        self.epoch_seconds: dict[str, float] = {}
        self.view_seconds = 0.0
        self.fine_tune_epochs: int | None = None
        self._clock, self._started, self._before = clock, clock(), 0.0

    @property
    def spent(self) -> float:
        """Seconds until now."""
        return self._before + self._clock() - self._started

    @property
    def left(self) -> float:
        """Seconds that are left; infinite without a limit."""
        return math.inf if self.minutes is None else 60 * self.minutes - self.spent

    def to_dict(self) -> dict[str, Any]:
        """Returns the state for a restart, as values for JSON."""
        return {
            "seconds": self.spent,
            "minutes": self.minutes,
            "epoch_seconds": self.epoch_seconds,
            "view_seconds": self.view_seconds,
            "fine_tune_epochs": self.fine_tune_epochs,
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Resumes from the `to_dict` of an earlier process."""
        self._before = state["seconds"]
        self.epoch_seconds = dict(state["epoch_seconds"])
        self.view_seconds = state["view_seconds"]
        # With another limit, another number fits.
        if state["minutes"] == self.minutes:
            self.fine_tune_epochs = state["fine_tune_epochs"]


@dataclass(kw_only=True)
class Course:
    """How far a training is.

    Attributes:
        options: The options of the training.
        num_images: Number of images of the train and of the eval split.
        has_gpu: Whether fine-tuning is quick enough to be done without being asked for.
        budget: Counts its time.
        history: One entry an epoch: `epoch` from 1, and Keras's losses and metrics by name.
        phase: The name of the phase that is trained.
        step: Number of batches done in the current epoch.
    """

    options: TrainingOptions
    num_images: tuple[int, int]
    has_gpu: bool
    budget: TimeBudget
    history: History = field(default_factory=list)
    phase: str = WHOLE_PHASE
    step: int = 0

    @property
    def best_epoch(self) -> int:
        """The epoch, from 1, with the lowest loss on the eval split; 0 before the first."""
        return find_best_epoch(self.history)

    @property
    def best_phase(self) -> str:
        """The phase of that epoch; the present one before the first."""
        best = self.best_epoch
        return self.history[best - 1].get(PHASE, WHOLE_PHASE) if best else self.phase

    def is_stalled(self, phase: str) -> bool:
        """Tells whether a phase ends early, because no epoch was better for a while."""
        if not (patience := choose_patience(self.options, phase)):
            return False
        done, in_phase = len(self.history), count_epochs(self.history, phase)
        return done - max(self.best_epoch, done - in_phase) >= patience

    def is_finished(self, phase: Phase) -> bool:
        """Tells whether nothing is left of a phase."""
        done = count_epochs(self.history, phase.name)
        return done >= phase.epochs or self.is_stalled(phase.name)

    def estimate_epoch(self, phase: str) -> float:
        """Returns how long an epoch of a phase takes, in seconds; 0 if that is not known."""
        if phase in self.budget.epoch_seconds or phase not in _COSTS:
            return self.budget.epoch_seconds.get(phase, 0.0)
        images, eval_images = self.num_images
        return self.budget.view_seconds * (images * _COSTS[phase] + eval_images)

    def estimate_fine_tuning(self, epochs: int) -> float:
        """Returns how long some epochs after those of the head take, in seconds."""
        _, *phases = plan_phases(self.options, epochs)
        return sum(
            _START_SECONDS + phase.epochs * self.estimate_epoch(phase.name)
            for phase in phases
            if phase.epochs
        )

    def choose_fine_tuning(self) -> int:
        """Returns how many epochs follow those of a head: as many as there is time for."""
        asked, budget = self.options.fine_tune_epochs, self.budget
        most = _FINE_TUNE_EPOCHS if asked is None else asked
        if budget.minutes is None:
            return most if asked is not None or self.has_gpu else 0
        if budget.fine_tune_epochs is not None:
            return budget.fine_tune_epochs
        done = count_epochs(self.history, TOP_PHASE) + count_epochs(self.history, ALL_PHASE)
        more = range(most - done, 0, -1)
        fitting = (each for each in more if self.estimate_fine_tuning(each) <= budget.left)
        return done + next(fitting, 0)

    def plan_phases(self) -> list[Phase]:
        """Returns the phases, as far as they are known: the time of the head decides the others."""
        head = plan_phases(self.options)[0]
        if self.phase == head.name and not self.is_finished(head):
            return plan_phases(self.options, self.options.fine_tune_epochs or 0)
        return plan_phases(self.options, self.choose_fine_tuning())

    def suggest_fine_tuning(self) -> str:
        """Says how long the fine-tuning would take that was left out; nothing if none was."""
        asked, budget = self.options.fine_tune_epochs, self.budget
        most = _FINE_TUNE_EPOCHS if asked is None else asked
        fitting = self.choose_fine_tuning()
        if not self.options.is_frozen or fitting >= most:
            return ""
        # Features that are all known say nothing about the speed of this machine.
        takes, seconds = "fine-tuning may make the model better", self.estimate_fine_tuning(most)
        if budget.view_seconds:
            several, spelled = format_count(most, "epoch"), format_seconds(seconds)
            takes = f"fine-tuning for {several} would take about {spelled}"
        if budget.minutes is None:
            return f"{takes}: --fine-tune-epochs {most}"
        more = math.ceil(budget.minutes + seconds / 60)
        known = f"{budget.minutes:g} minutes have time for {fitting}"
        return f"{takes}, and {known}: --fit-minutes {more}"


def next_step(course: Course) -> TrainingStep:
    """Returns what a training does next. It changes nothing.

    A phase goes on until all its epochs are done or early stopping applies; then the next one
    begins. The training ends where the time does.
    """
    phases = course.plan_phases()
    names = [phase.name for phase in phases]
    done = len(course.history)
    for number in range(names.index(course.phase), len(phases)):
        phase = phases[number]
        if course.is_finished(phase):
            continue
        # Without an epoch there is no model. And an epoch that began has no weights to go back to.
        seconds = course.estimate_epoch(phase.name)
        if done and not course.step and seconds > course.budget.left:
            return TrainingStep(
                None,
                end=f"Ends after epoch {done}: another one takes {format_seconds(seconds)}, more "
                f"than is left of --fit-minutes {course.budget.minutes:g}.",
            )
        before = done - count_epochs(course.history, phase.name)
        return TrainingStep(phase, before + sum(each.epochs for each in phases[number:]))
    last = phases[names.index(course.phase)]
    if course.is_stalled(last.name) and count_epochs(course.history, last.name) < last.epochs:
        waited = format_count(choose_patience(course.options, last.name), "epoch")
        return TrainingStep(
            None,
            # As many as all epochs: it then never ends before the last of them.
            end=f"Ended after epoch {done}: no lower {MONITOR} in {waited}. To train on: "
            f"--early-stopping-patience {last.epochs}.",
        )
    return TrainingStep(None)


def plan_phases(options: TrainingOptions, fine_tune_epochs: int = 0) -> list[Phase]:
    """Returns the phases of a training in their order; one may have no epochs.

    Args:
        options: The options of the training.
        fine_tune_epochs: Epochs after those of a frozen base.
    """
    if not options.is_frozen:
        return [Phase(WHOLE_PHASE, options.epochs)]
    # The last layers bring most of the gain, and cost half as much as all.
    every = fine_tune_epochs // 2
    return [
        Phase(HEAD_PHASE, options.epochs),
        Phase(TOP_PHASE, fine_tune_epochs - every),
        Phase(ALL_PHASE, every),
    ]


def count_epochs(history: History, phase: str) -> int:
    """Returns how many epochs of a phase are done."""
    return sum(entry.get(PHASE, WHOLE_PHASE) == phase for entry in history)


def choose_patience(options: TrainingOptions, phase: str) -> int:
    """Returns after how many epochs without a lower eval loss a phase ends; 0 for never."""
    is_default = not options.early_stopping_patience and options.export != LAST
    if is_head(phase) and is_default:
        return _HEAD_PATIENCE
    return options.early_stopping_patience


def is_head(phase: str) -> bool:
    """Tells whether a phase trains the head alone, on features."""
    return phase == HEAD_PHASE
