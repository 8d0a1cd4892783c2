"""The manifest: the rows of a source in the order of their shards.

    FOLDER/
      manifest.parquet   one row for each example, ordered by (split, span, hash(seed, key), key)
      labels.txt         one label a line, in the order of their numbers
      manifest.json      counts, and the kinds of the columns
      read-as.json       how the source was read

A contiguous range of rows is a shard and a random sample of its span of its split.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.dataset import labels, layout
from darkroom.dataset.columns import list_values
from darkroom.dataset.commit import Decisions, Target
from darkroom.dataset.index import OPTIONAL_COLUMNS
from darkroom.dataset.named import find_named
from darkroom.dataset.objects import ObjectCounts
from darkroom.dataset.read_as import ReadAs, read_read_as, write_read_as
from darkroom.dataset.splits import SPLITS
from darkroom.errors import DataError, StorageError
from darkroom.runtime.json_values import build_value
from darkroom.storage.parquet import KeptTables, report_damage

MANIFEST_FILE = "manifest.parquet"
MANIFEST_INFO_FILE = "manifest.json"
MANIFEST_VERSION = 2
MAX_ROW_GROUP_ROWS = 8_192
_HINT = "Run ManifestGen; if its output comes from a cache, run once with caching off."
_JPEG_NAME = r"(?i)\.(jpg|jpeg|jpe|jfif)$"


@dataclass(frozen=True)
class Manifest:
    """The facts about a manifest without its rows.

    Attributes:
        rows: Rows of the source.
        deduplicated: Rows dropped because another row says the same, or because they are excluded.
        rejected: Rejected rows.
        splits: Rows of each split that has some, in the order train, eval, test.
        labels: The label map; empty when the examples have no labels.
        inputs: Kind (`integer`, `float`, `string`) of every input column by name.
        has_images: Whether rows name images.
        has_labels: Whether rows have labels.
        target: What an image is labelled with.
        seed: Seed of the order and of the assignment to splits.
        ignored: Number of files in a source folder that are not images.
        fingerprint: Changes when a row of the source does, an image that it names, or the list of
            excluded ones or of decisions. Of rows that are appended to a dataset: when a row does
            that is planned or rejected.
        excluded: How many of the deduplicated rows a list excludes, or a decision drops.
        merged: How many of them had different values in further columns from the row that is kept.
        replaced: How many rows of the dataset that is appended to the source says otherwise.
        removed: How many rows of the dataset that is updated are not in the source.
        base: Where that dataset is: `examples`, with its fingerprint, `index` and `rejects`; empty
            without one.
        decisions: The decisions that were applied; None without any.
        read_as: How the source was read; None where nobody knows.
        objects: Numbers of the objects, of which those that are planned count as written; None for
            targets without objects.
    """

    rows: int
    deduplicated: int
    rejected: int
    splits: dict[str, int]
    labels: list[str]
    inputs: dict[str, str]
    has_images: bool
    has_labels: bool
    target: Target = field(default_factory=Target)
    seed: int = 0
    ignored: int = 0
    fingerprint: str = ""
    excluded: int = 0
    merged: int = 0
    replaced: int = 0
    removed: int = 0
    base: dict[str, str] = field(default_factory=dict)
    decisions: Decisions | None = None
    read_as: ReadAs | None = None
    objects: ObjectCounts | None = None
    format_version: int = field(default=MANIFEST_VERSION)

    @property
    def num_examples(self) -> int:
        """Rows that will be converted."""
        return sum(self.splits.values())

    def first_row(self, split: str) -> int:
        """Returns the number of the row in `manifest.parquet` where a split begins."""
        before = SPLITS[: SPLITS.index(split)]
        return sum(self.splits.get(name, 0) for name in before)

    def find_base(self) -> layout.Folders | None:
        """Returns where the dataset is that is updated; None without one.

        Raises:
            StorageError: Another dataset has replaced it.
        """
        if not self.base:
            return None
        try:
            examples = find_named(self.base["examples"])
        except StorageError as error:
            raise StorageError(
                error.message,
                "Another run has updated it meanwhile. Run again, in a pipeline with caching off.",
            ) from None
        return layout.Folders("", "", **{**self.base, "examples": examples})


def write_manifest_info(folder: str, manifest: Manifest) -> None:
    """Writes `manifest.json`, `labels.txt` and `read-as.json`."""
    labels_text = labels.format_labels(manifest.labels)
    storage.write_bytes(storage.join(folder, layout.LABELS_FILE), labels_text.encode())
    if manifest.read_as:
        write_read_as(folder, manifest.read_as)
    optional = (name for name in ("decisions", "objects") if getattr(manifest, name) is None)
    left_out = {"labels", "read_as", *optional}
    info = {key: value for key, value in asdict(manifest).items() if key not in left_out}
    text = json.dumps(info, indent=2) + "\n"
    storage.write_bytes(storage.join(folder, MANIFEST_INFO_FILE), text.encode())


def read_manifest(folder: str) -> Manifest:
    """Reads the facts about a manifest without its rows.

    Raises:
        DataError: The folder has no manifest, or one of another format.
    """
    path = storage.join(folder, MANIFEST_INFO_FILE)
    try:
        info = storage.read_json(path, dict[str, Any])
        info["labels"] = labels.read_labels(storage.join(folder, layout.LABELS_FILE))
        info["target"] = build_value(info["target"], Target)
        info["read_as"] = read_read_as(folder)
        if "objects" in info:
            info["objects"] = build_value(info["objects"], ObjectCounts)
        manifest = Manifest(**info)
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(
            f"There is no manifest in {folder}: {error}.",
            _HINT,
        ) from error
    if manifest.format_version != MANIFEST_VERSION:
        raise DataError(
            f"{path} has format {manifest.format_version}, expected {MANIFEST_VERSION}.",
            "Create the manifest again.",
        )
    return manifest


class ManifestRow(NamedTuple):
    """A row of a manifest.

    Attributes:
        key: Key of the example, 32 hexadecimal digits.
        id: The text whose hash the key is.
        uri: URI of its image; empty when it has none.
        split: `train`, `eval` or `test`.
        label: What it is labelled with, as the kind of the manifest says; None when unknown.
        label_id: The number of the label, or the numbers; None where it has none.
        row: Its number in the source.
        span: Its span.
        size: Bytes of its image when that is known.
        mtime: Version of its image when that is known.
        extra: Its input columns by name.
        group: Its group, where rows were placed by groups or classes.
        copies: URIs of files that must have the bytes of its image, which it was merged with.
        old: Where the dataset that is updated has its image, if that is unchanged: `split`,
            `shard`, `position`, `offset`, `length`, and whether the whole record `is_same`.
        ignored: With which images it is in no finding; see `manifest.changes`.
        source_id: The number that its record has as `image/source_id`; None for the key.
    """

    key: str
    id: str
    uri: str
    split: str
    label: Any
    label_id: Any
    row: int
    span: int
    size: int | None
    mtime: str | None
    extra: dict[str, Any] | None = None
    group: str | None = None
    copies: list[str] | None = None
    old: dict[str, Any] | None = None
    ignored: str | None = None
    source_id: int | None = None


def read_manifest_rows(folder: str, first: int, count: int) -> Iterator[ManifestRow]:
    """Yields rows `first` to `first + count` of a manifest, reading only their row groups."""
    for table in read_manifest_tables(folder, first, count):
        yield from list_rows(table)


def list_rows(table: pa.Table) -> Iterator[ManifestRow]:
    """Returns rows of `read_manifest_tables`, one by one."""
    columns = (
        list_values(table[name]) if name in table.column_names else repeat(None)
        for name in ManifestRow._fields
    )
    return map(ManifestRow, *columns)


def read_manifest_tables(
    folder: str, first: int, count: int, kept: KeptTables | None = None
) -> Iterator[pa.Table]:
    """Yields the same rows in tables; see `read_manifest_rows`.

    Args:
        folder: As there.
        first: As there.
        count: As there.
        kept: Keeps row groups for the next calls, up to its limit; None: each is read and let go.
    """
    with _open_manifest(folder) as parquet:
        start = 0
        for group in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(group).num_rows
            low, high = max(first - start, 0), min(first + count - start, rows)
            if low < high:
                load = partial(parquet.read_row_group, group)
                table = kept.read((folder, group), load) if kept else load()
                yield table.slice(low, high - low)
            start += rows


@contextmanager
def _open_manifest(folder: str) -> Iterator[pq.ParquetFile]:
    """Opens the rows of a manifest; what is wrong with them in the block is a `DataError`."""
    path = storage.join(folder, MANIFEST_FILE)
    with storage.open_read(path) as file, report_damage(f"{path} is damaged", _HINT):
        yield pq.ParquetFile(file)


def read_manifest_columns(folder: str, names: Sequence[str]) -> list[npt.NDArray[Any]]:
    """Returns columns of numbers of all rows, [N] each; NaN where a row has none."""
    with _open_manifest(folder) as parquet:
        table = parquet.read(columns=list(names))
        return [table[name].to_numpy() for name in names]


def read_old_places(folder: str) -> pa.Table:
    """Returns the fields of the column `old` of all rows; see `ManifestRow`."""
    with _open_manifest(folder) as parquet:
        return flatten_old(parquet.read(columns=["old"]))


def flatten_old(rows: pa.Table) -> pa.Table:
    """Returns the fields of the column `old` of rows."""
    table = rows.select(["old"]).flatten()
    return table.rename_columns([name.removeprefix("old.") for name in table.column_names])


def list_optional_columns(folder: str) -> tuple[str, ...]:
    """Returns the optional columns of an index that a manifest has."""
    with _open_manifest(folder) as parquet:
        return tuple(name for name in OPTIONAL_COLUMNS if name in parquet.schema_arrow.names)


def names_only_jpegs(folder: str) -> bool:
    """Tells whether all images of a manifest have the ending of a JPEG."""
    with _open_manifest(folder) as parquet:
        return all(
            pc.all(pc.match_substring_regex(batch.column(0), _JPEG_NAME)).as_py()
            for batch in parquet.iter_batches(MAX_ROW_GROUP_ROWS, columns=["uri"])
        )
