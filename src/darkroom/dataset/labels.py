"""The label map: every label is text; its number is its place in a list."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from darkroom import storage
from darkroom.errors import DataError, StorageError, UsageError, describe_os_error
from darkroom.runtime.text import MAX_LISTED_ROWS, format_count

# Numbers from 0 to 65,535; a column with more classes usually has ids or captions.
MAX_CLASSES = 65_536
MAX_LABEL_CHARACTERS = 1_000
# The end of the hint of each error about labels.
SEE_FORMS = "See docs/guides/labels.md for an example of each form."

_UNPRINTABLE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
# Persian and Indic words, and many emoji, are written with these.
_JOINERS = frozenset("\u200c\u200d\ufe0e\ufe0f")
# Invisible letters and marks.
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")

_SEPARATORS = re.compile(r"[\s_-]+")
_POINTED = re.compile(r"-?[0-9]+\.0+", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?(e[+-]?[0-9]{1,3})?", re.ASCII)
_QUOTES = "\"'`\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb"
# Small letters of other scripts that look like Latin ones, themselves or as capitals.
_LATIN = str.maketrans(
    # Cyrillic, then Greek
    "\u0430\u0432\u0435\u0456\u0458\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u04bb"
    "\u03b1\u03b2\u03b5\u03b6\u03b9\u03ba\u03bc\u03bf\u03c1\u03c4\u03c5\u03c7",
    "abeijkmhopctyxsh" + "abezikmoptyx",
)


def format_unannotated(counts: Mapping[str, int]) -> str:
    """Returns how many records are not annotated, and what to do; empty without such.

    Args:
        counts: Number of such records by split.
    """
    if not counts:
        return ""
    records = format_count(sum(counts.values()), "record", "are")
    splits = ", ".join(f"{split} {count:,}" for split, count in counts.items())
    return (
        f"{records} not annotated ({splits}). If empty cells mean something "
        f"else, convert with --empty-labels (empty_labels= in Python). {SEE_FORMS}"
    )


def normalise_label(text: str) -> str:
    """Returns `text` in Unicode NFC without surrounding white space; `007` stays `007`."""
    return unicodedata.normalize("NFC", text.strip())


def is_pointed(label: str) -> bool:
    """Tells whether a label is a whole number with a point, as `1.0`."""
    return _POINTED.fullmatch(label) is not None


def drop_point(label: str) -> str:
    """Returns a whole number without a point: pandas writes 1 as 1.0 where others are missing."""
    return label.partition(".")[0] if is_pointed(label) else label


def is_printable(label: str) -> bool:
    """Tells whether `label` has no control, invisible, line-breaking or surrogate character.

    Such characters would break `labels.txt` (one label a line), cannot be stored as UTF-8, or make
    two different labels look the same.
    """
    if label.isascii():
        return label.isprintable()
    return _BLANKS.isdisjoint(label) and not any(
        unicodedata.category(c) in _UNPRINTABLE and c not in _JOINERS for c in label
    )


def is_usable(label: str) -> bool:
    """Tells whether `label` can be a label: not empty, not too long, and printable."""
    return 0 < len(label) <= MAX_LABEL_CHARACTERS and is_printable(label)


def find_lookalikes(labels: Iterable[str]) -> list[list[str]]:
    """Returns the groups of labels that a person may think are the same.

    They differ in letter case, in white space, `-` and `_`, in quotes around them, in joiners, in
    the form of a number (7, 7.0, 007) or of a letter (such as full-width letters), or in letters
    of other scripts that look alike.
    """
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for label in sorted(set(labels)):
        groups[_fold(label)].append(label)
    return [group for group in groups.values() if len(group) > 1]


def _fold(label: str) -> str:
    """Returns a text that is equal for labels that look alike."""
    text = unicodedata.normalize("NFKC", label).casefold()
    if not text.isascii():
        text = "".join(c for c in text if c not in _JOINERS).translate(_LATIN)
    text = text.strip().strip(_QUOTES).strip()
    if _NUMBER.fullmatch(text):
        return str(Decimal(text).normalize())
    return _SEPARATORS.sub(" ", text).strip()


def build_label_map(
    labels: Iterable[str], given: Sequence[str] | None = None, *, are_numbers: bool = False
) -> list[str]:
    """Returns the label map: the given order, else the labels sorted as text.

    Args:
        labels: The labels that were found.
        given: The label map that the user gives.
        are_numbers: Whether the labels are whole numbers. They number themselves, so their map runs
            from 0 to the largest.

    Raises:
        DataError: There are too many labels for classes.
        UsageError: The given map is empty, repeats a label, or has an unusable one.
    """
    if are_numbers:
        return [str(number) for number in range(max(map(int, labels), default=-1) + 1)]
    if given is None:
        found = sorted(set(labels))
        if len(found) > MAX_CLASSES:
            raise DataError(
                f"There are {len(found):,} different labels, at most {MAX_CLASSES:,} are possible: "
                f"{found[0]!r:.40}, {found[1]!r:.40}, ...",
                "Check which column has the labels, and name it with --columns (columns= in "
                f"Python). {SEE_FORMS}",
            )
        return found
    given = [normalise_label(label) for label in given]
    if "" in given:
        raise UsageError(
            f"The label map has an empty label in line {given.index('') + 1}.",
            f"Take the line out: give each label once, one a line. {SEE_FORMS}",
        )
    repeated = sorted(label for label, times in Counter(given).items() if times > 1)
    unusable = [label for label in given if not is_usable(label)]
    if not given or repeated or unusable:
        problem = f"repeats {repeated}" if repeated else f"has unusable labels {unusable[:5]}"
        raise UsageError(
            f"The label map {problem if given else 'is empty'}.",
            f"Give each label once, one a line, in the order of their numbers. {SEE_FORMS}",
        )
    return list(given)


def parse_labels(text: str) -> list[str]:
    """Returns the labels of a label file: one a line, in order; the last line break is optional."""
    # Only line feeds separate labels: str.splitlines would also split at U+2028 and others.
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
            f"The label file cannot be read: {describe_os_error(error)}",
            f"label_map is a file with one label a line. {storage.suggest_near(path)}"
            if isinstance(error, FileNotFoundError)
            else "label_map is a file with one label a line.",
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"The label file {path} is not UTF-8: {error}.",
            f"Save it as UTF-8, one label a line. {SEE_FORMS}",
        ) from error


def list_lookalikes(labels: Iterable[str]) -> str:
    """Returns the first groups of labels that look alike, and a count; empty without any."""
    groups = find_lookalikes(labels)
    texts = [", ".join(map(show_label, group)) for group in groups[:MAX_LISTED_ROWS]]
    more = len(groups) - len(texts)
    return "; ".join([*texts, f"and {more:,} more groups"] if more else texts)


def show_label(label: str) -> str:
    """Returns a label for a message, with its code points if it is not ASCII."""
    # Letters of other scripts may look the same; only their code points differ.
    return repr(label) if label.isascii() else f"{label!r} = {label!a}"
