"""`Read as`: how darkroom read a source, and where that may be wrong.

A source does not say all that its reading needs: which column has the labels, where the splits come
from, which files are images. Whatever darkroom decided about it by itself is in one structure,
which every result shows, and `read-as.json` keeps beside the manifest and the dataset. It names no
host, no time and no absolute path.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace

from darkroom import storage
from darkroom.dataset.layout import READ_AS_FILE
from darkroom.dataset.schema import COLUMN_TARGETS, Kind
from darkroom.errors import DataError
from darkroom.runtime.result import Fact
from darkroom.runtime.text import format_count, list_first, make_visible

# Where splits come from, and what numbers labels.
BY_COLUMN, BY_FOLDER, BY_HASH = "column", "folder", "hash"
BY_NAMES, BY_LISTS = "names", "lists"
SORTED_TEXT, OWN_NUMBERS, GIVEN_MAP = "sorted text", "their own numbers", "the given label map"
COLUMN_ORDER, SOURCE_ORDER = "the order of the columns", "the order in the source"
SORTED_NUMBERS = "their order as numbers"
OLD_MAP = "the label map of the dataset that is updated"
_SPLITS = {
    BY_FOLDER: "folder",
    BY_NAMES: "from the names of the files",
    BY_LISTS: "from its own lists of splits",
}
_ANNOTATIONS = "from the annotations"
_MAX_BYTES = 1 << 24


@dataclass(frozen=True)
class Doubt:
    """Something that darkroom decided, and that may not be meant.

    Attributes:
        name: One of `darkroom.options.source.DOUBTS`.
        text: What was decided, and what speaks against it.
        hint: The options that settle it, either way.
    """

    name: str
    text: str
    hint: str

    def __str__(self) -> str:
        return f"{self.text} {self.hint}"


@dataclass(frozen=True)
class ReadAs:
    """How a source was read.

    Attributes:
        form: CSV, JSON Lines, Parquet, DataFrame or folder.
        files: Number of its files; 0 for a DataFrame or a folder.
        encoding: Of text.
        header: The line of the header of a CSV; 0 without one, None for other forms.
        remarks: What else was decided about its form, in words.
        counts: How much of it was read in another form than it has, or not at all.
        layout: Of a folder, as <label>/<file>.
        columns: The kind of every column that was read by its name, in order.
        unread: Columns that were not read.
        group: The column of groups.
        splits: Where splits come from: `BY_COLUMN`, `BY_FOLDER` or `BY_HASH`; or, of lists and
            annotations, `BY_NAMES` of their files or folders, or `BY_LISTS` that they have.
        unassigned: How many rows do not name a split, and have that of the hash.
        kept: How many do not name a split, and stay in that of the dataset that is updated; 0 where
            each is also that of the hash.
        ratios: The shares of train, eval and test among these.
        labels: What numbers the labels; empty without labels.
        class_ids: The classes of annotations of COCO by their ids.
        left_out: How many files, and how many folders as a whole, were left out, by reason.
        empty_classes: Folders of classes that have no image left.
        doubts: What may not be meant.
    """

    form: str
    files: int = 1
    encoding: str = ""
    header: int | None = None
    remarks: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    layout: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    group: str = ""
    splits: str = BY_HASH
    unassigned: int = 0
    kept: int = 0
    ratios: str = ""
    labels: str = ""
    class_ids: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    empty_classes: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()

    def accept(self, names: Collection[str]) -> ReadAs:
        """Returns it without the doubts of these names."""
        return replace(self, doubts=tuple(each for each in self.doubts if each.name not in names))

    def to_json(self) -> str:
        """Returns it as JSON text with a final newline."""
        # ASCII only: file names may hold lone surrogates, which UTF-8 cannot encode.
        return json.dumps(asdict(self), indent=2) + "\n"

    def to_rows(self) -> list[tuple[str, str]]:
        """Returns it as people read it: what, and how; only where there is something to say."""
        doubts = [("doubt", f"{doubt.name}: {doubt}") for doubt in self.doubts]
        return [*self._list_facts(), *_make_visible(doubts)]

    def _list_facts(self) -> list[tuple[str, str]]:
        """Returns what was read, and how, without doubts and without what does not apply.

        The form comes first: `list_read_as` relies on it.
        """
        roles = {kind: name for name, kind in self.columns.items()}
        rows = [
            ("form", self.describe_form()),
            ("image", self._name(roles, Kind.IMAGE)),
            ("label", self._describe_labels()),
            ("split", self._describe_splits(roles)),
            ("id", self._name(roles, Kind.ID)),
            ("span", self._name(roles, Kind.SPAN)),
            ("group", f"column {self.group}" if self.group else ""),
            ("features", self._describe_features()),
            ("not read", list_first(self.unread)),
            ("left out", ", ".join(f"{why} {count:,}" for why, count in self.left_out.items())),
            ("no image", f"in {list_first(self.empty_classes)}" if self.empty_classes else ""),
        ]
        return _make_visible(rows)

    def describe_form(self) -> str:
        """Returns its form in words, as "CSV in UTF-8, header in line 1"."""
        form = f"{format_count(self.files, 'file')} of {self.form}" if self.files > 1 else self.form
        texts = [f"{form} in {self.encoding.upper()}" if self.encoding else form]
        texts += [f"as {self.layout}"] if self.layout else []
        if self.header is not None:
            texts.append(f"header in line {self.header}" if self.header else "without header")
        notes = (f"{what}: {count:,}" for what, count in self.counts.items())
        return "; ".join([", ".join(texts), *self.remarks, *notes])

    def _name(self, roles: Mapping[str, str], kind: Kind) -> str:
        return f"column {roles[kind.value]}" if kind.value in roles else ""

    def _describe_labels(self) -> str:
        targets = {kind.value for kind in COLUMN_TARGETS}
        names = [name for name, kind in self.columns.items() if kind in targets]
        if not names and not self.labels:
            return "none: no column has labels"
        where = f"column {names[0]}" if len(names) == 1 else f"{len(names)} columns"
        texts = [where if names else "folder" if self.layout else _ANNOTATIONS]
        if any(self.columns[name] == Kind.TARGET.value for name in names):
            texts.append("numbers to predict")
        return ", ".join([*texts, f"numbered by {self.labels}"] if self.labels else texts)

    def _describe_splits(self, roles: Mapping[str, str]) -> str:
        hashed, lacking, texts = f"by hash, {self.ratios}", "", list[str]()
        if self.splits != BY_HASH:
            texts = [_SPLITS.get(self.splits) or self._name(roles, Kind.SPLIT) or _ANNOTATIONS]
            lacking = " without one"
        elif not self.kept:
            return hashed
        parts = ((self.kept, "as in the dataset that is updated"), (self.unassigned, hashed))
        texts += [f"{format_count(rows, 'row')}{lacking} {how}" for rows, how in parts if rows]
        return "; ".join(texts)

    def _describe_features(self) -> str:
        inputs = (Kind.INTEGER.value, Kind.FLOAT.value, Kind.STRING.value)
        return list_first([f"{n} ({kind})" for n, kind in self.columns.items() if kind in inputs])


def _make_visible(rows: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(what, make_visible(how, max_characters=1000)) for what, how in rows if how]


def join_class_ids(parts: Iterable[ReadAs]) -> dict[str, str]:
    """Returns the ids of classes of several sources; the first counts where they contradict."""
    joined: dict[str, str] = {}
    for part in parts:
        named = {*joined.values()}
        joined |= {
            number: name
            for number, name in part.class_ids.items()
            if number not in joined and name not in named
        }
    return joined


def list_read_as(read_as: ReadAs) -> list[Fact]:
    """Returns it as facts, where doubts were said with their hints before."""
    (_, form), *others = read_as._list_facts()
    others += _make_visible(("doubt", f"{each.name}: {each.text}") for each in read_as.doubts)
    return [Fact("Read as", form), *(Fact(f"  {what}", how) for what, how in others)]


def format_doubts(read_as: ReadAs) -> list[str]:
    """Returns a line for each doubt, with its hint."""
    return [make_visible(f"Doubt: {doubt}", max_characters=1000) for doubt in read_as.doubts]


def explain_reading(read_as: ReadAs | None) -> list[str]:
    """Returns lines about what may be the reason of rejects: the form, and the doubts."""
    if read_as is None:
        return []
    return [f"The source was read as {read_as.describe_form()}.", *format_doubts(read_as)]


def write_read_as(folder: str, read_as: ReadAs) -> None:
    """Writes `read-as.json` into a folder."""
    storage.write_bytes(storage.join(folder, READ_AS_FILE), read_as.to_json().encode())


def read_read_as(folder: str) -> ReadAs | None:
    """Reads `read-as.json` of a manifest or a dataset; None where there is none, as in older ones.

    Raises:
        DataError: It is damaged.
        OSError: It cannot be read.
    """
    path = storage.join(folder, READ_AS_FILE)
    try:
        return storage.read_json(path, ReadAs, _MAX_BYTES)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise DataError(f"{path} is damaged: {error}.", "Convert the source again.") from error
