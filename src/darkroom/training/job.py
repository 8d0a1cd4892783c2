"""`darkroom train`: from datasets or images to a SavedModel, in one folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from darkroom import storage
from darkroom.dataset.commit import read_output
from darkroom.dataset.splits import EVAL, TEST, TRAIN
from darkroom.errors import DataError
from darkroom.evaluation.facts import Facts, describe_code
from darkroom.evaluation.report.write import PAGE_FILE, REPORT_FILES
from darkroom.evaluation.result import Evaluation, format_evaluation
from darkroom.evaluation.serving import MODEL_FOLDER
from darkroom.input.data_paths import (
    NamedSplit,
    check_one_kind,
    list_roots,
    name_datasets,
    name_images,
)
from darkroom.options.training import TrainingOptions
from darkroom.profiling.verdict import VERDICT_JSON, VERDICT_MARKDOWN
from darkroom.runtime import progress
from darkroom.storage.locks import FolderLock
from darkroom.training.cluster import read_cluster
from darkroom.training.folder import KERAS_FILE, RESULT_FILE, claim_folder, delete_model
from darkroom.training.history import HISTORY_FILE, format_best_epoch
from darkroom.training.recipe.hints import format_hints

if TYPE_CHECKING:
    from darkroom.input.source import ImageSource


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training.

    Attributes:
        epochs: Number of epochs done.
        best_epoch: The epoch, from 1, that the model's weights are from.
        metrics: Losses and metrics of that epoch, by Keras's names.
        checkpoint_dir: The folder of checkpoints, history and TensorBoard's files.
        model_dir: The folder of the SavedModel.
        verdict: Whether input slowed down the training, and which part of it; None if nothing was
            left to train, or the head alone was trained.
        already_complete: Whether an earlier run had done everything.
        evaluation: How good the exported model is on the test split, or without one on the eval
            split; None if an earlier version trained it.
        hints: What would make the model better, a sentence each.
    """

    epochs: int
    best_epoch: int
    metrics: dict[str, float]
    checkpoint_dir: str
    model_dir: str
    verdict: str | None = None
    already_complete: bool = False
    evaluation: Evaluation | None = None
    hints: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the result as values that JSON knows."""
        found = self.evaluation.to_dict() if self.evaluation else None
        return {**asdict(self), "evaluation": found}


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
        options: What is trained and how.
        checkpoint_dir: The folder for checkpoints, history, TensorBoard's files and the SavedModel,
            `model`.
        eval_data: The same, to use its eval splits instead.

    Returns:
        The result; None in a process that is not the chief.

    Raises:
        DataError: No folder matches, one is not a dataset, label maps differ, or a split has no
            records.
        OutputError: Another process trains in `checkpoint_dir`, or it has files that darkroom did
            not write, or a training on other data.
        UsageError: An option is wrong, or does not fit the training in `checkpoint_dir`.
        StorageError: Something cannot be read or written, or another worker is gone.
    """
    folder = storage.absolute(checkpoint_dir)
    found = _find_data(data, eval_data)
    # Everything that decides what the model is.
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
    epoch = format_best_epoch(result.best_epoch, result.epochs)
    found = f"{format_evaluation(result.evaluation)}\n" if result.evaluation else ""
    return (
        f"{head}Epoch      {epoch}\nMetrics    {metrics}\n{found}{verdict}"
        f"History    {result.checkpoint_dir}\nModel      {result.model_dir}"
        f"{format_hints(result.hints)}"
    )


class _Data(NamedTuple):
    """The data of a training, which is opened when the training starts.

    Attributes:
        identity: Values for JSON that change with the images and their labels.
        open: Returns the images of the train split, those of the eval split, and the label map. Its
            argument says whether to read all files first and check their SHA-256.
        splits: The splits by name: train, eval, and test if there is one.
    """

    identity: Sequence[object]
    open: Callable[[bool], tuple[ImageSource, ImageSource, Sequence[str]]]
    splits: Mapping[str, NamedSplit]


def _train_and_export(
    data: _Data, options: TrainingOptions, folder: str, *, export: bool
) -> TrainingResult:
    from darkroom.training.export import export_model
    from darkroom.training.formats.keras_file import write_keras_file
    from darkroom.training.placement import make_placement
    from darkroom.training.run import train

    model_dir = storage.join(folder, MODEL_FOLDER)
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
    if export:
        # What is said of the earlier model is not true of the next one.
        for name in (RESULT_FILE, *REPORT_FILES):
            storage.delete_file(storage.join(folder, name))
        write_keras_file(trained.model, storage.join(folder, KERAS_FILE))
        delete_model(folder)
        with progress.step("Export"):
            export_model(
                trained.model, labels, options.image_size, model_dir, resize=options.resize
            )
    entry = trained.history[trained.best_epoch - 1]
    metrics = {name: value for name, value in entry.items() if name != "epoch"}
    verdict = trained.verdict.sentence if trained.verdict else None
    epochs, best, hints = len(trained.history), trained.best_epoch, trained.hints
    return TrainingResult(epochs, best, metrics, folder, model_dir, verdict, hints=hints)


def _evaluate(data: _Data, options: TrainingOptions, result: TrainingResult) -> Evaluation:
    """Scores the test split once, with the exported model; without one, the eval split."""
    from darkroom.evaluation.evaluate import evaluate_training

    folder = result.checkpoint_dir
    # There is none where the features of a frozen base were read from memory.
    verdict = storage.join(folder, VERDICT_JSON)
    facts = Facts(
        recipe=options.to_dict(),
        history=json.loads(storage.read_bytes(storage.join(folder, HISTORY_FILE))),
        best_epoch=result.best_epoch,
        input=json.loads(storage.read_bytes(verdict)) if storage.exists(verdict) else {},
        data={name: split.data for name, split in data.splits.items()},
        code=describe_code(options.model),
    )
    try:
        split = data.splits.get(TEST, data.splits[EVAL])
        return evaluate_training(result.model_dir, split, facts, folder)
    except DataError as error:
        raise DataError(
            f"The model is trained and exported, but it cannot be scored: {error.message}",
            error.hint,
        ) from error


def _find_data(data: Sequence[str], eval_data: Sequence[str]) -> _Data:
    if check_one_kind(data, eval_data):
        return _find_images(data[0], eval_data[0] if eval_data else None)
    return _find_datasets(data, eval_data or data)


def _find_images(path: str, eval_path: str | None) -> _Data:
    from darkroom.input.files import open_images
    from darkroom.options.manifest import ManifestOptions

    labels, splits = open_images(path)
    eval_splits = splits
    if eval_path is not None:
        eval_splits = open_images(eval_path, ManifestOptions(labels=labels)).splits
    for name, found, place in ((TRAIN, splits, path), (EVAL, eval_splits, eval_path or path)):
        if name not in found:
            raise DataError(
                f"There is no image of the {name} split in {place}.",
                "Name the split in the source.",
            )
    training, evaluation = splits["train"], eval_splits["eval"]
    named = {
        TRAIN: name_images(path, training, labels, TRAIN),
        EVAL: name_images(eval_path or path, evaluation, labels, EVAL),
    }
    if TEST in splits:
        named[TEST] = name_images(path, splits[TEST], labels, TEST)
    identity = [training.identify(), evaluation.identify()]
    return _Data(identity, lambda _: (training, evaluation, labels), named)


def _find_datasets(data: Sequence[str], eval_data: Sequence[str]) -> _Data:
    roots = {"train": list_roots(data), "eval": list_roots(eval_data)}
    # A dataset of both splits is read once.
    opened = {root: read_output(root) for root in dict.fromkeys(chain(*roots.values()))}
    commits = dict(opened.values())
    parts = {split: dict(opened[root] for root in found) for split, found in roots.items()}
    for split, part in parts.items():
        if not any(split in each.splits and each.splits[split].records for each in part.values()):
            raise DataError(
                f"There is no record of the {split} split in {', '.join(part)}.",
                "Name the split in the source, or use convert --split-ratios.",
            )

    def open_data(verify: bool) -> tuple[ImageSource, ImageSource, Sequence[str]]:
        from darkroom.input.commits import read_shared_labels
        from darkroom.input.records import open_splits

        labels = read_shared_labels(commits)
        opened = {split: open_splits(part, verify, (split,)) for split, part in parts.items()}
        return opened["train"]["train"], opened["eval"]["eval"], labels

    identity = [[dataset.fingerprint for dataset in part.values()] for part in parts.values()]
    named = {split: name_datasets(part, split) for split, part in parts.items()}
    if (test := name_datasets(parts[TRAIN], TEST)).data:
        named[TEST] = test
    return _Data(identity, open_data, named)


def _read_result(folder: str, plan: dict[str, Any]) -> TrainingResult | None:
    """Returns the result of an earlier run with the same plan; None if there is none.

    A result without its model does not count: the model is then exported again from the checkpoint.
    """
    path = storage.join(folder, RESULT_FILE)
    model = storage.join(folder, MODEL_FOLDER, "saved_model.pb")
    if not (storage.exists(path) and storage.exists(model)):
        return None
    try:
        saved = json.loads(storage.read_bytes(path))
        if saved["plan"] != plan:
            return None
        values = {**saved["result"], "already_complete": True}
        # The folder may have been moved.
        values.update(checkpoint_dir=folder, model_dir=storage.join(folder, MODEL_FOLDER))
        if found := values.get("evaluation"):
            found |= {
                "model_dir": values["model_dir"],
                "report_path": storage.join(folder, PAGE_FILE),
            }
            values["evaluation"] = Evaluation.from_dict(found)
        return TrainingResult(**values)
    except (ValueError, KeyError, TypeError):
        # Not a file that we wrote. The checkpoints say how far the training is.
        return None
