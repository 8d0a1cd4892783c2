"""The result of a conversion, as values and as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from darkroom import storage
from darkroom.dataset import layout
from darkroom.dataset.commit import Dataset
from darkroom.dataset.layout import INDEX_FOLDER
from darkroom.dataset.rejects import count_rejects
from darkroom.errors import DataError
from darkroom.runtime.text import format_count


@dataclass(frozen=True)
class ConversionResult:
    """What a conversion did.

    Attributes:
        output_dir: The dataset.
        rows: Rows of the source: written + all rejected + deduplicated.
        written: Records written.
        rejected: Number of rejected rows by reason code.
        deduplicated: Rows dropped because another says the same, or because they are excluded.
        splits: Records by split.
        shards: Number of files of records.
        labels: The label map.
        fingerprint: Fingerprint of the dataset; empty while a remote job runs.
        already_complete: Whether the output was there before, and nothing was done.
        job_id: Id of the remote job, when it was not waited for.
        excluded: How many of the deduplicated rows a list excludes.
    """

    output_dir: str
    rows: int
    written: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    deduplicated: int = 0
    splits: Mapping[str, int] = field(default_factory=dict)
    shards: int = 0
    labels: tuple[str, ...] = ()
    fingerprint: str = ""
    already_complete: bool = False
    job_id: str | None = None
    excluded: int = 0

    @property
    def num_rejected(self) -> int:
        """Number of rejected rows, of all reasons."""
        return sum(self.rejected.values())

    @property
    def rejects_path(self) -> str:
        """Path of the rejected rows: a manifest that can be converted when they are fixed."""
        return storage.join(self.output_dir, layout.REJECTS_LIST_FILE)

    @property
    def index_dir(self) -> str:
        """Folder of the record index."""
        return storage.join(self.output_dir, INDEX_FOLDER)

    def to_dict(self) -> dict[str, Any]:
        """Returns the result as values that JSON knows."""
        names = (field.name for field in dataclasses.fields(self) if field.name != "labels")
        values = {name: getattr(self, name) for name in names}
        values |= {"rejected": dict(self.rejected), "splits": dict(self.splits)}
        return values


def format_conversion(result: ConversionResult) -> str:
    """Returns the result as text for a terminal."""
    if result.job_id:
        rows = format_count(result.rows, "row")
        return f"Submitted as {result.job_id}: {rows} to {result.output_dir}."
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in result.rejected.items())
    splits = ", ".join(f"{split} {count:,}" for split, count in result.splits.items())
    head = "Already complete: nothing was done.\n" if result.already_complete else ""
    lines = [
        f"{head}Rows in    {result.rows:,}",
        f"Written    {result.written:,}  ({splits}) in {format_count(result.shards, 'shard')}",
        f"Rejected   {result.num_rejected:,}" + (f"  ({reasons})" if reasons else ""),
        f"Duplicates {result.deduplicated - result.excluded:,}",
        *([f"Excluded   {result.excluded:,}"] if result.excluded else []),
        f"Labels     {len(result.labels)}",
        f"Dataset    {result.output_dir}",
    ]
    if result.num_rejected:
        lines.append(f"Rejects    {result.rejects_path}")
    return "\n".join(lines)


class TooManyRejectsError(DataError):
    """Too many rows were rejected, so the conversion was not committed.

    Attributes:
        result: What it did; nothing counts as written.
    """

    def __init__(self, message: str, hint: str, result: ConversionResult) -> None:
        super().__init__(message, hint)
        self.result = result

    def __reduce__(self) -> tuple[object, ...]:
        """Keeps the result when the error is pickled."""
        return (type(self), (self.message, self.hint, self.result))


def describe_dataset(
    output_dir: str, dataset: Dataset, excluded: int, already_complete: bool = False
) -> ConversionResult:
    """Returns the result of the conversion that committed a dataset, and excluded some rows."""
    return ConversionResult(
        output_dir=output_dir,
        rows=dataset.rows,
        written=dataset.written,
        rejected=count_rejects(output_dir),
        deduplicated=dataset.deduplicated,
        splits={name: split.records for name, split in dataset.splits.items()},
        shards=sum(len(split.shards) for split in dataset.splits.values()),
        labels=dataset.labels,
        fingerprint=dataset.fingerprint,
        already_complete=already_complete,
        excluded=excluded,
    )
