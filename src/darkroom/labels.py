"""The label map: every label is text; its number is its place in a list."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from darkroom import storage
from darkroom.errors import DataError, StorageError, UsageError

LABELS_FILE = "labels.txt"

_UNPRINTABLE = frozenset(("Cc", "Cs", "Zl", "Zp"))


def normalise_label(text: str) -> str:
    """Returns `text` in Unicode NFC without surrounding white space; `007` stays `007`."""
    return unicodedata.normalize("NFC", text.strip())


def is_printable(label: str) -> bool:
    """Tells whether `label` has no control, line-breaking or surrogate character.

    Such characters would break `labels.txt` (one label a line) or cannot be stored as UTF-8.
    """
    return label.isprintable() or not any(unicodedata.category(c) in _UNPRINTABLE for c in label)


def build_label_map(labels: Iterable[str], given: Sequence[str] | None = None) -> list[str]:
    """Returns the label map: the given order, else the labels sorted as text.

    Raises:
        UsageError: The given map is empty, repeats a label, or holds an unprintable one.
    """
    if given is None:
        return sorted(set(labels))
    given = [normalise_label(label) for label in given]
    repeated = sorted(label for label, times in Counter(given).items() if times > 1)
    unusable = [label for label in given if not label or not is_printable(label)]
    if not given or repeated or unusable:
        problem = f"repeats {repeated}" if repeated else f"holds unusable labels {unusable}"
        raise UsageError(
            f"The label map {problem if given else 'is empty'}.",
            "Give each label once, one a line, in the order of their numbers.",
        )
    return list(given)


def parse_labels(text: str) -> list[str]:
    """Returns the labels of a label file: one a line, in order; the last line break is optional."""
    # Only line feeds separate: str.splitlines would also cut at U+2028 and its like.
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def format_labels(labels: Sequence[str]) -> str:
    """Returns the text of a label file."""
    return "".join(f"{label}\n" for label in labels)


def read_labels(path: str) -> list[str]:
    """Reads a label file.

    Raises:
        StorageError: `path` cannot be read.
        DataError: `path` is not UTF-8 text.
    """
    try:
        return parse_labels(storage.read_bytes(path).decode())
    except OSError as error:
        raise StorageError(
            f"The label file {path} cannot be read: {error}.", "Give a file with one label a line."
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"The label file {path} is not UTF-8: {error}.", "Save it as UTF-8, one label a line."
        ) from error
