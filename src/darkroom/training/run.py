"""Training, for TFX's Trainer and for `darkroom train`. It can resume where it stopped."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darkroom import storage
from darkroom.errors import UsageError
from darkroom.input.commits import check_commits, read_shared_labels
from darkroom.input.damage import explain_damage
from darkroom.input.reading import list_files
from darkroom.input.source import ImageSource
from darkroom.options.input import InputOptions
from darkroom.options.training import CHECKPOINT_DIR_KEY, CONFIG_KEY, TrainingOptions
from darkroom.profiling.meter import InputMeter, InputTiming
from darkroom.profiling.stages import measure_stages
from darkroom.profiling.stored_forms import measure_forms
from darkroom.profiling.verdict import BOUND_SHARE, DECODE, InputVerdict, judge_input, write_verdict
from darkroom.runtime import progress
from darkroom.runtime.text import format_count
from darkroom.training.checkpoints import TrainingRun, group_options
from darkroom.training.course.budget import Budget
from darkroom.training.course.course import Course
from darkroom.training.course.divergence import explain_divergence
from darkroom.training.course.phases import count_epochs, count_steps, is_head, plan_phases
from darkroom.training.course.sources import check_labels
from darkroom.training.data import ImageBatches, open_split, use_cache_folder
from darkroom.training.export import export_model
from darkroom.training.features.data import FeatureBatches, use_features
from darkroom.training.folder import KERAS_FILE, check_place
from darkroom.training.formats.keras_file import write_keras_file
from darkroom.training.history import Exported, History, format_epoch
from darkroom.training.jobs.facts import write_facts
from darkroom.training.jobs.kept_runs import choose_folder, finish_folder
from darkroom.training.loops import Loop, make_loop, show_batches
from darkroom.training.model import make_parts, use_precision
from darkroom.training.placement import Placement, explain_lost_workers, make_placement
from darkroom.training.recipe.balance import make_balance
from darkroom.training.recipe.hints import list_hints
from darkroom.training.recipe.label_counts import find_label_counts
from darkroom.training.recipe.optimizer import set_place

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
    _LOGGER.setLevel(logging.INFO)
    config = _parse_custom_config(fn_args.custom_config)
    options = TrainingOptions.from_dict(config[CONFIG_KEY])
    commits = check_commits(list_files([*fn_args.train_files, *fn_args.eval_files]))
    labels = read_shared_labels(commits)
    run_dir = fn_args.model_run_dir
    if checkpoint_dir := config.get(CHECKPOINT_DIR_KEY):
        run_dir = choose_folder(checkpoint_dir, config, commits)
    check_place(run_dir)
    trained = train(
        options,
        # This comes first: TensorFlow must know the other workers before it reads a record.
        make_placement(options.strategy),
        training=open_split("train", fn_args.train_files, commits, verify=options.verify),
        evaluation=open_split("eval", fn_args.eval_files, commits, verify=options.verify),
        num_classes=len(labels),
        run_dir=run_dir,
        labels=labels,
    )
    for hint in trained.hints:
        progress.note(f"Next: {hint}")
        _LOGGER.info("Next: %s", hint)
    export_model(
        trained.model,
        labels,
        options.image_size,
        fn_args.serving_model_dir,
        resize=options.resize,
    )
    write_keras_file(trained.model, storage.join(run_dir, KERAS_FILE))
    write_facts(run_dir, options, trained.exported.epoch, commits)
    if run_dir != fn_args.model_run_dir:
        finish_folder(run_dir, fn_args.model_run_dir)


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
    input_options = dataclasses.replace(options.input_options, num_classes=num_classes)
    first = plan_phases(options)[0].name
    num_steps = count_steps(options, placement, training.count_images(), first)
    budget = Budget(options.fit_minutes)
    balance = make_balance(options.balance, training, evaluation, input_options, num_classes)
    prior = balance.prior_counts if balance else None
    with use_precision(options.precision):
        with placement.strategy.scope():
            parts = make_parts(options, num_classes, num_steps, labels, prior)
        course = Course(
            options,
            placement,
            parts,
            num_classes,
            (training.count_images(), evaluation.count_images()),
            run_dir,
            {
                "checkpoint_steps": options.checkpoint_steps,
                "data": training.identify(),
                "eval_data": evaluation.identify(),
                **group_options(options),
                "is_chief": placement.cluster.is_chief,
            },
            budget,
        )
        shared = placement.share_input(input_options)
        with use_cache_folder(shared) as shared, explain_lost_workers(placement):
            data = ImageBatches(placement, shared, training, evaluation, InputMeter(), balance)
            with explain_damage(training, evaluation):
                timing = _train_phases(course, data)
        verdict = None
        if timing is not None:
            verdict = _judge(timing, options, shared, training)
            if placement.cluster.is_chief:
                write_verdict(run_dir, verdict)
        exported = course.restore()
        model = parts.model
        if placement.is_distributed:
            # The caller gets a plain model, which does not depend on the devices.
            model = make_parts(options, num_classes, num_steps, labels).model
            model.set_weights(parts.model.get_weights())
    # Without a balance, its hint needs them; with one, they were counted already.
    counts = None if balance else find_label_counts(training, num_classes)
    images = training.count_images()
    hints = list_hints(options, course.history, images, labels, counts, course.fine_tuning)
    return TrainedModel(model, exported, course.history, verdict, hints)


def read_example_labels(file_patterns: str | Sequence[str]) -> list[str]:
    """Reads the label map at the root of the Examples artifacts, and checks their shards.

    Args:
        file_patterns: Paths or patterns like `ROOT/Split-train/*`.

    Raises:
        DataError: No file matches, a root is not a finished darkroom dataset, two label maps
            differ, or the label map or shards are damaged.
    """
    return read_shared_labels(check_commits(list_files(file_patterns)))


def _train_phases(course: Course, data: ImageBatches) -> InputTiming | None:
    """Trains the rest of each phase; returns the timing of those that read images, if any."""
    options, placement = course.options, data.placement
    total: InputTiming | None = None
    is_trained = False
    for run in course.begin_runs():
        is_trained = True
        base = course.parts.base if is_head(run.phase) else None
        loop = make_loop(run.model, options.loop, placement, options.steps_per_execution)
        with use_features(data, base, options) as fed:
            if isinstance(fed, FeatureBatches):
                course.budget.view_seconds = fed.view_seconds or course.budget.view_seconds
            timing = _train_epochs(course, run, loop, fed)
        # Features are read from memory, which says nothing about the input.
        if base is None:
            total = timing + (total or InputTiming())
    if end := course.explain_end(is_trained=is_trained):
        progress.note(end)
    return total


def _train_epochs(
    course: Course,
    run: TrainingRun,
    loop: Loop,
    data: ImageBatches | FeatureBatches,
) -> InputTiming:
    evaluation, total = data.make_evaluation(), InputTiming()
    num_steps = course.count_steps(run.phase)
    while not run.is_finished and course.has_time(run):
        with progress.step(f"epoch {len(run.history) + 1}/{course.count_epochs(run)}"):
            total += _train_epoch(course, run, loop, data, evaluation, num_steps)
        progress.remark(format_count(len(run.history), "epoch"))
    return total


def _train_epoch(
    course: Course,
    run: TrainingRun,
    loop: Loop,
    data: ImageBatches | FeatureBatches,
    evaluation: Any,
    num_steps: int,
) -> InputTiming:
    """Trains and evaluates the rest of an epoch; says at its end how it went."""
    model, started, is_whole = run.model, course.budget.spent, run.step == 0
    if is_whole:
        model.reset_metrics()
        set_place(model.optimizer, count_epochs(run.history, run.phase) * num_steps)
    batches = data.make_training(len(run.history), run.step)
    hook = show_batches(run.step_hook, model, data.placement.cluster, run.step, num_steps)
    with explain_divergence(data, len(run.history), course.options):
        loop.train_epoch(batches, run.step, num_steps, hook)
    timing = data.meter.take()
    logs = dict(model.get_metrics_result())
    found = loop.evaluate(evaluation)
    # Before the epoch counts: it may have read some of the old records and some of the new.
    data.check_not_replaced()
    share, speed = timing.waiting_share, timing.images_per_second
    if is_whole:
        course.budget.epoch_seconds[run.phase] = course.budget.spent - started
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


def _parse_custom_config(config: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    values = json.loads(config) if isinstance(config, str) else config
    if not isinstance(values, Mapping) or CONFIG_KEY not in values:
        raise UsageError(
            f"The Trainer's custom_config is {config!r}, expected a dict with {CONFIG_KEY!r}.",
            "Pass {'darkroom': TrainingOptions(...).to_dict()}.",
        )
    return values
