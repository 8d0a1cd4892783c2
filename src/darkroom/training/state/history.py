"""The history of a training, epoch by epoch, and which epoch is the best; without TensorFlow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from darkroom import storage
from darkroom.errors import DataError
from darkroom.evaluation.report.facts import HistoryEntry
from darkroom.runtime.json_values import format_json

# One entry an epoch: `epoch` from 1, Keras's losses and metrics by name, and `phase` where a base
# was frozen.
History = list[dict[str, Any]]

PHASE = "phase"
# Its values, in their order. A training of the whole model has one phase, whose name is empty.
WHOLE_PHASE, HEAD_PHASE, TOP_PHASE, ALL_PHASE = "", "head", "top", "all"

HISTORY_FILE = "history.json"
BEST_FOLDER = "best"
# Of the event files that Keras's own callback would write.
TENSORBOARD_FOLDER = "tensorboard"
# In that folder: the entry of the epoch whose weights are beside it.
_BEST_EPOCH_FILE = "epoch.json"
# A value of it: the epoch of the exported model, where that is not the best.
_EXPORTED = "exported"
# The best epoch has the lowest value of this, and early stopping waits for a lower one.
MONITOR = "val_loss"
_Kind = TypeVar("_Kind")
_SHOWN_FIRST = ("loss", "accuracy", "val_loss", "val_accuracy")


def find_best_epoch(history: Sequence[Mapping[str, Any]]) -> int:
    """Returns the epoch, from 1, with the lowest loss on the eval split.

    If two epochs have the same loss, the first one is the best. A loss that is not a finite number
    is never the best.

    Returns:
        The epoch; 0 if no epoch has a finite loss.
    """
    values = [entry.get(MONITOR, math.inf) for entry in history]
    losses = [each if math.isfinite(each) else math.inf for each in values]
    best = min(losses, default=math.inf)
    return losses.index(best) + 1 if best < math.inf else 0


class Exported(NamedTuple):
    """Which epoch a model is from.

    Attributes:
        epoch: The epoch, from 1.
        epochs: Number of epochs that were trained.
        best: The epoch with the lowest loss on the eval split.
    """

    epoch: int
    epochs: int
    best: int


def format_exported(found: Exported) -> str:
    """Returns which epoch a model is from, for example "6 of 7 (lowest val_loss)"."""
    reason = f"lowest {MONITOR}"
    if found.epoch != found.best:
        reason = f"the last; {found.best} has the {reason}"
    return f"{found.epoch} of {found.epochs} ({reason})"


def format_epoch(
    entry: Mapping[str, float], rate: float, images_per_second: float, waiting_share: float
) -> str:
    """Returns the values of an epoch at its end, as one line.

    Args:
        entry: The losses and metrics of the epoch, by Keras's names.
        rate: The learning rate at its end.
        images_per_second: Images that were trained on per second; 0 if that was not measured.
        waiting_share: Share of that time in which the training waited for input, 0 to 1.
    """
    known = [name for name in _SHOWN_FIRST if name in entry]
    names = [*known, *(name for name in entry if name not in (*known, "epoch", PHASE))]
    parts = [f"{name} {entry[name]:.4f}" for name in names]
    parts.append(f"rate {rate:.3g}")
    if images_per_second:
        parts += [f"{images_per_second:,.0f} images/s", f"{waiting_share:.0%} waiting for input"]
    return ", ".join(parts)


def write_history(folder: str, history: History) -> None:
    """Writes `history.json` into a folder."""
    storage.write_bytes(storage.join(folder, HISTORY_FILE), format_json(history))


def read_history(folder: str) -> Sequence[HistoryEntry]:
    """Returns the history in a folder; nothing if it does not exist.

    Raises:
        DataError: It is damaged.
    """
    path = storage.join(folder, HISTORY_FILE)
    if not storage.exists(path):
        return ()
    return _read_json(path, tuple[HistoryEntry, ...])


def write_best_epoch(folder: str, history: History, exported: int | None = None) -> None:
    """Writes the best epoch's entry into the folder `best` of a folder. `best` must exist.

    Args:
        folder: The folder with the history.
        history: The history.
        exported: The epoch whose weights are exported, if that is another one.
    """
    entry = history[find_best_epoch(history) - 1]
    if exported not in (None, entry["epoch"]):
        entry = {**entry, _EXPORTED: exported}
    storage.write_bytes(storage.join(folder, BEST_FOLDER, _BEST_EPOCH_FILE), format_json(entry))


def read_exported(folder: str) -> Exported | None:
    """Returns which epoch the model of a finished training is from.

    Args:
        folder: The folder with the history of the training.

    Returns:
        The epoch; None if the training did not write it, as a `run_fn` of the user.

    Raises:
        DataError: A file is damaged.
        OSError: A file cannot be read.
    """
    path = storage.join(folder, BEST_FOLDER, _BEST_EPOCH_FILE)
    if not storage.exists(path):
        return None
    entry = _read_json(path, HistoryEntry)
    best = int(entry["epoch"])
    return Exported(int(entry.get(_EXPORTED, best)), len(read_history(folder)), best)


def _read_json(path: str, kind: type[_Kind]) -> _Kind:
    try:
        return storage.read_json(path, kind)
    except ValueError as error:
        raise DataError(f"{path} is damaged: {error!r}.", "Train again.") from error
