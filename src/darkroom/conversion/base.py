"""Opens the dataset that an update starts from: its rows, and its records."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from heapq import nsmallest
from operator import itemgetter
from typing import Any

from darkroom import storage
from darkroom.conversion.output.commit import describe_options, find_codecs
from darkroom.conversion.planned_rows import list_corrected, write_planned_rows
from darkroom.conversion.shards.old_records import OldDataset
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.example import IMAGE_ENCODED
from darkroom.dataset.index import (
    find_index_files,
    read_code,
    read_index_batches,
    read_index_schema,
    read_source_fingerprint,
)
from darkroom.dataset.layout import REJECTS_FILE, Folders
from darkroom.dataset.manifest import Manifest
from darkroom.dataset.opening import check_index_files, check_shard_files
from darkroom.dataset.read_as import read_read_as
from darkroom.dataset.tfrecord import GZIP_SUFFIX
from darkroom.errors import DataError, RejectError
from darkroom.images.decoders import ImagePreparer
from darkroom.images.prepare import MAX_IMAGE_BYTES
from darkroom.manifest.base import Base
from darkroom.options.conversion import RecordOptions, UpdateOptions
from darkroom.options.image import NEVER_COPIES, ImageOptions
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime import progress
from darkroom.runtime.text import list_first
from darkroom.storage.parquet import BATCH_ROWS
from darkroom.targets.kind import find_kind
from darkroom.version import hash_code

# So many images are made again where other code or codecs made the dataset.
_COMPARED = 100
_COLUMNS = ("key", "uri", "sha256", "pixel_hash", "source_size", "source_version")


def open_base(folders: Folders, updates: UpdateOptions, scratch: str, source: object) -> Base:
    """Opens a dataset to compare its rows with those of a list.

    Args:
        folders: Where its files are.
        updates: What of it stays.
        scratch: A local folder.
        source: The list that is appended, if it is: of lost objects, it corrects them.

    Raises:
        DataError: There is no dataset, or its index is missing or damaged.
    """
    dataset = read_dataset(folders.examples)
    if folders.index.startswith(f"{folders.examples}/"):
        check_index_files(folders.examples, dataset, REJECTS_FILE)
    planned, planned_rows = "", 0
    corrected = list_corrected(source) if updates.append else frozenset()
    if updates.append:
        planned = os.path.join(scratch, "planned.jsonl")
        has_objects = dataset.objects is not None
        planned_rows = write_planned_rows(
            folders, planned, has_objects=has_objects, corrected=corrected
        )
    return Base(
        folders,
        dataset.fingerprint,
        dataset.labels,
        columns=read_index_schema(folders.index),
        allows_removals=updates.allow_removals,
        merges_spans=updates.merge_spans,
        planned=planned,
        planned_rows=planned_rows,
        completed=[f"{name}" for name, *_ in corrected],
        has_decisions=dataset.decisions is not None,
    )


def find_known_rows(
    base: Base, options: ManifestOptions, records: RecordOptions
) -> Manifest | None:
    """Returns the manifest of the dataset that is updated, as far as the dataset tells.

    With a source of its fingerprint, that is all. None if it might not be: rows were left out,
    labels are given, or records are to be made in another way. Or an older dataset does not say how
    its source was read.
    """
    dataset, read_as = read_dataset(base.folders.examples), read_read_as(base.folders.examples)
    manifest = Manifest(
        rows=dataset.rows,
        deduplicated=dataset.deduplicated,
        rejected=dataset.rejected,
        splits={name: split.records for name, split in dataset.splits.items()},
        labels=[*dataset.labels],
        inputs={},
        has_images=IMAGE_ENCODED in dataset.features,
        has_labels=bool(dataset.labels or dataset.target.names),
        target=dataset.target,
        seed=options.seed,
        fingerprint=read_source_fingerprint(base.folders.index),
        base=base.places,
        read_as=read_as and read_as.accept(options.accept),
    )
    is_same = dataset.options == describe_options(manifest, records) and not dataset.deduplicated
    has_labels = options.labels is not None or options.label_columns
    is_known = is_same and not has_labels and read_as is not None
    return manifest if is_known and manifest.fingerprint else None


def open_old_dataset(folders: Folders, options: RecordOptions, recheck: float) -> OldDataset | None:
    """Opens a dataset to take unchanged images from.

    Args:
        folders: Where its files are.
        options: How records are made.
        recheck: Share of its images, and of its shards, that are read, to see whether they have
            other bytes.

    Returns:
        The dataset; None if its images are stored in another way, or its records were made by
        other rules.

    Raises:
        DataError: Its files are missing or damaged. Or an image has other bytes, but the same size
            and time.
    """
    dataset = read_dataset(folders.examples)
    check_shard_files(folders.examples, dataset)
    image = asdict(options.image)
    image["checks"] = image.pop("image_check")
    image["compression"] = options.compression
    image["target_version"] = find_kind(dataset.target.kind).version
    # An older dataset does not have the newest option, and its images have their metadata.
    stored = {"strip_metadata": False, "target_version": 1, **dataset.options}
    others = sorted(name for name, value in image.items() if stored.get(name) != value)
    made_by = dataset.options["codecs"], read_code(folders.index)
    if not others and made_by != (find_codecs(), hash_code()):
        sample = nsmallest(_COMPARED, _read_rows(folders.index), itemgetter("key"))
        others = ["code"] if _find_changed(options.image, sample) else []
    if others:
        made = ", ".join(others)
        progress.note(f"Every image is read again: {folders.examples} was made with other {made}.")
        return None
    if recheck:
        chosen = (row for row in _read_rows(folders.index) if random.random() < recheck)
        if changed := _find_changed(options.image, chosen):
            raise DataError(
                f"Images have the same size and time, but other bytes: {list_first(changed)}.",
                "Convert from nothing, into another folder: sizes and times say nothing here.",
            )
    shards = {split: len(found.shards) for split, found in dataset.splits.items()}
    suffix = GZIP_SUFFIX if options.compression == "gzip" else ""
    return OldDataset(folders, shards, suffix, recheck)


def _read_rows(index: str) -> Iterator[dict[str, Any]]:
    for path in find_index_files(index):
        for batch in read_index_batches(path, _COLUMNS, BATCH_ROWS):
            yield from batch.to_pylist()


def _find_changed(options: ImageOptions, rows: Iterable[dict[str, Any]]) -> list[str]:
    """Returns the URIs of images that have the same size and version, and give other bytes."""
    preparer = ImagePreparer(replace(options, find_decoded_copies=NEVER_COPIES))
    changed = []
    try:
        for row in rows:
            try:
                is_same = storage.stat_file(row["uri"]) == (
                    row["source_size"],
                    row["source_version"],
                )
                data = storage.read_bytes(row["uri"], MAX_IMAGE_BYTES) if is_same else b""
            except (OSError, ValueError):
                continue  # The update will say why.
            if is_same and _hash_image(preparer, data) != (row["sha256"], row["pixel_hash"]):
                changed.append(row["uri"])
    finally:
        preparer.close()
    return changed


def _hash_image(preparer: ImagePreparer, data: bytes) -> tuple[str, str | None]:
    try:
        found = preparer.prepare(data)
    except RejectError as error:
        return error.reason, None
    return hashlib.sha256(found.encoded).hexdigest(), found.pixel_hash
