"""What a model answers for an image: a file of the model says it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from darkroom.runtime.json_values import parse_json

# Among the assets of a SavedModel.
LEARNED_FILE = "target.json"


@dataclass(frozen=True)
class Learned:
    """What a model has learned.

    Attributes:
        kind: The kind of target.
        names: The labels in the order of their numbers, or the names of the numbers.
        thresholds: For several labels: the score from which an image has a label, for each of them.
    """

    kind: str
    names: tuple[str, ...]
    thresholds: tuple[float, ...] = ()

    def encode(self) -> bytes:
        """Returns the content of the file."""
        return (json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n").encode()


def decode_learned(data: bytes) -> Learned:
    """Reads the content of the file.

    Raises:
        ValueError: It has other content.
    """
    return parse_json(data, Learned)
