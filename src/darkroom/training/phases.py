"""Leads a training through its phases, which have one folder and one history."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from darkroom.errors import DataError
from darkroom.options.training import LAST
from darkroom.runtime import progress
from darkroom.runtime.display import format_seconds
from darkroom.runtime.text import format_count
from darkroom.training.devices.placement import Placement
from darkroom.training.model import Parts, compile_model
from darkroom.training.recipe.fine_tuning import (
    DEFAULT_EPOCHS,
    build_optimizer,
    choose_trained_layers,
    estimate_epoch,
    estimate_phases,
    release_layers,
)
from darkroom.training.state.checkpoints import TrainingState
from darkroom.training.state.history import ALL, MONITOR, TOP, Exported
from darkroom.training.state.plan import (
    Phase,
    choose_patience,
    count_epochs,
    count_steps,
    is_head,
    plan_phases,
)
from darkroom.training.state.training_run import TrainingRun


@dataclass
class Phases:
    """The phases of a training, one after the other.

    Attributes:
        placement: Where it is trained.
        parts: The model, its head and its base.
        num_classes: C, the number of labels.
        num_images: Number of images of the train and of the eval split.
        state: How far it is; `state.options` are the options of the training.
        runs: The run of each phase that has begun, by its name.
        fine_tuning: The cost of fine-tuning, where it was left out; else empty.
    """

    placement: Placement
    parts: Parts
    num_classes: int
    num_images: tuple[int, int]
    state: TrainingState
    runs: dict[str, TrainingRun] = field(default_factory=dict)
    fine_tuning: str = ""
    _initial: list[Any] | None = None
    _is_over: bool = False

    def begin_runs(self) -> Iterator[TrainingRun]:
        """Yields the run of each phase in its turn, if something is left of it to train."""
        names = [phase.name for phase in self._plan()]
        reached = names.index(self.state.phase)
        for number, name in enumerate(names):
            phase = self._plan()[number]
            if number > reached:
                if not phase.epochs or self._is_over:
                    continue
                # The checkpoint is of the phase before.
                self.state.phase, self.state.checkpoint = name, ""
            run = self.runs[name] = self._make_run(phase)
            if number >= reached and not run.is_finished:
                yield run
            if is_head(name):
                self._decide(run)
                if self._fine_tune_epochs and number >= reached:
                    run.restore_best()

    def has_time(self, run: TrainingRun) -> bool:
        """Tells whether there is time for another epoch; says so if there is not."""
        # Without an epoch there is no model. And an epoch that began has no weights to go back to.
        self._is_over = bool(run.history) and not run.step and not self.state.budget.fits(run.phase)
        if self._is_over:
            seconds = format_seconds(self.state.budget.epoch_seconds.get(run.phase, 0.0))
            progress.note(
                f"Ends after epoch {len(run.history)}: another one takes {seconds}, more than "
                f"is left of --fit-minutes {self.state.budget.minutes:g}."
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
            patience = choose_patience(self.state.options, last.phase)
            # As many as all epochs: it then never ends before the last of them.
            return (
                f"Ended after epoch {done}: no lower {MONITOR} in {format_count(patience, 'epoch')}"
                f". To train on: --early-stopping-patience {last.epochs}."
            )
        return "" if is_trained else f"Epoch {done} was the last one: nothing is left to train."

    def count_epochs(self, run: TrainingRun) -> int:
        """Returns the number of all epochs, as far as it is known while a run is trained."""
        phases = self._plan()
        [at] = [number for number, phase in enumerate(phases) if phase.name == run.phase]
        before = len(run.history) - count_epochs(run.history, run.phase)
        return before + sum(phase.epochs for phase in phases[at:])

    def count_steps(self, phase: str) -> int:
        """Returns the number of batches in an epoch of a phase."""
        return count_steps(self.state.options, self.placement, self.num_images[0], phase)

    def restore(self) -> Exported:
        """Gives the whole model the weights that are exported.

        Raises:
            DataError: There are none with a finite loss on the eval split.
        """
        *_, last = self.runs.values()
        done, best = len(last.history), last.best_epoch
        exported = done if self.state.options.export == LAST else best
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
        return plan_phases(self.state.options, self._fine_tune_epochs)

    @property
    def _fine_tune_epochs(self) -> int:
        if self.state.budget.fine_tune_epochs is not None:
            return self.state.budget.fine_tune_epochs
        return self.state.options.fine_tune_epochs or 0

    def _make_run(self, phase: Phase) -> TrainingRun:
        model = self.parts.trained
        if phase.name in (TOP, ALL) and self.parts.base is not None:
            if self._initial is None:
                self._initial = self.parts.base.get_weights()
            num_steps = self.count_steps(phase.name)
            with self.placement.strategy.scope():
                choose_trained_layers(self.parts.base, phase.name)
                # Keras cannot average weights that devices share.
                averages = not self.placement.is_distributed
                optimizer = build_optimizer(self.state.options, phase, num_steps, averages=averages)
                model = compile_model(self.parts, self.state.options, self.num_classes, optimizer)
        is_chief = self.placement.cluster.is_chief
        return TrainingRun(model, self.state, phase, is_chief=is_chief)

    def _decide(self, run: TrainingRun) -> None:
        """Decides how many epochs follow those of the head, and the hint about those left out."""
        budget, asked = self.state.budget, self.state.options.fine_tune_epochs
        most = DEFAULT_EPOCHS if asked is None else asked
        phases = plan_phases(self.state.options, most)[1:]
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
            phases = plan_phases(self.state.options, epochs)[1:]
            if estimate_phases(phases, self.state.budget.epoch_seconds) <= self.state.budget.left:
                return epochs
        return 0

    def _suggest(self, most: int, seconds: float) -> str:
        """Says how long the omitted fine-tuning would take."""
        # Features that are all known say nothing about the speed of this machine.
        takes = "fine-tuning may make the model better"
        if self.state.budget.view_seconds:
            several, time = format_count(most, "epoch"), format_seconds(seconds)
            takes = f"fine-tuning for {several} would take about {time}"
        minutes, fitting = self.state.budget.minutes, self.state.budget.fine_tune_epochs
        if minutes is None:
            return f"{takes}: --fine-tune-epochs {most}"
        more = math.ceil(minutes + seconds / 60)
        return f"{takes}, and {minutes:g} minutes have time for {fitting}: --fit-minutes {more}"
