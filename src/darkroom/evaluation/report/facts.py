"""The facts about the making of a model: recipe, course, input, data and code."""

from __future__ import annotations

import hashlib
import importlib.util
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, TypedDict

from darkroom import storage
from darkroom.data.splits import ALL_SPLITS, DataPart, Split
from darkroom.dataset.splits import EVAL, TRAIN
from darkroom.evaluation.report.result import Evaluation
from darkroom.runtime.json_values import build_value, format_json
from darkroom.version import __version__

# Beside the model of a training.
EVALUATION_FILE = "evaluation.json"
# In the folder of a training that does not evaluate its model itself.
FACTS_FILE = "facts.json"

_FORMAT = 1
# The fields of `Facts` that have another name in files.
_FIELDS = {"best_epoch": "exported_epoch"}
_PACKAGES = ("tensorflow", "keras", "numpy")


def _check_entry(entry: Mapping[str, int | float | str]) -> None:
    texts = {name for name, value in entry.items() if isinstance(value, str)}
    if not isinstance(entry.get("epoch"), int) or texts - {"phase"}:
        raise ValueError(f"{entry!r:.80} is not an epoch of a history")


# An epoch of a history: its number, Keras's losses and metrics, and its phase if there are several.
HistoryEntry = Annotated[dict[str, int | float | str], _check_entry]


class InputCosts(TypedDict, total=False):
    """The content of `input.json`."""

    verdict: str
    waiting_share: float
    images_per_second: float
    microseconds_an_image: Mapping[str, float] | None
    speedup: float


@dataclass(frozen=True)
class Facts:
    """How a model was made, as values for JSON; each is empty where it is not known.

    Attributes:
        recipe: The options of the training, by name, with its choice where they leave it open.
        history: One entry an epoch: its number and Keras's losses and metrics.
        exported_epoch: The epoch, from 1, whose weights the model has; 0 if that is not known.
        input: The content of `input.json`.
        data: By split, the name, fingerprint and number of records of each part.
        code: Versions by package, and hashes by file.
    """

    recipe: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[HistoryEntry] = ()
    exported_epoch: int = 0
    input: InputCosts = field(default_factory=InputCosts)
    data: Mapping[str, Sequence[DataPart]] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)

    def find_use(self, split: Split) -> str:
        """Returns the use of a split in the training: train or eval; empty if none."""
        seen = {part["fingerprint"] for part in split.data}
        for name in (TRAIN, EVAL):
            used = {part["fingerprint"] for part in self.data.get(name, ())}
            if split.name in (name, ALL_SPLITS) and used & seen:
                return name
        return ""


@dataclass(frozen=True)
class _Kept:
    """The content of `evaluation.json` and `facts.json`."""

    format: int
    facts: Mapping[str, Any]
    evaluation: Mapping[str, Any] = field(default_factory=dict)


def describe_code(model: str) -> dict[str, str]:
    """Returns versions of the code that trains, and the hash of the file of the user's model.

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
    values = {"format": _FORMAT, "evaluation": found.to_dict(), "facts": _name_fields(facts)}
    return format_json(values)


def encode_facts(facts: Facts) -> bytes:
    """Returns the content of `facts.json`."""
    return format_json({"format": _FORMAT, "facts": _name_fields(facts)})


def read_facts(folder: str, name: str = EVALUATION_FILE) -> Facts:
    """Reads a file in the folder of a training; nothing if it does not exist."""
    try:
        kept = storage.read_json(storage.join(folder, name), _Kept)
        found = {_FIELDS.get(name, name): value for name, value in kept.facts.items()}
        return build_value(found, Facts) if kept.format == _FORMAT else Facts()
    except (*storage.UNUSABLE, ValueError):
        return Facts()


def read_evaluation(folder: str) -> Evaluation:
    """Reads the numbers in `evaluation.json`.

    Raises:
        OSError: The file is missing, or it cannot be read.
        ValueError: It is of another program.
    """
    kept = storage.read_json(storage.join(folder, EVALUATION_FILE), _Kept)
    return Evaluation.from_dict(kept.evaluation)


def _name_fields(facts: Facts) -> dict[str, Any]:
    names = {field: name for name, field in _FIELDS.items()}
    return {names.get(field, field): value for field, value in asdict(facts).items()}


def _find_file(module: str) -> str | None:
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return found.origin if found is not None and found.has_location else None
