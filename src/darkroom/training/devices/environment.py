"""What the environment says of a training: its processes, Keras's backend; without TensorFlow."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass

from darkroom.errors import UsageError

_TASKS = ("chief", "worker")
_TENSORFLOW = "tensorflow"


@dataclass(frozen=True)
class Cluster:
    """This process among those that train together.

    Attributes:
        worker: Its number, from 0. Number 0 is the chief: it alone writes and reports.
        num_workers: How many there are.
    """

    worker: int = 0
    num_workers: int = 1

    @property
    def is_chief(self) -> bool:
        """Whether this process writes and reports."""
        return self.worker == 0


def read_cluster() -> Cluster:
    """Reads the environment variable TF_CONFIG. Without it, this process trains alone.

    Raises:
        UsageError: It does not have TensorFlow's form, or this process is neither chief nor worker.
    """
    text = os.environ.get("TF_CONFIG")
    if not text:
        return Cluster()
    try:
        config = json.loads(text)
        addresses = config.get("cluster", {})
        counts = [len(addresses.get(task, ())) for task in _TASKS]
        if not sum(counts):
            return Cluster()
        task, index = config["task"]["type"], int(config["task"]["index"])
        # Like TensorFlow, count the chief before the workers.
        position = _TASKS.index(task)
        if not 0 <= index < counts[position]:
            raise ValueError(f"there is no {task} {index}")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(
            f"TF_CONFIG cannot be used ({type(error).__name__}: {error}): {text[:300]}",
            'Expected {"cluster": {"worker": ["HOST:PORT", ...]}, "task": {"type": "worker", '
            '"index": 0}}; the types of tasks are chief and worker.',
        ) from error
    return Cluster(sum(counts[:position]) + index, sum(counts))


def check_backend() -> None:
    """Checks that Keras uses TensorFlow. It is not imported for that.

    Raises:
        UsageError: It uses another backend.
    """
    keras = sys.modules.get("keras")
    backend = keras.config.backend() if keras else _find_backend()
    if backend != _TENSORFLOW:
        raise UsageError(
            f"Keras has the backend {backend}, and darkroom trains and exports with TensorFlow.",
            "Unset KERAS_BACKEND, or set it to tensorflow, before Keras is imported. Without it, "
            "the backend is that of ~/.keras/keras.json.",
        )


def _find_backend() -> str:
    """Returns the backend that Keras would choose."""
    if chosen := os.environ.get("KERAS_BACKEND"):
        return chosen
    folder = os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras")
    try:
        with open(os.path.join(folder, "keras.json"), encoding="utf-8") as file:
            return str(json.load(file).get("backend", _TENSORFLOW))
    except (OSError, ValueError, AttributeError):
        return _TENSORFLOW
