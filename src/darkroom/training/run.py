"""Training, for TFX's Trainer and for `darkroom train`. It resumes where it stopped."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from darkroom.data.splits import Split, describe_target
from darkroom.dataset.splits import EVAL, TRAIN
from darkroom.errors import DataError, UsageError
from darkroom.input.damage import explain_damage
from darkroom.input.opening import open_splits
from darkroom.input.pipeline import make_eval_dataset
from darkroom.input.source import ImageSource
from darkroom.options.input import InputOptions
from darkroom.options.recipe import NO_BALANCE
from darkroom.options.training import LAST, TrainingOptions
from darkroom.profiling.meter import InputMeter, InputTiming
from darkroom.profiling.stages import measure_stages
from darkroom.profiling.verdict import InputVerdict, judge_input, write_input_verdict
from darkroom.runtime import progress
from darkroom.runtime.text import format_count
from darkroom.targets.head import Head, make_head
from darkroom.targets.learned import Learned
from darkroom.training.batches import (
    FeatureBatches,
    ImageBatches,
    make_features,
    use_cache_folder,
)
from darkroom.training.devices.loops import DivergedError, Loop, make_loop, show_batches
from darkroom.training.devices.placement import (
    DevicePlacement,
    explain_lost_workers,
    make_placement,
)
from darkroom.training.features.compute import list_views
from darkroom.training.model import Parts, compile_model, make_parts, use_precision
from darkroom.training.recipe.balance import make_balance
from darkroom.training.recipe.fine_tuning import (
    build_optimizer,
    choose_trained_layers,
    release_layers,
)
from darkroom.training.recipe.hints import list_hints
from darkroom.training.recipe.optimizer import set_place
from darkroom.training.recipe.targets import check_annotated, list_targets
from darkroom.training.state.checkpoints import TrainingState
from darkroom.training.state.course import Phase, TimeBudget, count_epochs, is_head, next_step
from darkroom.training.state.history import (
    ALL_PHASE,
    MONITOR,
    TOP_PHASE,
    Exported,
    History,
    format_epoch,
)
from darkroom.training.state.training_run import TrainingRun

__all__ = ["train"]

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainedModel:
    """The result of a training.

    Attributes:
        model: The Keras model with the weights that are exported.
        learned: What it has learned.
        exported: Which epoch they are from.
        history: One entry an epoch: `epoch` from 1, and Keras's losses and metrics by name.
        verdict: Whether input slowed down the training since its last start, and which part of it;
            None if nothing was left to train, or the head alone was trained.
        hints: Hints how to improve the model, a sentence each.
    """

    model: Any
    learned: Learned
    exported: Exported
    history: History
    verdict: InputVerdict | None
    hints: Sequence[str] = ()

    @property
    def best_epoch(self) -> int:
        """The epoch, from 1, with the lowest loss on the eval split."""
        return self.exported.best


def train_splits(
    splits: Mapping[str, Split],
    options: TrainingOptions,
    run_dir: str,
    *,
    stage: bool = True,
) -> TrainedModel:
    """Opens the images of splits, and trains a model on them; see `train`.

    Args:
        splits: The train and the eval split, by name.
        options: The options of the training.
        run_dir: The folder of the training.
        stage: Copy remote datasets to a local cache first.
    """
    # This comes first: TensorFlow must know the other workers before it reads a record.
    placement = make_placement(options.strategy)
    wanted = {name: splits[name] for name in (TRAIN, EVAL)}
    sources = open_splits(wanted, verify=options.verify, stage=stage)
    return train(
        options,
        placement,
        training=sources[TRAIN],
        evaluation=sources[EVAL],
        run_dir=run_dir,
    )


def train(
    options: TrainingOptions,
    placement: DevicePlacement,
    *,
    training: ImageSource,
    evaluation: ImageSource,
    run_dir: str,
    learned: Learned | None = None,
) -> TrainedModel:
    """Trains a model. It resumes from the last checkpoint in `run_dir` if there is one.

    Args:
        options: The options of the training.
        placement: Where it is trained: the result of `make_placement(options.strategy)`, which must
            be called before any image is opened.
        training: The images of the train split.
        evaluation: The images of the eval split. The epoch with the lowest loss on them is best.
        run_dir: The folder for checkpoints, TensorBoard's event files and `history.json`.
        learned: What the model is to learn; None: what the datasets say.

    Raises:
        DataError: An image of a list cannot be decoded, no image of a split is annotated, or no
            epoch has a finite loss on the eval split.
        OutputError: `run_dir` has the checkpoint of another training.
        UsageError: The model cannot be built.
    """
    learned = learned or describe_target(training.split)
    if options.fit_minutes and placement.cluster.num_workers > 1:
        raise UsageError(
            "fit_minutes is set, but several processes train, and each has its own time.",
            "Use --epochs and --fine-tune-epochs.",
        )
    input_options = replace(options.input_options, num_classes=len(learned.names))
    images = training.count_images(), evaluation.count_images()
    num_steps = _count_steps(options, placement, images[0], is_frozen=options.is_frozen)
    identities = training.identify(), evaluation.identify()
    state = TrainingState.load(
        run_dir, options, *identities, TimeBudget(options.fit_minutes), images
    )
    head = make_head(learned, partial(list_targets, training, input_options), options.balance)
    balance = None
    if not head.counts_labels:
        check_annotated(training, TRAIN, input_options)
        check_annotated(evaluation, EVAL, input_options)
    elif options.balance != NO_BALANCE:
        balance = make_balance(options.balance, training, evaluation, input_options, head.size)
    prior = balance.prior_counts if balance else None
    with use_precision(options.precision):
        with placement.strategy.scope():
            parts = make_parts(options, head, num_steps, learned.names, prior)
        initial = parts.base.get_weights() if parts.base is not None else None
        shared = placement.share_input(input_options)
        with use_cache_folder(shared) as shared, explain_lost_workers(placement):
            data = ImageBatches(placement, shared, training, evaluation, InputMeter(), balance)
            with explain_damage(training, evaluation):
                run, timing = _train_phases(parts, state, data)
        verdict = None
        if timing is not None:
            verdict = _judge(timing, options, shared, training)
            if placement.cluster.is_chief:
                write_input_verdict(run_dir, verdict)
        exported = _restore_exported(parts, run, initial)
        model = parts.model
        if placement.is_distributed:
            # The caller gets a plain model, which does not depend on the devices.
            model = make_parts(options, head, num_steps, learned.names).model
            model.set_weights(parts.model.get_weights())
        if placement.cluster.is_chief:
            learned = _learn(head, learned, model, evaluation, input_options)
    hints = list_hints(
        options,
        state.history,
        head.metric,
        images[0],
        learned.names,
        training.split.label_counts if head.counts_labels else None,
        state.suggest_fine_tuning(),
    )
    return TrainedModel(model, learned, exported, state.history, verdict, hints)


def _learn(
    head: Head, learned: Learned, model: Any, evaluation: ImageSource, options: InputOptions
) -> Learned:
    """Returns what the model has learned, with what is chosen by its answers for the eval split."""
    answers = truth = np.zeros((0, head.size), np.float32)
    if head.asks_for_answers:
        batches = make_eval_dataset(evaluation, replace(options, shard=(0, 1)))
        found = [(model(images, training=False), targets) for images, targets in batches]
        answers, truth = (np.concatenate(each) for each in zip(*found, strict=True))
    return head.learn(learned.names, answers, truth)


def _train_phases(
    parts: Parts, state: TrainingState, data: ImageBatches
) -> tuple[TrainingRun, InputTiming | None]:
    """Trains what is left; returns the last run, and the timing of those that read images."""
    options, is_trained = state.options, False
    total: InputTiming | None = None
    [phase] = [each for each in state.plan_phases() if each.name == state.phase]
    # That of the checkpoint, even if nothing is left of it: the next begins with its weights.
    run = _begin_phase(parts, state, data, phase)
    while (step := next_step(state)).phase is not None:
        if step.phase.name != run.phase:
            if is_head(run.phase):
                run.restore_best()
            run = _begin_phase(parts, state, data, step.phase)
        is_trained = True
        loop = make_loop(run.model, options.loop, data.placement, options.steps_per_execution)
        if is_head(run.phase):
            # Features are read from memory, which says nothing about the input.
            features = make_features(data, parts.base, options)
            run.keep_view_seconds(features.view_seconds)
            _train_epochs(run, loop, features)
        else:
            total = _train_epochs(run, loop, data) + (total or InputTiming())
    done = len(state.history)
    nothing = "" if is_trained else f"Epoch {done} was the last one: nothing is left to train."
    if end := step.end or nothing:
        progress.note(end)
    return run, total


def _begin_phase(
    parts: Parts, state: TrainingState, data: ImageBatches, phase: Phase
) -> TrainingRun:
    """Makes the run of a phase, with its layers and its optimizer."""
    placement, model = data.placement, parts.trained
    if phase.name in (TOP_PHASE, ALL_PHASE):
        num_steps = _count_steps(state.options, placement, state.num_images[0], is_frozen=False)
        with placement.strategy.scope():
            choose_trained_layers(parts.base, phase.name)
            # Keras cannot average weights that devices share.
            averages = not placement.is_distributed
            optimizer = build_optimizer(state.options, phase, num_steps, averages=averages)
            model = compile_model(parts, state.options, optimizer)
    return TrainingRun(model, state, phase, is_chief=placement.cluster.is_chief)


def _train_epochs(run: TrainingRun, loop: Loop, data: ImageBatches | FeatureBatches) -> InputTiming:
    """Trains and evaluates the epochs that are next in the phase of a run."""
    options, state, total = run.state.options, run.state, InputTiming()
    is_frozen = is_head(run.phase)
    num_steps = _count_steps(options, data.placement, state.num_images[0], is_frozen=is_frozen)
    evaluation = data.make_evaluation()
    while (step := next_step(state)).phase is not None and step.phase.name == run.phase:
        with progress.step(f"epoch {len(run.history) + 1}/{step.epochs}"):
            timing = _train_epoch(run, loop, data, evaluation, num_steps)
            total += timing
            share, speed = timing.waiting_share, timing.images_per_second
            rate = float(run.model.optimizer.learning_rate.numpy())
            line = format_epoch(run.history[-1], rate, speed, share)
            progress.remark(line)
            _LOGGER.info("Epoch %d of %d: %s", len(run.history), step.phase.epochs, line)
        progress.remark(format_count(len(run.history), "epoch"))
    return total


def _train_epoch(
    run: TrainingRun,
    loop: Loop,
    data: ImageBatches | FeatureBatches,
    evaluation: Any,
    num_steps: int,
) -> InputTiming:
    """Trains and evaluates the rest of an epoch."""
    model, epoch, budget = run.model, len(run.history), run.state.budget
    started = budget.spent if run.step == 0 else None
    if started is not None:
        model.reset_metrics()
        set_place(model.optimizer, count_epochs(run.history, run.phase) * num_steps)
    batches = data.make_training(epoch, run.step)
    hook = show_batches(run.step_hook, model, data.placement.cluster, run.step, num_steps)
    try:
        loop.train_epoch(batches, run.step, num_steps, hook)
    except DivergedError as error:
        names = data.name_images(epoch, error.batches)
        raise error.explain(epoch + 1, names, run.state.options) from None
    timing = data.meter.take()
    logs = dict(model.get_metrics_result())
    found = loop.evaluate(evaluation)
    # Before the epoch counts: it may have read some of the old records and some of the new.
    data.check_not_replaced()
    run.end_epoch(
        {**logs, **{f"val_{name}": value for name, value in found.items()}},
        {
            "input_waiting_share": timing.waiting_share,
            "images_per_second": timing.images_per_second,
        },
        None if started is None else budget.spent - started,
    )
    return timing


def _restore_exported(parts: Parts, run: TrainingRun, initial: Any) -> Exported:
    """Gives the whole model the weights that its options export: of the best or the last epoch.

    They are in the run's files. Where the best epoch was one of the head alone, the base gets back
    what it had before fine-tuning.

    Args:
        parts: The model; it is changed.
        run: The run of the last phase.
        initial: The weights of the base before its fine-tuning.

    Returns:
        The epoch that was taken, among the numbers of epochs.

    Raises:
        DataError: There are none with a finite loss on the eval split.
    """
    done, best = len(run.history), run.best_epoch
    exported = done if run.state.options.export == LAST else best
    if exported == best:
        if parts.base is not None and is_head(run.state.best_phase) and not is_head(run.phase):
            # Fine-tuning did not help.
            parts.base.set_weights(initial)
            run.restore_best(parts.trained)
        else:
            run.restore_best()
    elif not math.isfinite(run.history[-1][MONITOR]):
        raise DataError(
            f"No model: {MONITOR} of the last epoch, {done}, is not a finite number.",
            "Use --export best, or a lower --learning-rate in another folder.",
        )
    if run.phase in (TOP_PHASE, ALL_PHASE):
        release_layers(parts.base)
    run.end(exported)
    return Exported(exported, done, best)


def _count_steps(
    options: TrainingOptions, placement: DevicePlacement, num_images: int, *, is_frozen: bool
) -> int:
    """Returns the number of batches in an epoch; a head sees each view of an image."""
    views = len(list_views(options.input_options)) if is_frozen else 1
    return placement.count_steps(num_images * views, options.batch_size)


def _judge(
    timing: InputTiming, options: TrainingOptions, shared: InputOptions, source: ImageSource
) -> InputVerdict:
    share, rate = timing.waiting_share, timing.images_per_second
    if not options.profile_input:
        return judge_input(share, rate)
    return judge_input(share, rate, measure_stages(source, shared))
