"""The commit of a dataset: `dataset.json`, written last.

A folder without a valid `dataset.json` is not a dataset. The file has no time, host or path in it,
so that equal input and options give equal files.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypedDict

import msgspec

from darkroom import storage
from darkroom.dataset.checksums import FileSum, sum_bytes, write_sums
from darkroom.dataset.labels import format_labels
from darkroom.dataset.layout import (
    DATASET_FILE,
    INDEX_FOLDER,
    LABELS_FILE,
    REJECTS_FILE,
    REJECTS_LIST_FILE,
    SUMS_FILE,
    WORK_FOLDER,
    Folders,
    index_file,
    split_folder,
)
from darkroom.dataset.objects import ObjectCounts
from darkroom.dataset.pointer import find_data, parse_pointer
from darkroom.errors import DataError, MissingPathError
from darkroom.runtime.json_values import (
    Count,
    Identifier,
    Names,
    Sha256,
    Share,
    Text,
    build_value,
    check_possible,
    check_some,
)
from darkroom.runtime.text import MAX_LISTED_ROWS

FORMAT_VERSION = 3
_MAX_COMMIT_BYTES = 1 << 26
_COMMIT_FIELDS = frozenset(("format_version", "fingerprint", "features", "splits"))
# Files that a conversion writes beside the splits before it commits.
_MARKS = frozenset((WORK_FOLDER, INDEX_FOLDER, LABELS_FILE, REJECTS_FILE))
_FEATURE_TYPES = ("bytes", "int64", "float")
_CHECKS = ("full", "header")
_ImageChecks = Annotated[str, lambda value: check_possible(value, value in _CHECKS)]


class Decisions(TypedDict):
    """The file of decisions that was applied, and how many of each action were.

    Of those that were not, `changed` are about images with other bytes, and `gone` about images
    that are not in the source.
    """

    sha256: Sha256
    counts: dict[str, Count]


class Feature(TypedDict):
    """The type of a feature of a record: `bytes`, `int64` or `float`."""

    type: Annotated[str, lambda value: check_possible(value, value in _FEATURE_TYPES)]


@dataclass(frozen=True)
class Shard:
    """A file of records.

    Attributes:
        file: Its path below the dataset.
        records: Number of its records.
        bytes: Its length.
        sha256: SHA-256 of its bytes, hexadecimal.
    """

    file: Text
    records: Count
    bytes: Count
    sha256: Sha256


@dataclass(frozen=True)
class SplitShards:
    """The shards of a split.

    Attributes:
        records: Number of records in all shards.
        shards: The shards in order.
    """

    records: Count
    shards: tuple[Shard, ...]


@dataclass(frozen=True)
class SideFile:
    """A file beside the shards.

    Attributes:
        rows: Its rows or lines.
        sha256: SHA-256 of its bytes, hexadecimal; None for a file that names URIs, or whose bytes
            depend on the version of pyarrow: `SHA256SUMS` has its hash.
    """

    rows: Count
    sha256: Sha256 | None = None


@dataclass(frozen=True)
class Target:
    """What an image is labelled with.

    Attributes:
        kind: Its kind; see `darkroom.targets`.
        names: Names of the numbers of a kind that has several; else empty.
    """

    kind: Identifier = "label"
    names: Names = ()


@dataclass(frozen=True)
class Dataset:
    """The content of a dataset.

    Attributes:
        format_version: Version of this file's form.
        fingerprint: SHA-256 of everything else in this file, and so of all records.
        options: The options that it was made with.
        checks: `full` or `header`: whether every image was decoded completely before writing.
        features: Type (`bytes`, `int64`, `float`) of every feature of a record by name.
        labels: The label map.
        rows: Rows of the source: written + rejected + deduplicated.
        written: Records in all splits.
        rejected: Rejected rows.
        deduplicated: Rows dropped because another row is the same.
        splits: Each split's shards, in the order train, eval, test.
        files: The files beside the shards, by their paths below the dataset. In TFX the index and
            the rejects are in separate artifacts, under the same names.
        targets: What an image is labelled with, by the name of the column in the index.
        max_rejects: Share of rejected rows that the user allowed; None for the default. It is not
            a part of the fingerprint.
        decisions: The decisions that were applied; None without any.
        objects: Numbers of the objects; None for targets without objects.
    """

    format_version: int
    fingerprint: Sha256
    options: dict[str, Any]
    checks: _ImageChecks
    features: dict[str, Feature]
    labels: Names
    rows: Count
    written: Count
    rejected: Count
    deduplicated: Count
    splits: dict[str, SplitShards]
    files: dict[str, SideFile] = field(default_factory=dict)
    targets: Annotated[dict[str, Target], check_some] = field(
        default_factory=lambda: {"label": Target()}
    )
    max_rejects: Share | None = None
    decisions: Decisions | None = None
    objects: ObjectCounts | None = None

    @property
    def target(self) -> Target:
        """What an image is labelled with."""
        return next(iter(self.targets.values()))

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The shards of all splits, in order."""
        return tuple(shard for split in self.splits.values() for shard in split.shards)

    @property
    def index_files(self) -> list[str]:
        """The names of the files of the index, one for each shard."""
        total = len(self.shards)
        return [index_file(number, total) for number in range(total)]

    def to_fields(self) -> dict[str, Any]:
        """Returns the dataset as values for JSON."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        for name in ("max_rejects", "decisions", "objects"):
            if fields[name] is None:
                del fields[name]
        return fields

    def list_files(self) -> dict[str, SideFile]:
        """Returns the files that the dataset must have beside its shards, by path."""
        index = zip(self.index_files, self.shards, strict=True)
        hashed = hashlib.sha256(format_labels(self.labels).encode()).hexdigest()
        rejects = SideFile(self.rejected + (self.objects.alone if self.objects else 0))
        return {
            LABELS_FILE: SideFile(len(self.labels), hashed),
            **{f"{INDEX_FOLDER}/{name}": SideFile(shard.records) for name, shard in index},
            REJECTS_FILE: rejects,
            REJECTS_LIST_FILE: rejects,
        }

    def with_files(self) -> Dataset:
        """Returns the dataset with these files."""
        return replace(self, files=self.list_files()).with_fingerprint()

    def with_fingerprint(self) -> Dataset:
        """Returns the dataset with the fingerprint that its other fields give."""
        fields = replace(self, max_rejects=None).to_fields()
        del fields["fingerprint"]
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        return replace(self, fingerprint=hashlib.sha256(text.encode()).hexdigest())


def write_commit(
    folders: Folders,
    dataset: Dataset,
    index: Mapping[str, FileSum],
    rejects: Mapping[str, FileSum],
    sidecars: Mapping[str, FileSum] | None = None,
) -> None:
    """Writes `SHA256SUMS`, and `dataset.json` last.

    Index and rejects in the folder of the dataset are listed there. In TFX they are separate
    artifacts, each with a list.

    Args:
        folders: The folders of the dataset.
        dataset: Its commit.
        index: The sums of the index by name; none when it is not here.
        rejects: The sums of the rejects by name; none when they are not here.
        sidecars: The sums of files for other readers, by path.
    """
    sums = {
        DATASET_FILE: sum_bytes(format_dataset(dataset).encode()),
        LABELS_FILE: sum_bytes(format_labels(dataset.labels).encode()),
        **{shard.file: FileSum(shard.bytes, shard.sha256) for shard in dataset.shards},
        **(sidecars or {}),
    }
    paths = {storage.join(folders.examples, name): each for name, each in sums.items()}
    paths |= {storage.join(folders.index, name): each for name, each in index.items()}
    paths |= {storage.join(folders.rejects, name): each for name, each in rejects.items()}
    lists: defaultdict[str, dict[str, FileSum]] = defaultdict(dict)
    for path, each in paths.items():
        roots = (folders.examples, folders.index, folders.rejects)
        root = next(root for root in roots if path.startswith(f"{root}/"))
        lists[root][path[len(root) + 1 :]] = each
    for root, listed in lists.items():
        write_sums(root, listed, folders.find_part(storage.join(root, SUMS_FILE)))
    part = folders.find_part(storage.join(folders.examples, DATASET_FILE))
    write_dataset(folders.examples, dataset, part)


def write_dataset(folder: str, dataset: Dataset, part: str | None = None) -> None:
    """Commits a dataset; everything that it names must be on disk already."""
    path = storage.join(folder, DATASET_FILE)
    storage.write_bytes(path, format_dataset(dataset).encode(), part or storage.find_part(path))


def format_dataset(dataset: Dataset) -> str:
    """Returns the text of a commit."""
    return json.dumps(dataset.to_fields(), indent=2) + "\n"


def read_dataset(folder: str) -> Dataset:
    """Reads the commit of a dataset, as `read_output` does."""
    return read_output(folder)[1]


def read_output(folder: str) -> tuple[str, Dataset]:
    """Reads the commit of a dataset; that of an output on a store is in the folder that it names.

    Returns:
        The folder of the dataset's files, and its commit.

    Raises:
        DataError: The folder has none, or one that is damaged or of another format.
        MissingPathError: There is no folder.
    """
    path = storage.join(folder, DATASET_FILE)
    try:
        data = storage.read_bytes(path, _MAX_COMMIT_BYTES)
    except (FileNotFoundError, NotADirectoryError) as error:
        if not storage.exists(folder):
            raise storage.build_missing_error(folder) from error
        hint = "Give the output folder of a finished conversion."
        if storage.exists(storage.join(folder, WORK_FOLDER)):
            hint = "A conversion into it was begun and has not finished: run it again."
            if storage.exists(storage.join(folder, REJECTS_LIST_FILE)):
                from darkroom.dataset.rejects import LIMIT_OPTION

                too_much = f"If {REJECTS_LIST_FILE} there lists too much, fix it first"
                hint += f" {too_much}, or allow more with {LIMIT_OPTION}."
        raise DataError(f"{folder} is not a dataset: it has no {DATASET_FILE}.", hint) from error
    except storage.FileTooLargeError as error:
        raise damaged(folder, path, f"it has more than {_MAX_COMMIT_BYTES:,} bytes") from error
    try:
        fields = json.loads(data, object_pairs_hook=_refuse_repeats)
        if pointer := parse_pointer(fields):
            return storage.join(folder, pointer["dataset"]), _read_named(folder, path, pointer)
        _check_format(path, fields)
        dataset = build_value(fields, Dataset)
        contradiction = next(_find_contradictions(dataset), "")
    except (ValueError, RecursionError) as error:
        raise damaged(folder, path, f"it cannot be read ({error})") from error
    if contradiction:
        raise damaged(folder, path, contradiction)
    return folder, dataset


def _read_named(folder: str, path: str, pointer: Mapping[str, Any]) -> Dataset:
    """Reads the commit in the folder that an output on a store names."""
    data = storage.join(folder, pointer["dataset"])
    if find_data(data) != data:
        raise damaged(folder, path, "it names a folder that names another one")
    try:
        dataset = read_dataset(data)
    except MissingPathError as error:
        what = f"it names {pointer['dataset']}, which does not exist"
        raise damaged(folder, path, what) from error
    if dataset.fingerprint != pointer["fingerprint"]:
        what = f"its fingerprint is not that of the dataset in {pointer['dataset']}"
        raise damaged(folder, path, what)
    return dataset


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name is in it twice")
    return fields


def _check_format(path: str, fields: Any) -> None:
    version = fields.get("format_version") if isinstance(fields, dict) else None
    if type(version) is int and version != FORMAT_VERSION:
        raise DataError(
            f"{path} has format {version}, expected {FORMAT_VERSION}.",
            "Convert its source again, into another folder.",
        )


def _find_contradictions(dataset: Dataset) -> Iterator[str]:
    """Yields values that cannot be true, although each field has a possible value."""
    if dataset.with_fingerprint().fingerprint != dataset.fingerprint:
        yield "its fingerprint does not match its other fields"
    if strays := _find_strays(dataset):
        yield f"it names files outside their splits, or a file twice: {strays[:MAX_LISTED_ROWS]}"
    counts = {name: sum(s.records for s in split.shards) for name, split in dataset.splits.items()}
    rows = dataset.written + dataset.rejected + dataset.deduplicated
    if (
        any(split.records != counts[name] for name, split in dataset.splits.items())
        or sum(counts.values()) != dataset.written
        or rows != dataset.rows
    ):
        yield (
            f"it does not add up: {dataset.rows} rows, {dataset.written} written, "
            f"{dataset.rejected} rejected, {dataset.deduplicated} deduplicated; records in shards: "
            f"{counts}"
        )
    if dataset.files != dataset.list_files():
        yield "its files are not those of its shards, labels and rejects"


def is_commit(path: str) -> bool:
    """Tells whether a file is a commit, intact or damaged; other tools use its name, too."""
    try:
        fields = storage.read_json(path, dict[str, Any], _MAX_COMMIT_BYTES)
        return bool(parse_pointer(fields)) or fields.keys() >= _COMMIT_FIELDS
    except (*storage.UNUSABLE, ValueError):
        return False


def _find_strays(dataset: Dataset) -> list[str]:
    """Returns the shards outside the folder of their split, and those named twice."""
    strays = []
    for name, split in dataset.splits.items():
        seen = {"", ".", ".."}
        for shard in split.shards:
            folder, _, file = shard.file.rpartition("/")
            if folder != split_folder(name) or "/" in name or file in seen:
                strays.append(shard.file)
            seen.add(file)
    return strays


def find_dataset(folder: str) -> Dataset | None:
    """Reads the commit of a folder of Examples, which another tool may have written.

    Returns:
        The commit; None when it is missing without a sign that darkroom wrote into the folder.

    Raises:
        DataError: The commit is damaged, or darkroom wrote into the folder without a commit.
    """
    if not storage.exists(storage.join(folder, DATASET_FILE)):
        marks = sorted(_MARKS.intersection(storage.list_folder(folder)))
        if not marks:
            return None
        raise DataError(
            f"{folder} is not a dataset: it has {', '.join(marks)} but no {DATASET_FILE}, so its "
            "conversion did not finish.",
            "Run the conversion again.",
        )
    return read_dataset(folder)


def damaged(folder: str, path: str, what: str) -> DataError:
    """Returns the error for a file of the dataset in a folder that is not as it was committed."""
    return DataError(
        f"{path} is damaged: {what}.",
        f"List all faults with: darkroom verify {folder}. Restore the files that it names, or "
        "delete them and convert the source again, with overwrite (--overwrite) into the same "
        "folder.",
    )
