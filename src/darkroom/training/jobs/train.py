"""`darkroom.train`: the command `darkroom train`, as a function."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from darkroom import storage
from darkroom.evaluation.scores.serving import check_backend, load_tensorflow
from darkroom.options.fields import list_options
from darkroom.options.training import TrainingFields, TrainingOptions
from darkroom.runtime import progress
from darkroom.runtime.process import report_interrupts
from darkroom.training.job import TrainingResult, train_datasets
from darkroom.training.networks.weights import check_weights

Paths = str | os.PathLike[str]
_Function = TypeVar("_Function", bound=Callable[..., Any])

_OPTIONS_MARK = "**options: "


def _show_options(function: _Function) -> _Function:
    """Puts the options of a training into a function's signature and docstring; a decorator."""
    fields = list_options(TrainingFields)
    shown = inspect.signature(function)
    fixed = [each for each in shown.parameters.values() if each.kind is not each.VAR_KEYWORD]
    named = [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type
        )
        for each in fields
    ]
    function.__signature__ = shown.replace(parameters=[*fixed, *named])  # type: ignore[attr-defined]
    lines = (f"{each.name}: {each.option.help} {each.option.more}".rstrip() for each in fields)
    # Without the indent of the source, which Python 3.13 takes out of docstrings itself.
    before, _, after = inspect.cleandoc(f"{function.__doc__}").partition(_OPTIONS_MARK)
    rest = after.partition("\n")[2]
    function.__doc__ = before + "\n    ".join(lines) + "\n" + rest
    return function


@storage.report_failures
@report_interrupts("The training was interrupted; call it again: it goes on after its checkpoint.")
@progress.shown
@_show_options
def train(
    records: Paths | Sequence[Paths],
    checkpoint_dir: Paths,
    *,
    eval_records: Paths | Sequence[Paths] = (),
    tune: int = 0,
    **options: Any,
) -> TrainingResult | None:
    """Trains a model, exports it, and says how good it is; a training that was stopped goes on.

    Args:
        records: A dataset, a pattern of datasets, several of them, or one list or folder of images.
            The train split and the eval split are used; the test split is scored at the end.
        checkpoint_dir: Folder for checkpoints, history, the model and its page; made if it does not
            exist.
        eval_records: The same as `records`, to use its eval split instead; () for that of
            `records`.
        tune: Number of trainings in which better options are searched for first, with KerasTuner; 0
            for none. Each shows one line, and then the model is trained with the best options.
        **options: The options of `darkroom train`.

    Returns:
        The epoch that the model is from, its metrics, and how good it is on the test split; None in
        a process that is not the chief of several.

    Raises:
        DataError: There is no dataset, label maps differ, or a split has no records.
        OutputError: Another process trains in `checkpoint_dir`, or it has files that darkroom did
            not write, or a training on other data.
        UsageError: An option is wrong, or does not fit the training in `checkpoint_dir`.
        MissingExtraError: TensorFlow is not installed.
        OSError: Something cannot be read or written.
    """
    made = make_options(options)
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
    """Returns the options of a training by name, after what can be checked without TensorFlow.

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
