"""The file that the gallery's page saves: decisions by the places of rows in one dataset's index.

A place is the number of a row, from 0, in the files of the index, in the order of their names. So a
selection can have rows of which the page knows neither key nor name; and the file means nothing for
another commit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

from darkroom.decisions.files import hash_files
from darkroom.decisions.lines import IGNORE, Decided, Decision
from darkroom.errors import DataError
from darkroom.runtime.json_values import Count, Sha256, Text, parse_json

FORM = "darkroom decisions 1"
# How a decision names an image, and what the index says of it beside.
_NAMED_BY = ("key", "sha256", "uri")
SAVED_COLUMNS = (*_NAMED_BY, "row", "source_size", "source_version", "changes")


@dataclass(frozen=True, kw_only=True)
class SavedDecision(Decided):
    """One decision about any number of rows, or about a pair of them.

    Attributes:
        places: The places of the rows.
        rows: Rows by the numbers that findings list, as those that `group_leakage` says to move.
        pair: Those of a pair, which is ignored.
    """

    places: tuple[Count, ...] = ()
    rows: tuple[Count, ...] = ()
    pair: tuple[Count, Count] | None = None

    def __post_init__(self) -> None:
        """Checks the action, and what it is about.

        Raises:
            ValueError: It has what it cannot have.
        """
        super().__post_init__()
        others = self.places or self.rows or self.action != IGNORE
        if self.pair and (others or self.pair[0] == self.pair[1]):
            raise ValueError("a pair is two rows that are ignored, without others")


@dataclass(frozen=True)
class Saved:
    """The content of the file.

    Attributes:
        form: `FORM`.
        dataset: Fingerprint of the dataset that the page shows.
        decisions: The decisions, in the order in which they were made.
        records: Where the dataset was when the page was made; empty if the page does not say it.
        index: Where its index was; empty if that was in the dataset.
    """

    form: str
    dataset: Sha256
    decisions: tuple[SavedDecision, ...]
    records: Text = ""
    index: Text = ""


def is_saved(data: bytes) -> bool:
    """Tells whether a text is what the page saves, perhaps damaged, and not a decision."""
    if b'"form"' not in data:
        return False
    try:
        return "form" in json.loads(data)
    except (ValueError, RecursionError, TypeError):
        return False


def identify_saved(saved: Saved) -> str:
    """Returns the mark of a saved text, which is the same however its JSON was formatted."""
    text = json.dumps(asdict(saved), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def parse_saved(data: bytes, path: str = "The file") -> Saved:
    """Returns the content of a file that the page saved.

    Args:
        data: The bytes of the file.
        path: Its name, for the message.

    Raises:
        DataError: It is damaged, or of another form.
    """
    try:
        saved = parse_json(data, Saved)
        if saved.form != FORM:
            raise ValueError(f"its form is {saved.form!r:.80}, expected {FORM!r}")
    except ValueError as error:
        raise DataError(
            f"{path} is not what the gallery saves: {error}.", "Save it again in the gallery."
        ) from error
    return saved


def resolve_saved(saved: Saved, index: pa.Table) -> tuple[list[Decision], list[str]]:
    """Returns the decisions with the keys and hashes of their images, each once.

    Where a record has the very bytes of its file, the file is not read.

    Args:
        saved: What the page saved.
        index: The columns `SAVED_COLUMNS` of the whole index of its dataset, in the order of its
            files.

    Returns:
        The decisions, and the images whose files are gone or changed since: those about them are
        left out.

    Raises:
        DataError: A decision names a row that the index does not have.
        OSError: A store fails.
    """
    chosen = _choose(saved, index["row"].to_pylist())
    wanted = sorted({place for _, places in chosen for place in places})
    if wanted and wanted[-1] >= len(index):
        raise DataError(
            f"A decision names a row that is not one of the {len(index):,} rows of the dataset.",
            "The file is damaged: save it again in the gallery.",
        )
    images = index.take(pa.array(wanted, pa.int64())).to_pylist()
    changed = [each for each in images if each["changes"]]
    files = [(each["uri"], (each["source_size"], each["source_version"])) for each in changed]
    for each, sha256 in zip(changed, hash_files(files), strict=True):
        each["sha256"] = sha256
    known, mark = dict(zip(wanted, images, strict=True)), identify_saved(saved)
    decisions: list[Decision] = []
    lost: dict[str, None] = {}
    for (action, places), each in chosen.items():
        about = [known[place] for place in places]
        if unread := [image["uri"] for image in about if image["sha256"] == ""]:
            lost |= dict.fromkeys(unread)
            continue
        named = {name: about[0][name] for name in _NAMED_BY}
        if each.pair:
            named |= {f"other_{name}": about[1][name] for name in _NAMED_BY}
        decisions.append(
            Decision(action=action, label=each.label, split=each.split, saved=mark, **named)
        )
    return decisions, [*lost]


def _choose(
    saved: Saved, numbers: Sequence[int]
) -> dict[tuple[str, tuple[int, ...]], SavedDecision]:
    """Returns the decisions by action and places; a later one replaces an earlier one.

    Args:
        saved: What the page saved.
        numbers: The number of the row in each place.
    """
    named = {row for each in saved.decisions for row in each.rows}
    places_of = {row: place for place, row in enumerate(numbers) if row in named}
    chosen: dict[tuple[str, tuple[int, ...]], SavedDecision] = {}
    for each in saved.decisions:
        # Of a row that is not there, the place is behind the last one.
        singles = [*each.places, *(places_of.get(row, len(numbers)) for row in each.rows)]
        for places in [each.pair] if each.pair else [(place,) for place in singles]:
            slot = each.action, tuple(sorted(places))
            chosen.pop(slot, None)
            chosen[slot] = each
    return chosen
