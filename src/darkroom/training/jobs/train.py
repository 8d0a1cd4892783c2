"""`darkroom.train`: the command `darkroom train`, as a function."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from darkroom import storage
from darkroom.evaluation.scores.serving import check_backend, load_tensorflow
from darkroom.options.fields import merge_options
from darkroom.options.training import TrainingOptions
from darkroom.runtime import progress
from darkroom.runtime.process import report_interrupts
from darkroom.training.job import TrainingResult, train_datasets
from darkroom.training.networks.weights import check_weights

Paths = str | os.PathLike[str]


@storage.report_failures
@report_interrupts("The training was interrupted; call it again: it resumes from its checkpoint.")
@progress.shown
def train(
    records: Paths | Sequence[Paths],
    checkpoint_dir: Paths,
    *,
    model: str | None = None,
    image_size: tuple[int, int] | int | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    augment: str | None = None,
    eval_records: Paths | Sequence[Paths] = (),
    tune: int = 0,
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
        tune: Number of trainings in which better options are searched for first, with KerasTuner; 0
            for none. Each shows one line, and then the model is trained with the best options.
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
        "image_size": (image_size, image_size) if isinstance(image_size, int) else image_size,
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "augment": augment,
    }
    made = merge_options(TrainingOptions, options, given)
    check_weights(made.weights, made.model)
    load_tensorflow()
    data, eval_data = _list_paths(records), _list_paths(eval_records)
    return start_training(data, made, os.fspath(checkpoint_dir), eval_data, tune=tune)


def start_training(
    data: Sequence[str],
    options: TrainingOptions,
    checkpoint_dir: str,
    eval_data: Sequence[str],
    *,
    tune: int,
) -> TrainingResult | None:
    """Trains as `train_datasets` does, after a search for better options if `tune` is not 0.

    Raises:
        DarkroomError: As `train_datasets` and `tune_datasets`.
    """
    if not tune:
        return train_datasets(data, options, checkpoint_dir, eval_data)
    from darkroom.training.tuning.job import tune_datasets

    return tune_datasets(data, options, checkpoint_dir, eval_data, tune=tune)


def make_options(values: Mapping[str, Any]) -> TrainingOptions:
    """Returns the options of a training by name, after the checks that need no TensorFlow.

    Raises:
        UsageError: A name is unknown, a value is wrong, or Keras has another backend.
    """
    check_backend()
    options = TrainingOptions.from_dict({"image_size": None, **values})
    check_weights(options.weights, options.model)
    return options


def _list_paths(given: Paths | Sequence[Paths]) -> list[str]:
    paths = [given] if isinstance(given, str | os.PathLike) else given
    return [os.fspath(each) for each in paths]
