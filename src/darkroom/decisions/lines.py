"""The file that `--decisions` takes: JSON Lines, each a decision about one image, or about a pair.

An image is named by its key and by the SHA-256 of its file, so the file serves every later run, and
a decision about an image that was replaced since is not applied.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated

from darkroom import storage
from darkroom.dataset.splits import SPLITS
from darkroom.errors import DataError
from darkroom.runtime.json_values import Sha256, Text, parse_json

DROP, RELABEL, MOVE, IGNORE = ACTIONS = ("drop", "relabel", "move", "ignore")
MAX_DECISION_BYTES = 1 << 28
_HINT = "Each line is a decision, or what the gallery saved."
_KEY = re.compile(r"[0-9a-f]{32}")
# What an action needs, and no other one may have.
_VALUES = {RELABEL: "label", MOVE: "split"}


def _check_choice(value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"{value!r:.80} is not one of {', '.join(choices)}")


def _check_key(value: str) -> None:
    if not _KEY.fullmatch(value):
        raise ValueError(f"{value!r:.80} is not the key of an image")


Action = Annotated[str, partial(_check_choice, choices=ACTIONS)]
_Split = Annotated[str, partial(_check_choice, choices=SPLITS)]
Key = Annotated[str, _check_key]
# A text, or a list where an image has any number of labels.
Label = Text | tuple[Text, ...]


@dataclass(frozen=True, kw_only=True)
class Decided:
    """What is done: the action, and what it needs.

    Attributes:
        action: One of `ACTIONS`.
        label: The right label, or labels, of `relabel`.
        split: The right split of `move`.
    """

    action: Action
    label: Label | None = None
    split: _Split | None = None

    def __post_init__(self) -> None:
        """Checks that the action has what it needs, and nothing else.

        Raises:
            ValueError: It does not.
        """
        for action, name in _VALUES.items():
            if (getattr(self, name) is None) is (self.action == action):
                verb = "needs a" if self.action == action else "has no"
                raise ValueError(f"{self.action} {verb} {name}")


@dataclass(frozen=True, kw_only=True)
class Decision(Decided):
    """A decision about an image, or with `other_key` about a pair, which is then ignored.

    Attributes:
        key: The key of its example.
        sha256: SHA-256 of its file; None for an example without image.
        uri: Where the file was, for people.
        other_key: That of the other image of a pair.
        other_sha256: That of the other image.
        other_uri: That of the other image.
        saved: The mark of the text that the gallery saved it in.
    """

    key: Key
    sha256: Sha256 | None = None
    uri: str = ""
    other_key: Key | None = None
    other_sha256: Sha256 | None = None
    other_uri: str | None = None
    saved: str | None = None

    def __post_init__(self) -> None:
        """Checks the action, as above, and the pair.

        Raises:
            ValueError: A pair can only be ignored.
        """
        super().__post_init__()
        if self.other_key is not None and self.action != IGNORE:
            raise ValueError(f"{self.action} is about one image, not about a pair")

    @property
    def images(self) -> list[tuple[str, str | None, str]]:
        """Key, SHA-256 and name, for people, of the image, or of both images."""
        one = self.key, self.sha256, self.uri or self.key
        if self.other_key is None:
            return [one]
        return [one, (self.other_key, self.other_sha256, self.other_uri or self.other_key)]


def format_decisions(decisions: Iterable[Decision]) -> bytes:
    """Returns the content of a file of decisions, in ASCII."""
    fields = (asdict(each).items() for each in decisions)
    given = ({name: value for name, value in each if value is not None} for each in fields)
    return "".join(json.dumps(each) + "\n" for each in given).encode()


def parse_decision(line: bytes, where: str) -> Decision:
    """Returns the decision that a line has.

    Args:
        line: The line.
        where: Its file and number, for the message.

    Raises:
        DataError: It is not a decision.
    """
    try:
        return parse_json(line, Decision)
    except ValueError as error:
        raise DataError(f"{where}: {str(error).removeprefix('it: ')}.", _HINT) from error


def read_decisions(path: str) -> tuple[str, dict[int, Decision]]:
    """Reads a file of decisions.

    The last line wins: it replaces what an earlier one says of the same image, so that files of
    several sessions can be joined. To drop an image contradicts its new label or split.

    Returns:
        The SHA-256 of the file, and the decisions that count, by the numbers of their lines.

    Raises:
        DataError: A line is not a decision.
        OSError: The file cannot be read, or is too large.
    """
    data = storage.read_bytes(path, MAX_DECISION_BYTES)
    found: dict[int, Decision] = {}
    places: dict[tuple[str | None, ...], int] = {}
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        decision = parse_decision(line, f"{path}, line {number}")
        against = (RELABEL, MOVE) if decision.action == DROP else (DROP,)
        replaced = [decision.action, *(against if decision.action != IGNORE else ())]
        for action in replaced:
            found.pop(places.pop((action, decision.key, decision.other_key), 0), None)
        places[decision.action, decision.key, decision.other_key] = number
        found[number] = decision
    return hashlib.sha256(data).hexdigest(), found
