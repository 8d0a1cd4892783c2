"""The result of a conversion, as values and as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from darkroom import storage
from darkroom.dataset import layout
from darkroom.dataset.commit import Dataset, Decisions
from darkroom.dataset.index_queries import count_classes
from darkroom.dataset.labels import format_unannotated
from darkroom.dataset.layout import INDEX_FOLDER
from darkroom.dataset.manifest import Manifest
from darkroom.dataset.objects import ObjectCounts
from darkroom.dataset.read_as import ReadAs, list_read_as
from darkroom.dataset.rejects import count_rejected_objects, count_rejects
from darkroom.errors import DataError
from darkroom.runtime import by_name
from darkroom.runtime.class_table import describe_classes, format_missing_classes
from darkroom.runtime.result import Outcome, Result, ResultRow, list_facts
from darkroom.runtime.text import format_count
from darkroom.targets.kind import find_kind

_NO_COLUMN = "no column names them"


@dataclass(frozen=True, repr=False)
class ConversionResult(Result):
    """The result of a conversion.

    Attributes:
        output_dir: The dataset.
        rows: Rows of the source: written + all rejected + deduplicated.
        written: Records written.
        rejected: Number of rejected rows by reason code.
        deduplicated: Rows dropped because another says the same, or because they are excluded.
        splits: Records by split.
        shards: Number of files of records.
        labels: The label map.
        classes: Records by split, then by label; "" means no label. Empty while nothing is
            written, and when the index cannot be read.
        fingerprint: Fingerprint of the dataset; empty while a remote job runs.
        already_complete: Whether the output existed before, and nothing was done.
        job_id: Id of the remote job, when it was not waited for; "" after a dry run.
        excluded: How many of the deduplicated rows a list excludes.
        merged: How many of them had different values in further columns from the row that was kept.
        replaced: How many images of the dataset an appended list says otherwise.
        data_dir: The folder of the dataset's files: on a store a folder in `output_dir`, elsewhere
            the same.
        numbers: The names of the numbers, where images are labelled with numbers.
        decisions: The decisions that were applied, as in `dataset.json`; None without any.
        read_as: How the source was read; None where an older version read it.
        objects: Numbers of the objects, as in `dataset.json`; None for targets without objects.
        rejected_objects: Number of rejected objects by reason code, alone or with their image.
    """

    output_dir: str
    rows: int
    written: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    deduplicated: int = 0
    splits: Mapping[str, int] = field(default_factory=dict)
    shards: int = 0
    labels: tuple[str, ...] = ()
    classes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    fingerprint: str = ""
    already_complete: bool = False
    job_id: str | None = None
    excluded: int = 0
    merged: int = 0
    replaced: int = 0
    data_dir: str = ""
    numbers: tuple[str, ...] = ()
    decisions: Decisions | None = None
    read_as: ReadAs | None = None
    objects: ObjectCounts | None = None
    rejected_objects: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Sets the folder of the files where it is not another one."""
        object.__setattr__(self, "data_dir", self.data_dir or self.output_dir)

    @property
    def num_rejected(self) -> int:
        """Number of rejected rows, of all reasons."""
        return sum(self.rejected.values())

    @property
    def has_rejects(self) -> bool:
        """Whether a row was rejected, or an object."""
        return bool(self.rejected or self.rejected_objects)

    @property
    def is_unlabelled(self) -> bool:
        """Whether there are records, and nothing says what they are labelled with."""
        return bool(self.classes and not (self.labels or self.numbers or self.objects))

    @property
    def unannotated(self) -> dict[str, int]:
        """Records by split that are not annotated, where others may be."""
        counts = {} if self.is_unlabelled else self.classes
        return {name: found[""] for name, found in counts.items() if "" in found}

    @property
    def rejects_path(self) -> str:
        """Path of the rejected rows: a manifest that can be converted when they are fixed."""
        return storage.join(self.data_dir, layout.REJECTS_LIST_FILE)

    @property
    def index_dir(self) -> str:
        """Folder of the record index."""
        return storage.join(self.data_dir, INDEX_FOLDER)

    def to_dict(self) -> dict[str, Any]:
        """Returns the result as values that JSON knows."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        values |= {"rejected": dict(self.rejected), "splits": dict(self.splits)}
        values |= {"labels": list(self.labels), "rejects_path": self.rejects_path}
        values["numbers"] = list(self.numbers)
        values["read_as"] = dataclasses.asdict(self.read_as) if self.read_as else None
        if self.objects is None:
            del values["objects"], values["rejected_objects"]
        else:
            values["objects"] = dataclasses.asdict(self.objects)
        values["classes"] = {split: dict(counts) for split, counts in self.classes.items()}
        return values

    def __repr__(self) -> str:
        splits = "".join(f", {split}={count:,}" for split, count in self.splits.items())
        source = f" ({_NO_COLUMN})" if self.is_unlabelled else ""
        return (
            f"ConversionResult({self.output_dir!r}, rows={self.rows:,}, written={self.written:,}, "
            f"rejected={self.num_rejected:,}, deduplicated={self.deduplicated:,}{splits}, "
            f"labels={len(self.labels):,}{source})"
        )

    def describe(self) -> Outcome:
        """Returns what it says to people."""
        if self.job_id is not None:
            what = f"{format_count(self.rows, 'row')} to {self.output_dir}"
            done = f"Submitted as {self.job_id}" if self.job_id else "Submitted nothing (a dry run)"
            return Outcome(done.split()[0], [f"{done}: {what}."])
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in self.rejected.items())
        splits = ", ".join(f"{split} {count:,}" for split, count in self.splits.items())
        shards = format_count(self.shards, "shard")
        merged = f"  ({self.merged:,} with other values)" if self.merged else ""
        facts = {
            "Rows in": f"{self.rows:,}",
            "Written": f"{self.written:,}  ({splits}) in {shards}",
            "Rejected": f"{self.num_rejected:,}" + (f"  ({reasons})" if reasons else ""),
            "Duplicates": f"{self.deduplicated - self.excluded:,}{merged}",
            "Excluded": f"{self.excluded:,}" if self.excluded else "",
            "Replaced": f"{self.replaced:,}  (as the list says them)" if self.replaced else "",
        }
        facts |= self._describe_objects()
        missing = format_missing_classes(self.classes, self.labels, self.numbers)
        unlabelled = f"The records have no labels: {_NO_COLUMN}." if self.is_unlabelled else ""
        places = {
            "Dataset": self.output_dir,
            "Rejects": self.rejects_path if self.has_rejects else "",
            "Missing": f"{missing} {unlabelled}".strip(),
            "Unknown": format_unannotated(self.unannotated),
        }
        rows: list[ResultRow] = [
            *(["Already complete: nothing was done."] if self.already_complete else []),
            *(list_read_as(self.read_as) if self.read_as else []),
            *list_facts(facts),
            describe_classes(self.classes, self.labels, self.numbers),
            *list_facts(places),
        ]
        written = f"{format_count(self.written, 'record')} in {shards}"
        done = "Already complete" if self.already_complete else "Converted"
        return Outcome(f"{done}: {written}", rows)

    def _repr_html_(self) -> str:
        """Returns it as a notebook shows it, with some of its images, which are read for that."""
        where = self.data_dir or self.output_dir
        show = by_name.find("show_records")
        shown = self.written and show(where, self.index_dir, fingerprint=self.fingerprint)
        return self.describe()._replace(more=[shown or None]).to_card()

    def _describe_objects(self) -> dict[str, str]:
        """Returns the facts about objects; none for targets without objects."""
        if self.objects is None:
            return {}
        found = self.objects
        reasons = ", ".join(f"{name} {count:,}" for name, count in self.rejected_objects.items())
        cut = f"  ({found.cut:,} cut at the edge of the image)" if found.cut else ""
        return {
            "Objects in": f"{found.read:,}",
            "Objects out": f"{found.written:,}{cut}",
            "Lost": f"{found.rejected:,}" + (f"  ({reasons})" if reasons else ""),
            "Merged": f"{found.merged:,}" if found.merged else "",
            "Left out": f"{found.deduplicated:,}" if found.deduplicated else "",
        }


class TooManyRejectsError(DataError):
    """Too many rows were rejected, so the conversion was not committed.

    Attributes:
        result: Its result; nothing counts as written, except by an earlier run that allowed more.
    """

    def __init__(self, message: str, hint: str, result: ConversionResult) -> None:
        super().__init__(message, hint)
        self.result = result

    def __reduce__(self) -> tuple[object, ...]:
        """Keeps the result when the error is pickled."""
        return (type(self), (self.message, self.hint, self.result))


def describe_dataset(
    output_dir: str, dataset: Dataset, manifest: Manifest, already_complete: bool = False
) -> ConversionResult:
    """Returns the result of the conversion that committed the dataset of a manifest."""
    classes: dict[str, dict[str, int]] = {}
    kind = find_kind(dataset.target.kind)
    # The dataset is complete; `darkroom verify` says what is wrong with its index.
    with suppress(OSError, DataError):
        index = storage.join(output_dir, INDEX_FOLDER)
        classes = count_classes(index, dataset.labels, kind.list_names)
    return ConversionResult(
        output_dir=output_dir,
        rows=dataset.rows,
        written=dataset.written,
        rejected=count_rejects(output_dir),
        deduplicated=dataset.deduplicated,
        splits={name: split.records for name, split in dataset.splits.items()},
        shards=sum(len(split.shards) for split in dataset.splits.values()),
        labels=dataset.labels,
        numbers=dataset.target.names,
        classes=classes,
        fingerprint=dataset.fingerprint,
        already_complete=already_complete,
        excluded=manifest.excluded,
        merged=manifest.merged,
        replaced=manifest.replaced,
        decisions=dataset.decisions,
        read_as=manifest.read_as,
        objects=dataset.objects,
        rejected_objects=count_rejected_objects(output_dir, kind.count) if dataset.objects else {},
    )
