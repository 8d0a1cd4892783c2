"""The commit of a dataset: `dataset.json`, written last.

A folder without a valid `dataset.json` is not a dataset. The file has no time, host or path in it,
so that equal input and options give equal files.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from darkroom import storage
from darkroom.dataset.layout import (
    DATASET_FILE,
    INDEX_FOLDER,
    LABELS_FILE,
    REJECTS_FILE,
    WORK_FOLDER,
    split_folder,
)
from darkroom.errors import DataError
from darkroom.runtime.text import MAX_LISTED_ROWS

FORMAT_VERSION = 1
_MAX_COMMIT_BYTES = 1 << 26
_COMMIT_FIELDS = frozenset(("format_version", "fingerprint", "features", "splits"))
# What a conversion writes beside the splits before it commits.
_MARKS = frozenset((WORK_FOLDER, INDEX_FOLDER, LABELS_FILE, REJECTS_FILE))


@dataclass(frozen=True)
class Shard:
    """A file of records.

    Attributes:
        file: Its path below the dataset.
        records: Number of its records.
        bytes: Its length.
        sha256: SHA-256 of its bytes, hexadecimal.
    """

    file: str
    records: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Split:
    """The shards of a split.

    Attributes:
        records: Number of records in all shards.
        shards: The shards in order.
    """

    records: int
    shards: tuple[Shard, ...]


@dataclass(frozen=True)
class Dataset:
    """What a dataset holds.

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
    """

    format_version: int
    fingerprint: str
    options: dict[str, Any]
    checks: str
    features: dict[str, dict[str, str]]
    labels: tuple[str, ...]
    rows: int
    written: int
    rejected: int
    deduplicated: int
    splits: dict[str, Split]

    def with_fingerprint(self) -> Dataset:
        """Returns the dataset with the fingerprint that its other fields give."""
        fields = asdict(self)
        del fields["fingerprint"]
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        return replace(self, fingerprint=hashlib.sha256(text.encode()).hexdigest())


def write_dataset(folder: str, dataset: Dataset) -> None:
    """Commits a dataset; everything that it names must be on disk already."""
    path = storage.join(folder, DATASET_FILE)
    storage.write_bytes(path, format_dataset(dataset).encode(), known_part=True)


def format_dataset(dataset: Dataset) -> str:
    """Returns the text of a commit."""
    return json.dumps(asdict(dataset), indent=2) + "\n"


def read_dataset(folder: str) -> Dataset:
    """Reads the commit of a dataset.

    Raises:
        DataError: The folder has none, or one that is damaged or of another format.
        MissingPathError: There is no folder.
    """
    path = storage.join(folder, DATASET_FILE)
    try:
        fields = json.loads(storage.read_bytes(path))
        fields["labels"] = tuple(fields["labels"])
        fields["splits"] = {
            name: Split(split["records"], tuple(Shard(**shard) for shard in split["shards"]))
            for name, split in fields["splits"].items()
        }
        dataset = Dataset(**fields)
        strays = _find_strays(dataset)
    except (FileNotFoundError, NotADirectoryError) as error:
        if not storage.exists(folder):
            raise storage.build_missing_error(folder) from error
        raise DataError(
            f"{folder} is not a dataset: it has no {DATASET_FILE}.",
            "Give the output folder of a finished conversion.",
        ) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _damaged(path, f"it cannot be read ({error})") from error
    if dataset.format_version != FORMAT_VERSION:
        raise _damaged(path, f"its format is {dataset.format_version}, expected {FORMAT_VERSION}")
    if dataset.with_fingerprint().fingerprint != dataset.fingerprint:
        raise _damaged(path, "its fingerprint does not match its other fields")
    if strays:
        raise _damaged(
            path,
            f"it names files outside their splits, or a file twice: {strays[:MAX_LISTED_ROWS]}",
        )
    return dataset


def is_commit(path: str) -> bool:
    """Tells whether a file is a commit, intact or damaged; other tools use its name, too."""
    try:
        fields = json.loads(storage.read_bytes(path, _MAX_COMMIT_BYTES))
    except (*storage.UNUSABLE, ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and fields.keys() >= _COMMIT_FIELDS


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
        The commit; None when there is none, and no sign that darkroom wrote into the folder.

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


def check_files(folder: str, dataset: Dataset) -> None:
    """Checks that the split folders have exactly the shards of the commit, by name and size.

    Raises:
        DataError: A shard is missing, has another size, or there is another file.
    """
    known = {split_folder(name) for name in dataset.splits}
    if unknown := sorted(set(list_split_folders(folder)) - known):
        raise _damaged(
            folder, f"it has splits that the commit does not name: {unknown[:MAX_LISTED_ROWS]}"
        )
    for name, split in dataset.splits.items():
        expected = {shard.file.rpartition("/")[2]: shard for shard in split.shards}
        inside = storage.join(folder, split_folder(name))
        found = storage.list_folder(inside)
        if missing := sorted(set(expected) - set(found)):
            raise _damaged(inside, f"shards are missing: {missing[:MAX_LISTED_ROWS]}")
        if extra := sorted(set(found) - set(expected)):
            raise _damaged(
                inside, f"it has files that the commit does not name: {extra[:MAX_LISTED_ROWS]}"
            )
        for file, shard in expected.items():
            size = storage.stat_file(storage.join(inside, file)).size_bytes
            if size != shard.bytes:
                raise _damaged(f"{inside}/{file}", f"{size} bytes, expected {shard.bytes}")


def list_split_folders(folder: str) -> list[str]:
    """Returns the names of the folders in a dataset that are read as splits."""
    prefix = split_folder("")
    return [name for name in storage.list_folder(folder) if name.startswith(prefix)]


def _damaged(path: str, what: str) -> DataError:
    return DataError(
        f"{path} is damaged: {what}.",
        "List all faults with darkroom verify. Restore the files that it names, or delete them and "
        "convert the source again, with overwrite (--overwrite) into the same folder.",
    )
