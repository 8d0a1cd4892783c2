"""The history of a training, epoch by epoch, and which epoch is the best; without TensorFlow."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from darkroom import storage
from darkroom.errors import DataError

# One entry an epoch: `epoch` from 1, and Keras's losses and metrics by name.
History = list[dict[str, float]]

HISTORY_FILE = "history.json"
BEST_FOLDER = "best"
# In that folder: the entry of the epoch whose weights are beside it.
_BEST_EPOCH_FILE = "epoch.json"
# The best epoch has the lowest value of this, and early stopping waits for a lower one.
MONITOR = "val_loss"
_SHOWN_FIRST = ("loss", "accuracy", "val_loss", "val_accuracy")
# A million epochs have 184 MB.
_MAX_BYTES = 1 << 28


def find_best_epoch(history: Sequence[dict[str, float]]) -> int:
    """Returns the epoch, from 1, with the lowest loss on the eval split.

    If two epochs have the same loss, the first one is the best. A loss that is not a finite number
    is never the best.

    Returns:
        The epoch; 0 if no epoch has a finite loss.
    """
    losses = [entry[MONITOR] if math.isfinite(entry[MONITOR]) else math.inf for entry in history]
    best = min(losses, default=math.inf)
    return losses.index(best) + 1 if best < math.inf else 0


def format_best_epoch(best_epoch: int, epochs: int) -> str:
    """Returns which epoch a model is from, for example "6 of 7 (lowest val_loss)"."""
    return f"{best_epoch} of {epochs} (lowest {MONITOR})"


def format_epoch(
    entry: Mapping[str, float], rate: float, images_per_second: float, waiting_share: float
) -> str:
    """Returns what is known at the end of an epoch, as one line.

    Args:
        entry: The losses and metrics of the epoch, by Keras's names.
        rate: The learning rate at its end.
        images_per_second: Images that were trained on per second; 0 if that was not measured.
        waiting_share: Share of that time in which the training waited for input, 0 to 1.
    """
    known = [name for name in _SHOWN_FIRST if name in entry]
    names = [*known, *(name for name in entry if name not in (*known, "epoch"))]
    parts = [f"{name} {entry[name]:.4f}" for name in names]
    parts.append(f"rate {rate:.3g}")
    if images_per_second:
        parts += [f"{images_per_second:,.0f} images/s", f"{waiting_share:.0%} waiting for input"]
    return ", ".join(parts)


def write_history(folder: str, history: History) -> None:
    """Writes `history.json` into a folder."""
    _write_json(storage.join(folder, HISTORY_FILE), history)


def write_best_epoch(folder: str, history: History) -> None:
    """Writes the best epoch's entry into the folder `best` of a folder. `best` must exist."""
    entry = history[find_best_epoch(history) - 1]
    _write_json(storage.join(folder, BEST_FOLDER, _BEST_EPOCH_FILE), entry)


def read_best_epoch(folder: str) -> tuple[int, int] | None:
    """Returns which epoch the model of a finished training is from.

    Args:
        folder: The folder with the history of the training.

    Returns:
        The epoch, from 1, and the number of epochs; None if the training did not write it. An
        earlier version of darkroom did not: it exported the last epoch.

    Raises:
        DataError: A file is damaged.
        OSError: A file cannot be read.
    """
    best = storage.join(folder, BEST_FOLDER, _BEST_EPOCH_FILE)
    if not storage.exists(best):
        return None
    history = storage.join(folder, HISTORY_FILE)
    return _read_json(best, lambda entry: int(entry["epoch"])), _read_json(history, len)


def _read_json(path: str, parse: Callable[[Any], int]) -> int:
    try:
        return parse(json.loads(storage.read_bytes(path, _MAX_BYTES)))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise DataError(f"{path} is damaged: {error!r}.", "Train again.") from error


def _write_json(path: str, value: object) -> None:
    storage.write_bytes(path, (json.dumps(value, indent=1) + "\n").encode())
