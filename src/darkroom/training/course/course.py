"""Leads a training through its phases, which have one folder and one history."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import tensorflow as tf

from darkroom.errors import DataError, UsageError
from darkroom.options.training import LAST, TrainingOptions
from darkroom.runtime import progress
from darkroom.runtime.display import format_seconds
from darkroom.runtime.text import format_count
from darkroom.training.checkpoints import BUDGET, TrainingRun
from darkroom.training.course.budget import Budget
from darkroom.training.course.fine_tuning import (
    DEFAULT_EPOCHS,
    build_optimizer,
    choose_trained_layers,
    estimate_epoch,
    estimate_phases,
    release_layers,
)
from darkroom.training.course.identity import Identity
from darkroom.training.course.phases import (
    Phase,
    choose_patience,
    count_epochs,
    count_steps,
    is_head,
    plan_phases,
)
from darkroom.training.folder import read_checkpoint
from darkroom.training.history import ALL, MONITOR, PHASE, TOP, Exported, History
from darkroom.training.model import Parts, compile_model
from darkroom.training.placement import Placement


@dataclass
class Course:
    """The phases of a training.

    Attributes:
        options: The options of the training.
        placement: Where it is trained.
        parts: The model, its head and its base.
        num_classes: C, the number of labels.
        num_images: Number of images of the train and of the eval split.
        folder: The folder of the training.
        values: Other arguments of `TrainingRun`, the same for all phases.
        budget: Counts the time.
        runs: The run of each phase that has begun, by its name.
        fine_tuning: The cost of fine-tuning, where it was left out; else empty.
    """

    options: TrainingOptions
    placement: Placement
    parts: Parts
    num_classes: int
    num_images: tuple[int, int]
    folder: str
    values: Mapping[str, Any]
    budget: Budget
    runs: dict[str, TrainingRun] = field(default_factory=dict)
    fine_tuning: str = ""
    _state: Mapping[str, Any] = field(default_factory=dict)
    _initial: list[Any] | None = None
    _is_over: bool = False

    def __post_init__(self) -> None:
        """Finds out how far an earlier process was.

        Raises:
            OutputError: The checkpoint is not darkroom's, or belongs to another training.
            UsageError: Several processes would measure the time; or the checkpoint is within an
                epoch with another order.
        """
        if self.options.fit_minutes and self.placement.cluster.num_workers > 1:
            raise UsageError(
                "fit_minutes is set, but several processes train, and each has its own time.",
                "Use --epochs and --fine-tune-epochs.",
            )
        if found := read_checkpoint(self.folder):
            self._state = found[1]
            names = [each.name for each in fields(Identity)]
            Identity(**{name: self.values[name] for name in names}).check(*found, self.folder)
            if BUDGET in self._state:
                self.budget.resume(self._state[BUDGET])

    def begin_runs(self) -> Iterator[TrainingRun]:
        """Yields the run of each phase in its turn, if something is left of it to train."""
        names = [phase.name for phase in self._plan()]
        reached = names.index(self._state.get(PHASE, names[0])) if self._state else -1
        for number, name in enumerate(names):
            phase = self._plan()[number]
            if number > reached and (not phase.epochs or self._is_over):
                continue
            history = self._state["history"] if number < reached else None
            if number > max(reached, 0):
                history = self.history
            run = self.runs[name] = self._make_run(phase, history)
            is_trained = number >= reached and not run.is_finished
            if is_trained:
                yield run
            if is_head(name):
                self._decide(run)
                if self._fine_tune_epochs and number >= reached:
                    run.restore_best()

    def has_time(self, run: TrainingRun) -> bool:
        """Tells whether there is time for another epoch; says so if there is not."""
        # Without an epoch there is no model. And an epoch that began has no weights to go back to.
        self._is_over = bool(run.history) and not run.step and not self.budget.fits(run.phase)
        if self._is_over:
            seconds = format_seconds(self.budget.epoch_seconds.get(run.phase, 0.0))
            progress.note(
                f"Ends after epoch {len(run.history)}: another one takes {seconds}, more than "
                f"is left of --fit-minutes {self.budget.minutes:g}."
            )
        return not self._is_over

    def explain_end(self, *, is_trained: bool) -> str:
        """Says why no further epoch is trained; nothing where all that were asked for were.

        Args:
            is_trained: Whether this process trained an epoch.
        """
        *_, last = self.runs.values()
        done, in_phase = len(last.history), count_epochs(last.history, last.phase)
        if last.is_stalled and in_phase < last.epochs:
            patience = choose_patience(self.options, last.phase)
            # As many as all epochs: it then never ends before the last of them.
            return (
                f"Ended after epoch {done}: no lower {MONITOR} in {format_count(patience, 'epoch')}"
                f". To train on: --early-stopping-patience {last.epochs}."
            )
        return "" if is_trained else f"Epoch {done} was the last one: nothing is left to train."

    @property
    def history(self) -> History:
        """The entries of all epochs."""
        *_, last = self.runs.values()
        return last.history

    def count_epochs(self, run: TrainingRun) -> int:
        """Returns the number of all epochs, as far as it is known while a run is trained."""
        phases = self._plan()
        [at] = [number for number, phase in enumerate(phases) if phase.name == run.phase]
        before = len(run.history) - count_epochs(run.history, run.phase)
        return before + sum(phase.epochs for phase in phases[at:])

    def count_steps(self, phase: str) -> int:
        """Returns the number of batches in an epoch of a phase."""
        return count_steps(self.options, self.placement, self.num_images[0], phase)

    def restore(self) -> Exported:
        """Gives the whole model the weights that are exported.

        Raises:
            DataError: There are none with a finite loss on the eval split.
        """
        *_, last = self.runs.values()
        done, best = len(last.history), last.best_epoch
        exported = done if self.options.export == LAST else best
        if exported == best:
            self._restore_best(last)
        elif not tf.math.is_finite(last.history[-1][MONITOR]):
            raise DataError(
                f"No model: {MONITOR} of the last epoch, {done}, is not a finite number.",
                "Use --export best, or a lower --learning-rate in another folder.",
            )
        if self._initial is not None:
            release_layers(self.parts.base)
        last.end(exported)
        return Exported(exported, done, best)

    def _restore_best(self, last: TrainingRun) -> None:
        found = next((run for run in self.runs.values() if run.has_best), last)
        if is_head(found.phase) and self.parts.base is not None and self._initial is not None:
            # Fine-tuning did not help.
            self.parts.base.set_weights(self._initial)
        found.restore_best()

    def _plan(self) -> list[Phase]:
        return plan_phases(self.options, self._fine_tune_epochs)

    @property
    def _fine_tune_epochs(self) -> int:
        if self.budget.fine_tune_epochs is not None:
            return self.budget.fine_tune_epochs
        return self.options.fine_tune_epochs or 0

    def _make_run(self, phase: Phase, history: History | None) -> TrainingRun:
        model = self.parts.trained
        if phase.name in (TOP, ALL) and self.parts.base is not None:
            if self._initial is None:
                self._initial = self.parts.base.get_weights()
            num_steps = self.count_steps(phase.name)
            with self.placement.strategy.scope():
                choose_trained_layers(self.parts.base, phase.name)
                # Keras cannot average weights that devices share.
                averages = not self.placement.is_distributed
                optimizer = build_optimizer(self.options, phase, num_steps, averages=averages)
                model = compile_model(self.parts, self.options, self.num_classes, optimizer)
        return TrainingRun(
            model,
            self.folder,
            epochs=phase.epochs,
            phase=phase.name,
            history=history,
            budget=self.budget,
            early_stopping_patience=choose_patience(self.options, phase.name),
            **self.values,
        )

    def _decide(self, run: TrainingRun) -> None:
        """Decides how many epochs follow those of the head, and the hint about those left out."""
        budget, asked = self.budget, self.options.fine_tune_epochs
        most = DEFAULT_EPOCHS if asked is None else asked
        phases = plan_phases(self.options, most)[1:]
        for phase in phases:
            seconds = estimate_epoch(phase.name, budget.view_seconds, *self.num_images)
            budget.epoch_seconds.setdefault(phase.name, seconds)
        if budget.minutes is None:
            has_gpu = bool(tf.config.list_physical_devices("GPU"))
            budget.fine_tune_epochs = most if asked is not None or has_gpu else 0
        elif budget.fine_tune_epochs is None:
            done = sum(count_epochs(run.history, phase.name) for phase in phases)
            budget.fine_tune_epochs = done + self._count_fitting(most - done)
        if budget.fine_tune_epochs < most:
            self.fine_tuning = self._suggest(most, estimate_phases(phases, budget.epoch_seconds))

    def _count_fitting(self, most: int) -> int:
        """Returns how many epochs of fine-tuning there is time for."""
        for epochs in range(most, 0, -1):
            phases = plan_phases(self.options, epochs)[1:]
            if estimate_phases(phases, self.budget.epoch_seconds) <= self.budget.left:
                return epochs
        return 0

    def _suggest(self, most: int, seconds: float) -> str:
        """Says how long the omitted fine-tuning would take."""
        # Features that are all known say nothing about the speed of this machine.
        takes = "fine-tuning may make the model better"
        if self.budget.view_seconds:
            several, time = format_count(most, "epoch"), format_seconds(seconds)
            takes = f"fine-tuning for {several} would take about {time}"
        minutes, fitting = self.budget.minutes, self.budget.fine_tune_epochs
        if minutes is None:
            return f"{takes}: --fine-tune-epochs {most}"
        more = math.ceil(minutes + seconds / 60)
        return f"{takes}, and {minutes:g} minutes have time for {fitting}: --fit-minutes {more}"
