"""Says where a loss stopped being a number, and what to try."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from darkroom.errors import DataError
from darkroom.options.training import TrainingOptions
from darkroom.training.devices.loops import DivergedError

_NAMED = 3


@contextmanager
def explain_divergence(data: Any, epoch: int, options: TrainingOptions) -> Iterator[None]:
    """Names the images of the batch, if the loss is not a finite number.

    Args:
        data: The batches of the training, which know the names of their images.
        epoch: Number of the epoch, from 0.
        options: The options of the training.

    Raises:
        DataError: The loss is not a finite number.
    """
    try:
        yield
    except DivergedError as error:
        names = data.name_images(epoch, error.batches)
        raise _build_error(error, epoch + 1, names, options) from None


def _build_error(
    error: DivergedError, epoch: int, names: list[str], options: TrainingOptions
) -> DataError:
    batches = error.batches
    place = (
        f"batch {batches.stop}"
        if len(batches) == 1
        else (f"one of the batches {batches.start + 1} to {batches.stop}")
    )
    advice = [f"Use a lower --learning-rate than {options.learning_rate:g}"]
    if options.precision != "float32":
        advice.append("or --precision float32")
    advice.append("or look at these images")
    return DataError(
        f"The loss is {error.loss:g} in {place} of epoch {epoch}{_list_names(names)}.",
        f"{', '.join(advice)}. Training again in this folder resumes before these batches.",
    )


def _list_names(names: list[str]) -> str:
    known = [name for name in names if name]
    if not known:
        return ""
    more = f" and {len(known) - _NAMED:,} more" if len(known) > _NAMED else ""
    return f", whose images are {', '.join(known[:_NAMED])}{more}"
