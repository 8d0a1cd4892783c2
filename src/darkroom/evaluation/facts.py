"""What is known of how a model was made: recipe, course, input, data and code."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from darkroom import storage
from darkroom.dataset.splits import EVAL, TRAIN
from darkroom.evaluation.result import Evaluation
from darkroom.input.data_paths import ALL, NamedSplit
from darkroom.version import __version__

# Beside the model of a training.
EVALUATION_FILE = "evaluation.json"
# In the folder of a training that does not evaluate its model itself.
FACTS_FILE = "facts.json"

_FORMAT = 1
_MAX_BYTES = 1 << 28
_PACKAGES = ("tensorflow", "keras", "numpy")


@dataclass(frozen=True)
class Facts:
    """How a model was made, as values for JSON; each is empty where it is not known.

    Attributes:
        recipe: The options of the training, by name, with what it chose where they leave it open.
        history: One entry an epoch: its number and Keras's losses and metrics.
        best_epoch: The epoch, from 1, whose weights the model has; 0 if that is not known.
        input: What `input.json` says.
        data: By split, the name, fingerprint and number of records of each part.
        code: Versions by package, and hashes by file.
    """

    recipe: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[Mapping[str, float]] = ()
    best_epoch: int = 0
    input: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Sequence[Mapping[str, str | int]]] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)

    def find_use(self, split: NamedSplit) -> str:
        """Returns what the training used a split for: train or eval; empty if for nothing."""
        seen = {part["fingerprint"] for part in split.data}
        for name in (TRAIN, EVAL):
            used = {part.get("fingerprint") for part in self.data.get(name, ())}
            if split.name in (name, ALL) and used & seen:
                return name
        return ""


def describe_code(model: str) -> dict[str, str]:
    """Returns versions of what trains, and the hash of the file of a user's own model.

    Args:
        model: The name of the model, as in `TrainingOptions`.
    """
    code = {"darkroom": __version__, "python": platform.python_version()}
    # A package may be installed under another name, as tensorflow-cpu.
    loaded = {name: getattr(sys.modules.get(name), "__version__", None) for name in _PACKAGES}
    code |= {name: version for name, version in loaded.items() if version}
    module, colon, _ = model.partition(":")
    if colon and module != "keras.applications" and (path := _find_file(module)):
        with open(path, "rb") as file:
            code[f"{module} (SHA-256)"] = hashlib.sha256(file.read()).hexdigest()
    return code


def encode_evaluation(found: Evaluation, facts: Facts) -> bytes:
    """Returns the content of `evaluation.json`."""
    values = {"format": _FORMAT, "evaluation": found.to_dict(), "facts": asdict(facts)}
    return (json.dumps(values, indent=1) + "\n").encode()


def encode_facts(facts: Facts) -> bytes:
    """Returns the content of `facts.json`."""
    return (json.dumps({"format": _FORMAT, "facts": asdict(facts)}, indent=1) + "\n").encode()


def read_facts(folder: str, name: str = EVALUATION_FILE) -> Facts:
    """Reads what a file in the folder of a training knows; nothing if there is none."""
    try:
        values = json.loads(storage.read_bytes(storage.join(folder, name), _MAX_BYTES))
        return Facts(**values["facts"]) if values["format"] == _FORMAT else Facts()
    except (*storage.UNUSABLE, ValueError, KeyError, TypeError, RecursionError):
        return Facts()


def _find_file(module: str) -> str | None:
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return found.origin if found is not None and found.has_location else None
