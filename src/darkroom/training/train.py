"""`darkroom.train`, and the command of that name: from images to a SavedModel, in one folder."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from darkroom import storage
from darkroom.data.open import OpenedData
from darkroom.dataset.splits import EVAL, TEST, TRAIN
from darkroom.errors import DataError
from darkroom.evaluation.report.result import Evaluation
from darkroom.evaluation.report.write import EVALUATION_FILES
from darkroom.evaluation.scores.serving import MODEL_FOLDER
from darkroom.options.checks import as_size
from darkroom.options.fields import merge_options
from darkroom.options.input import choose_augmentation
from darkroom.options.training import TrainingOptions
from darkroom.runtime import progress, streams
from darkroom.runtime.process import report_interrupts
from darkroom.storage.locks import FolderLock
from darkroom.training.devices.environment import check_backend, read_cluster
from darkroom.training.networks.weights import check_weights
from darkroom.training.recipe.hints import name_other_folder
from darkroom.training.result import TrainingResult, read_result, write_result
from darkroom.training.sources import open_training_data
from darkroom.training.state.facts import collect_facts
from darkroom.training.state.folder import (
    KERAS_FILE,
    RESULT_FILE,
    check_checkpoint_place,
    claim_folder,
    delete_model,
)
from darkroom.training.state.history import PHASE

if TYPE_CHECKING:
    from darkroom.training.run import TrainedModel


@storage.report_failures
@report_interrupts("The training was interrupted; call it again: it resumes from its checkpoint.")
@progress.shown
def train(
    records: storage.UserPath | Sequence[storage.UserPath],
    checkpoint_dir: storage.UserPath,
    *,
    model: str | None = None,
    image_size: tuple[int, int] | int | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    augment: str | None = None,
    eval_records: storage.UserPath | Sequence[storage.UserPath] = (),
    options: TrainingOptions | None = None,
) -> TrainingResult | None:
    """Trains a model, exports it and evaluates it; a training that was stopped resumes.

    Args:
        records: A dataset, a pattern of datasets, several of them, or one list or folder of images.
            The train split and the eval split are used; the test split is scored at the end.
        checkpoint_dir: Folder for checkpoints, history, the model and its page; made if it does not
            exist.
        model: Model to train: small_cnn, efficientnet-lite0, keras.applications:NAME, or
            package.module:function. small_cnn if None.
        image_size: Height and width of the images that the model gets, in pixels. One number is
            for both. None: 64x64; 224x224 with weights of ImageNet.
        epochs: Passes over the training data. 30 if None.
        batch_size: Images per batch. 16 if None.
        learning_rate: Highest learning rate of the AdamW optimizer. 0.003 if None.
        augment: Random augmentation of training images: none, or parts such as crop,flip,color=0.4.
            `darkroom.options.augmentation.parse_augmentation` describes the parts, and has the
            default.
        eval_records: The same as `records`, to use its eval split instead; () for that of
            `records`.
        options: All other options of `darkroom train`. The arguments above replace its values.

    Returns:
        The epoch that the model is from, its metrics, and how good it is on the test split; None in
        a process that is not the chief of several.

    Raises:
        DataError: There is no dataset, label maps differ, or a split has no records.
        OutputError: Another process trains in `checkpoint_dir`, or it has files that darkroom did
            not write, or a training on different data.
        UsageError: An option is wrong, or does not fit the training in `checkpoint_dir`.
        MissingExtraError: TensorFlow is not installed.
        OSError: Something cannot be read or written.
    """
    check_backend()
    given = {
        "model": model,
        "image_size": as_size(image_size),
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "augment": augment,
    }
    made = merge_options(TrainingOptions, options, given)
    check_weights(made.weights, made.model)
    data, eval_data = _list_paths(records), _list_paths(eval_records)
    return train_datasets(data, made, os.fspath(checkpoint_dir), eval_data)


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
    check_checkpoint_place(folder)
    found = open_training_data(data, eval_data)
    with streams.quiet_tensorflow():
        import tensorflow  # noqa: F401  before anything is written
    options = choose_augmentation(options, found.splits[TRAIN].target.kind)
    # Everything that decides the model.
    plan = {"options": options.to_dict(), "data": found.identity}
    is_chief = read_cluster().is_chief
    if done := read_result(folder, plan):
        return done if is_chief else None
    if not is_chief:
        _train_model(found, options, folder)
        return None
    storage.make_folder(folder)
    with FolderLock(folder):
        claim_folder(folder)
        trained = _train_model(found, options, folder)
        _export(trained, options, folder)
        evaluation = _evaluate(found, options, folder, trained.exported.epoch)
        exported = trained.exported
        entry = trained.history[exported.epoch - 1]
        result = TrainingResult(
            exported.epochs,
            exported.best,
            exported.epoch,
            {name: value for name, value in entry.items() if name not in ("epoch", PHASE)},
            folder,
            storage.join(folder, MODEL_FOLDER),
            evaluation,
            trained.verdict.sentence if trained.verdict else None,
            hints=[name_other_folder(hint) for hint in trained.hints],
        )
        write_result(folder, plan, result)
    return result


def make_options(values: Mapping[str, Any]) -> TrainingOptions:
    """Returns the options of a training by name, after the checks that need no TensorFlow.

    Raises:
        UsageError: A name is unknown, a value is wrong, or Keras has another backend.
    """
    check_backend()
    options = TrainingOptions.from_dict({"image_size": None, **values})
    check_weights(options.weights, options.model)
    return options


def _list_paths(given: storage.UserPath | Sequence[storage.UserPath]) -> list[str]:
    paths = [given] if isinstance(given, str | os.PathLike) else given
    return [os.fspath(each) for each in paths]


def _train_model(data: OpenedData, options: TrainingOptions, folder: str) -> TrainedModel:
    """Trains in a folder. Nothing is exported."""
    from darkroom.training import run

    with progress.step("Training"):
        return run.train_splits(data.splits, options, folder)


def _export(trained: TrainedModel, options: TrainingOptions, folder: str) -> None:
    """Writes the model, as a file of Keras and as a SavedModel.

    The result of an earlier run goes first: without it, a run that stops here is not done.
    """
    from darkroom.training.export import export_model
    from darkroom.training.formats.keras_file import write_keras_file

    # The files about the earlier model are not true of the next one.
    for name in (RESULT_FILE, *EVALUATION_FILES):
        storage.delete_file(storage.join(folder, name))
    write_keras_file(trained.model, storage.join(folder, KERAS_FILE))
    delete_model(folder)
    model_dir = storage.join(folder, MODEL_FOLDER)
    with progress.step("Export"):
        size, resize = options.image_size, options.resize
        export_model(trained.model, trained.learned, size, model_dir, resize=resize)


def _evaluate(data: OpenedData, options: TrainingOptions, folder: str, epoch: int) -> Evaluation:
    """Scores the test split, or the eval split if there is none, with the exported model, once."""
    from darkroom.evaluation.evaluate import evaluate_training

    model_dir, named = storage.join(folder, MODEL_FOLDER), data.splits
    found = {name: split.data for name, split in named.items()}
    facts = collect_facts(folder, options, epoch, found)
    try:
        return evaluate_training(model_dir, named.get(TEST, named[EVAL]), facts, folder)
    except DataError as error:
        raise DataError(
            f"The model is trained and exported, but it cannot be scored: {error.message}",
            error.hint,
        ) from error
