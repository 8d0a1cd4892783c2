"""`darkroom train`: from datasets or images to a SavedModel, in one folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from darkroom import storage
from darkroom.dataset.splits import EVAL, TEST
from darkroom.errors import DataError
from darkroom.evaluation.report.result import Evaluation, format_evaluation
from darkroom.evaluation.report.write import PAGE_FILE, REPORT_FILES
from darkroom.evaluation.scores.serving import MODEL_FOLDER
from darkroom.options.training import TrainingOptions
from darkroom.profiling.verdict import VERDICT_MARKDOWN
from darkroom.runtime import cards, progress
from darkroom.runtime.json_values import build_value, parse_json
from darkroom.storage.locks import FolderLock
from darkroom.training.cluster import read_cluster
from darkroom.training.course.sources import TrainingData, find_data
from darkroom.training.folder import (
    KERAS_FILE,
    RESULT_FILE,
    check_place,
    claim_folder,
    delete_model,
)
from darkroom.training.history import PHASE, Exported, format_exported
from darkroom.training.jobs.facts import collect_facts
from darkroom.training.recipe.hints import format_for_python, format_hints, name_other_folder

if TYPE_CHECKING:
    from darkroom.training.run import TrainedModel

_MAX_BYTES = 1 << 28


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training.

    Attributes:
        epochs: Number of epochs done.
        best_epoch: The epoch, from 1, with the lowest loss on the eval split.
        metrics: Losses and metrics of the exported epoch, by Keras's names.
        checkpoint_dir: The folder of checkpoints, history and TensorBoard's files.
        model_dir: The folder of the SavedModel.
        verdict: Whether input slowed down the training, and which part of it; None if nothing was
            left to train, or the head alone was trained.
        already_complete: Whether an earlier run had done everything.
        evaluation: How good the exported model is on the test split, or without one on the eval
            split; None until it is scored.
        exported_epoch: The epoch that the model's weights are from; `best_epoch` if None.
        hints: Hints how to improve the model, a sentence each.
    """

    epochs: int
    best_epoch: int
    metrics: dict[str, float]
    checkpoint_dir: str
    model_dir: str
    verdict: str | None = None
    already_complete: bool = False
    evaluation: Evaluation | None = None
    exported_epoch: int | None = None
    hints: Sequence[str] = ()

    @property
    def exported(self) -> Exported:
        """Which epoch the model's weights are from."""
        return Exported(self.exported_epoch or self.best_epoch, self.epochs, self.best_epoch)

    def to_dict(self) -> dict[str, Any]:
        """Returns the result as values that JSON knows."""
        found = self.evaluation.to_dict() if self.evaluation else None
        return {**asdict(self), "evaluation": found}

    def __repr__(self) -> str:
        return (
            f"TrainingResult(model_dir={self.model_dir!r}, best_epoch={self.best_epoch}, "
            f"epochs={self.epochs}, evaluation={self.evaluation!r})"
        )

    def _repr_html_(self) -> str:
        """Returns the epoch of the model and how good it is, as a notebook shows them."""
        card = cards.make_card(
            f"Epoch {format_exported(self.exported)}",
            self.to_dict() | {"evaluation": None, "hints": None},
            "Already complete: nothing was done." if self.already_complete else None,
            *(f"Next: {format_for_python(hint)}." for hint in self.hints),
        )
        return card + (self.evaluation._repr_html_() if self.evaluation else "")


@dataclass(frozen=True)
class _Saved:
    """The content of `training.json`."""

    plan: Mapping[str, Any]
    result: Mapping[str, Any]


def train_datasets(
    data: Sequence[str],
    options: TrainingOptions,
    checkpoint_dir: str,
    eval_data: Sequence[str] = (),
) -> TrainingResult | None:
    """Trains on datasets or images and exports the model. It resumes where an earlier run stopped.

    Args:
        data: Folders that `darkroom convert` wrote, or patterns of such folders; or one list or
            folder of images, as `darkroom convert` takes it. The train and eval splits are used.
            All datasets must have the same label map.
        options: The options of the training.
        checkpoint_dir: The folder for checkpoints, history, TensorBoard's files and the SavedModel,
            `model`.
        eval_data: The same, to use its eval splits instead.

    Returns:
        The result; None in a process that is not the chief.

    Raises:
        DataError: No folder matches, one is not a dataset, label maps differ, or a split has no
            records.
        OutputError: Another process trains in `checkpoint_dir`, or it has files that darkroom did
            not write, or a training on different data.
        UsageError: An option is wrong, or does not fit the training in `checkpoint_dir`.
        StorageError: Something cannot be read or written, or another worker is gone.
    """
    folder = storage.absolute(checkpoint_dir)
    check_place(folder)
    return train_found(find_data(data, eval_data), options, folder)


def train_found(
    found: TrainingData, options: TrainingOptions, folder: str
) -> TrainingResult | None:
    """Trains on data that was found, as `train_datasets` does, in a folder with an absolute path.

    Raises:
        DarkroomError: As `train_datasets`.
    """
    # Everything that decides the model.
    plan = {"options": options.to_dict(), "data": found.identity}
    if done := _read_result(folder, plan):
        return done if read_cluster().is_chief else None
    if not read_cluster().is_chief:
        _train_and_export(found, options, folder, export=False)
        return None
    storage.make_folder(folder)
    with FolderLock(folder):
        claim_folder(folder)
        result = _train_and_export(found, options, folder, export=True)
        result = replace(result, evaluation=_evaluate(found, options, result))
        text = json.dumps({"plan": plan, "result": result.to_dict()}, indent=1) + "\n"
        storage.write_bytes(storage.join(folder, RESULT_FILE), text.encode())
    return result


def format_training(result: TrainingResult) -> str:
    """Returns the result as lines for a person."""
    metrics = ", ".join(f"{name} {value:.4f}" for name, value in result.metrics.items())
    head = "Already complete: nothing was done.\n" if result.already_complete else ""
    stages = storage.join(result.checkpoint_dir, VERDICT_MARKDOWN)
    verdict = f"Input      {result.verdict}\n           {stages}\n" if result.verdict else ""
    epoch = format_exported(result.exported)
    found = f"{format_evaluation(result.evaluation)}\n" if result.evaluation else ""
    return (
        f"{head}Epoch      {epoch}\nMetrics    {metrics}\n{found}{verdict}"
        f"History    {result.checkpoint_dir}\nModel      {result.model_dir}"
        f"{format_hints(result.hints)}"
    )


def train_model(
    data: TrainingData, options: TrainingOptions, folder: str
) -> tuple[TrainedModel, Sequence[str]]:
    """Trains in a folder, and returns the result and the label map. Nothing is exported.

    Raises:
        DarkroomError: As `darkroom.training.run.train`.
    """
    from darkroom.training.placement import make_placement
    from darkroom.training.run import train

    with progress.step("Training"):
        # This comes first: TensorFlow must know the other workers before it reads a record.
        placement = make_placement(options.strategy)
        training, evaluation, labels = data.open(options.verify)
        trained = train(
            options,
            placement,
            training=training,
            evaluation=evaluation,
            num_classes=len(labels),
            run_dir=folder,
            labels=labels,
        )
    return trained, labels


def _train_and_export(
    data: TrainingData, options: TrainingOptions, folder: str, *, export: bool
) -> TrainingResult:
    from darkroom.training.export import export_model
    from darkroom.training.formats.keras_file import write_keras_file

    model_dir = storage.join(folder, MODEL_FOLDER)
    trained, labels = train_model(data, options, folder)
    if export:
        # The files about the earlier model are not true of the next one.
        for name in (RESULT_FILE, *REPORT_FILES):
            storage.delete_file(storage.join(folder, name))
        write_keras_file(trained.model, storage.join(folder, KERAS_FILE))
        delete_model(folder)
        with progress.step("Export"):
            export_model(
                trained.model, labels, options.image_size, model_dir, resize=options.resize
            )
    exported = trained.exported
    entry = trained.history[exported.epoch - 1]
    return TrainingResult(
        exported.epochs,
        exported.best,
        {name: value for name, value in entry.items() if name not in ("epoch", PHASE)},
        folder,
        model_dir,
        trained.verdict.sentence if trained.verdict else None,
        exported_epoch=exported.epoch,
        hints=[name_other_folder(hint) for hint in trained.hints],
    )


def _evaluate(data: TrainingData, options: TrainingOptions, result: TrainingResult) -> Evaluation:
    """Scores the test split once, with the exported model; without one, the eval split."""
    from darkroom.evaluation.evaluate import evaluate_training

    folder, named = result.checkpoint_dir, data.splits
    found = {name: split.data for name, split in named.items()}
    facts = collect_facts(folder, options, result.exported.epoch, found)
    try:
        return evaluate_training(result.model_dir, named.get(TEST, named[EVAL]), facts, folder)
    except DataError as error:
        raise DataError(
            f"The model is trained and exported, but it cannot be scored: {error.message}",
            error.hint,
        ) from error


def _read_result(folder: str, plan: dict[str, Any]) -> TrainingResult | None:
    """Returns the result of an earlier run with the same plan; None if none finished.

    A result without its model does not count: the model is then exported again from the checkpoint.
    """
    path = storage.join(folder, RESULT_FILE)
    model = storage.join(folder, MODEL_FOLDER, "saved_model.pb")
    if not (storage.exists(path) and storage.exists(model)):
        return None
    try:
        saved = parse_json(storage.read_bytes(path, _MAX_BYTES), _Saved)
        if saved.plan != plan:
            return None
        result = build_value({**saved.result, "evaluation": None}, TrainingResult)
        found = saved.result.get("evaluation")
        evaluation = None if found is None else Evaluation.from_dict(found)
    except (*storage.UNUSABLE, ValueError):
        # Not a file that we wrote. The checkpoints say how far the training is.
        return None
    # The folder may have been moved.
    model_dir, page = storage.join(folder, MODEL_FOLDER), storage.join(folder, PAGE_FILE)
    if evaluation:
        evaluation = replace(evaluation, model_dir=model_dir, report_path=page)
    return replace(
        result,
        checkpoint_dir=folder,
        model_dir=model_dir,
        already_complete=True,
        evaluation=evaluation,
    )
