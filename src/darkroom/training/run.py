"""Training, for TFX's Trainer and for `darkroom train`. It resumes where it stopped."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from darkroom.errors import UsageError
from darkroom.input.damage import explain_damage
from darkroom.input.source import ImageSource
from darkroom.options.input import InputOptions
from darkroom.options.training import TrainingOptions
from darkroom.profiling.meter import InputMeter, InputTiming
from darkroom.profiling.stages import measure_stages
from darkroom.profiling.stored_forms import measure_forms
from darkroom.profiling.verdict import BOUND_SHARE, DECODE, InputVerdict, judge_input, write_verdict
from darkroom.runtime import progress
from darkroom.runtime.text import format_count
from darkroom.training.data import ImageBatches, use_cache_folder
from darkroom.training.devices.divergence import explain_divergence
from darkroom.training.devices.loops import Loop, make_loop, show_batches
from darkroom.training.devices.placement import Placement, explain_lost_workers
from darkroom.training.feature_batches import FeatureBatches, use_features
from darkroom.training.model import make_parts, use_precision
from darkroom.training.phases import Phases
from darkroom.training.recipe.balance import make_balance
from darkroom.training.recipe.hints import list_hints
from darkroom.training.recipe.label_counts import find_label_counts
from darkroom.training.recipe.optimizer import set_place
from darkroom.training.sources import check_labels
from darkroom.training.state.budget import Budget
from darkroom.training.state.checkpoints import TrainingState
from darkroom.training.state.history import Exported, History, format_epoch
from darkroom.training.state.plan import count_epochs, count_steps, is_head, plan_phases
from darkroom.training.state.training_run import TrainingRun

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainedModel:
    """The result of a training.

    Attributes:
        model: The Keras model with the weights that are exported.
        exported: Which epoch they are from.
        history: One entry an epoch: `epoch` from 1, and Keras's losses and metrics by name.
        verdict: Whether input slowed down the training since its last start, and which part of it;
            None if nothing was left to train, or the head alone was trained.
        hints: Hints how to improve the model, a sentence each.
    """

    model: Any
    exported: Exported
    history: History
    verdict: InputVerdict | None
    hints: Sequence[str] = ()

    @property
    def best_epoch(self) -> int:
        """The epoch, from 1, with the lowest loss on the eval split."""
        return self.exported.best


def train(
    options: TrainingOptions,
    placement: Placement,
    *,
    training: ImageSource,
    evaluation: ImageSource,
    num_classes: int,
    run_dir: str,
    labels: Sequence[str] = (),
) -> TrainedModel:
    """Trains a model. It resumes from the last checkpoint in `run_dir` if there is one.

    Args:
        options: The options of the training.
        placement: Where it is trained: the result of `make_placement(options.strategy)`, which must
            be called before any image is opened.
        training: The images of the train split.
        evaluation: The images of the eval split. The epoch with the lowest loss on them is best.
        num_classes: C, the number of labels.
        run_dir: The folder for checkpoints, TensorBoard's event files and `history.json`.
        labels: The labels, for weights of an earlier training; without them it counts as one with
            other labels.

    Raises:
        DataError: An image of a list cannot be decoded, there are fewer than two labels, or no
            epoch has a finite loss on the eval split.
        OutputError: `run_dir` has the checkpoint of another training.
        UsageError: The model cannot be built.
    """
    check_labels(labels or ("",) * num_classes)
    if options.fit_minutes and placement.cluster.num_workers > 1:
        raise UsageError(
            "fit_minutes is set, but several processes train, and each has its own time.",
            "Use --epochs and --fine-tune-epochs.",
        )
    input_options = dataclasses.replace(options.input_options, num_classes=num_classes)
    images = training.count_images(), evaluation.count_images()
    first = plan_phases(options)[0].name
    num_steps = count_steps(options, placement, images[0], first)
    identities = training.identify(), evaluation.identify()
    state = TrainingState.load(run_dir, options, *identities, Budget(options.fit_minutes))
    balance = make_balance(options.balance, training, evaluation, input_options, num_classes)
    prior = balance.prior_counts if balance else None
    with use_precision(options.precision):
        with placement.strategy.scope():
            parts = make_parts(options, num_classes, num_steps, labels, prior)
        phases = Phases(placement, parts, num_classes, images, state)
        shared = placement.share_input(input_options)
        with use_cache_folder(shared) as shared, explain_lost_workers(placement):
            data = ImageBatches(placement, shared, training, evaluation, InputMeter(), balance)
            with explain_damage(training, evaluation):
                timing = _train_phases(phases, data)
        verdict = None
        if timing is not None:
            verdict = _judge(timing, options, shared, training)
            if placement.cluster.is_chief:
                write_verdict(run_dir, verdict)
        exported = phases.restore()
        model = parts.model
        if placement.is_distributed:
            # The caller gets a plain model, which does not depend on the devices.
            model = make_parts(options, num_classes, num_steps, labels).model
            model.set_weights(parts.model.get_weights())
    # Without a balance, its hint needs them; with one, they were counted already.
    counts = None if balance else find_label_counts(training, num_classes)
    hints = list_hints(options, state.history, images[0], labels, counts, phases.fine_tuning)
    return TrainedModel(model, exported, state.history, verdict, hints)


def _train_phases(phases: Phases, data: ImageBatches) -> InputTiming | None:
    """Trains the rest of each phase; returns the timing of those that read images, if any."""
    options, placement = phases.state.options, data.placement
    total: InputTiming | None = None
    is_trained = False
    for run in phases.begin_runs():
        is_trained = True
        base = phases.parts.base if is_head(run.phase) else None
        loop = make_loop(run.model, options.loop, placement, options.steps_per_execution)
        with nullcontext(data) if base is None else use_features(data, base, options) as fed:
            if isinstance(fed, FeatureBatches):
                budget = phases.state.budget
                budget.view_seconds = fed.view_seconds or budget.view_seconds
            timing = _train_epochs(phases, run, loop, fed)
        # Features are read from memory, which says nothing about the input.
        if base is None:
            total = timing + (total or InputTiming())
    if end := phases.explain_end(is_trained=is_trained):
        progress.note(end)
    return total


def _train_epochs(
    phases: Phases,
    run: TrainingRun,
    loop: Loop,
    data: ImageBatches | FeatureBatches,
) -> InputTiming:
    evaluation, total = data.make_evaluation(), InputTiming()
    num_steps = phases.count_steps(run.phase)
    while not run.is_finished and phases.has_time(run):
        with progress.step(f"epoch {len(run.history) + 1}/{phases.count_epochs(run)}"):
            total += _train_epoch(phases, run, loop, data, evaluation, num_steps)
        progress.remark(format_count(len(run.history), "epoch"))
    return total


def _train_epoch(
    phases: Phases,
    run: TrainingRun,
    loop: Loop,
    data: ImageBatches | FeatureBatches,
    evaluation: Any,
    num_steps: int,
) -> InputTiming:
    """Trains and evaluates the rest of an epoch; says at its end how it went."""
    model, started, is_whole = run.model, phases.state.budget.spent, run.step == 0
    if is_whole:
        model.reset_metrics()
        set_place(model.optimizer, count_epochs(run.history, run.phase) * num_steps)
    batches = data.make_training(len(run.history), run.step)
    hook = show_batches(run.step_hook, model, data.placement.cluster, run.step, num_steps)
    with explain_divergence(data, len(run.history), phases.state.options):
        loop.train_epoch(batches, run.step, num_steps, hook)
    timing = data.meter.take()
    logs = dict(model.get_metrics_result())
    found = loop.evaluate(evaluation)
    # Before the epoch counts: it may have read some of the old records and some of the new.
    data.check_not_replaced()
    share, speed = timing.waiting_share, timing.images_per_second
    if is_whole:
        phases.state.budget.epoch_seconds[run.phase] = phases.state.budget.spent - started
    run.end_epoch(
        {**logs, **{f"val_{name}": value for name, value in found.items()}},
        {"input_waiting_share": share, "images_per_second": speed},
    )
    rate = float(model.optimizer.learning_rate.numpy())
    line = format_epoch(run.history[-1], rate, speed, share)
    progress.remark(line)
    _LOGGER.info("Epoch %d of %d: %s", len(run.history), run.epochs, line)
    return timing


def _judge(
    timing: InputTiming, options: TrainingOptions, shared: InputOptions, source: ImageSource
) -> InputVerdict:
    share, rate = timing.waiting_share, timing.images_per_second
    if not options.profile_input:
        return judge_input(share, rate)
    costs = measure_stages(source, shared)
    waits_for_decoding = share >= BOUND_SHARE and costs.slowest == DECODE
    forms = measure_forms(source, shared) if waits_for_decoding else ()
    return judge_input(share, rate, costs, forms)
