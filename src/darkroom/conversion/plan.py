"""Plans the job of a conversion from its manifest: which rows go into which shard."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from darkroom import storage
from darkroom.conversion.leaves import UNKNOWN_BYTES, cut_leaves
from darkroom.conversion.output.attempts import Attempt
from darkroom.conversion.output.commit import Commit, describe_options
from darkroom.conversion.shards.old_records import OldDataset
from darkroom.conversion.shards.shard import ShardRange, ShardTask
from darkroom.conversion.shards.writing import WriteJob
from darkroom.dataset.commit import Shard, SplitShards, read_dataset
from darkroom.dataset.layout import Folders
from darkroom.dataset.manifest import (
    MANIFEST_FILE,
    Manifest,
    list_optional_columns,
    names_only_jpegs,
    read_manifest,
    read_manifest_columns,
    read_manifest_rows,
    read_old_places,
)
from darkroom.dataset.opening import find_damaged
from darkroom.dataset.read_as import explain_reading
from darkroom.dataset.rejects import count_rejects, format_hint, list_rejects
from darkroom.dataset.splits import TRAIN
from darkroom.errors import DataError
from darkroom.images.access import PROBED_IMAGES
from darkroom.images.prepare import MAX_IMAGE_BYTES
from darkroom.options.conversion import RecordOptions
from darkroom.options.image import ALWAYS_COPIES, AUTO_COPIES, NEVER_COPIES
from darkroom.options.runners import LOCAL_RUNNER
from darkroom.runtime import progress
from darkroom.runtime.text import format_count, list_first
from darkroom.version import hash_code


def plan_job(
    folders: Folders,
    attempt: Attempt,
    options: RecordOptions,
    max_rejects: float = 1,
    old: OldDataset | None = None,
) -> WriteJob:
    """Returns the job that writes a dataset.

    Args:
        folders: Where the manifest is.
        attempt: The attempt that it belongs to; `Output.begin` makes the output ready for it.
        options: How records are made.
        max_rejects: Share of rejected rows over which nothing is committed.
        old: The dataset whose unchanged images are taken.

    Raises:
        DataError: There is no manifest, or it has no rows.
    """
    tasks = plan_tasks(folders, attempt, options, old)
    seen: list[str] = []
    if attempt.record.runner != LOCAL_RUNNER and tasks[0].has_images:
        # Some images that are on this machine's disk.
        rows = read_manifest_rows(folders.manifest, 0, PROBED_IMAGES)
        local = [storage.local_path(row.uri) for row in rows if not storage.is_remote(row.uri)]
        seen = list(filter(os.path.exists, local))
    return WriteJob(tasks, Commit(attempt, options, max_rejects), seen)


def plan_tasks(
    folders: Folders, attempt: Attempt, options: RecordOptions, old: OldDataset | None = None
) -> list[ShardTask]:
    """Returns one task for each shard of a manifest, in the order of its rows; see `plan_job`."""
    manifest = read_manifest(folders.manifest)
    if not manifest.num_examples:
        hints = format_hint(count_rejects(folders.manifest_rejects))
        rejected = format_count(manifest.rejected, "row", "were", manifest.rows)
        raise DataError(
            f"Nothing can be written: {rejected} rejected. "
            + list_rejects(folders.manifest_rejects),
            "\n".join(["Fix the source.", *explain_reading(manifest.read_as), hints]).rstrip(),
        )
    image = options.image
    if image.find_decoded_copies == AUTO_COPIES:
        found = NEVER_COPIES if names_only_jpegs(folders.manifest) else ALWAYS_COPIES
        image = replace(image, find_decoded_copies=found)
    shards = plan_shards(folders.manifest, manifest, options)
    # All that the bytes of the shards depend on.
    rows = storage.hash_file(storage.join(folders.manifest, MANIFEST_FILE))
    parts = (hash_code(), rows, manifest.fingerprint, describe_options(manifest, options))
    plan = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
    work = ((each, storage.join(each.work, plan)) for each in attempt.earlier)
    earlier = tuple(each for each, folder in work if storage.is_folder(folder))
    optional = list_optional_columns(folders.manifest)
    old = old and _find_damaged(old, manifest.fingerprint)
    return [
        ShardTask(
            range=shard,
            folders=attempt.folders,
            check_current=attempt.check_current,
            plan=plan,
            inputs=manifest.inputs,
            has_images=manifest.has_images,
            kind=manifest.target.kind,
            image=image,
            compressed=options.compression == "gzip",
            total=manifest.num_examples,
            source=manifest.fingerprint,
            patience_seconds=options.store_patience_seconds,
            earlier=earlier,
            old=old,
            linked=link,
            optional=optional,
        )
        for shard, link in zip(shards, _find_links(folders.manifest, shards, old), strict=True)
    ]


def _find_damaged(old: OldDataset, fingerprint: str) -> OldDataset:
    """Returns an old dataset with its shards that are damaged, as far as that is looked at."""
    folder = old.folders.examples
    damaged = find_damaged(folder, read_dataset(folder), old.recheck, fingerprint)
    if damaged:
        progress.note(f"Damaged in {folder}, so made again: {list_first(sorted(damaged))}.")
    return replace(old, damaged=damaged)


def _find_links(
    folder: str, shards: Sequence[ShardRange], old: OldDataset | None
) -> Iterator[Shard | None]:
    """Yields for each shard the old one that has its very records; None without one."""
    if old is None:
        yield from [None] * len(shards)
        return
    places, splits = read_old_places(folder), read_dataset(old.folders.examples).splits
    for each in shards:
        shard = find_same_shard(places.slice(each.first_row, each.num_rows), splits)
        yield shard if shard and shard.file not in old.damaged else None


def find_same_shard(places: pa.Table, splits: Mapping[str, SplitShards]) -> Shard | None:
    """Returns the old shard of which rows are all records, unchanged and in their order.

    Args:
        places: Where the old dataset has the images of the rows; null for those that it lacks.
        splits: The splits of the old dataset.
    """
    split, number = (places[name][0].as_py() for name in ("split", "shard"))
    if split is None:
        return None
    shard = splits[split].shards[number]
    whole = {
        "split": pa.repeat(split, shard.records),
        "shard": pa.repeat(number, shard.records),
        "position": np.arange(shard.records),
        "is_same": pa.repeat(True, shard.records),
    }
    return shard if places.select([*whole]).equals(pa.table(whole)) else None


def plan_shards(folder: str, manifest: Manifest, options: RecordOptions) -> list[ShardRange]:
    """Returns all shards of a manifest, in its order.

    Args:
        folder: Where the manifest is.
        manifest: The facts about it.
        options: They say how many shards there are, or how heavy.
    """
    spans, places, sizes = read_manifest_columns(folder, ("span", "place", "size"))
    lengths = {}
    for split, rows in manifest.splits.items():
        first = manifest.first_row(split)
        own = slice(first, first + rows)
        if given := options.shard_counts.get(split):
            parts = min(given, rows)
            bounds = [rows * part // parts for part in range(parts + 1)]
            lengths[split] = [stop - start for start, stop in pairwise(bounds)]
        else:
            weights = _weigh(sizes[own])
            starts = [*np.flatnonzero(np.diff(spans[own], prepend=-1)), rows]
            lengths[split] = [
                leaf
                for start, stop in pairwise(starts)
                for leaf in cut_leaves(
                    places[own][start:stop],
                    weights[start:stop],
                    options.shard_bytes,
                    is_spread=split == TRAIN and not start,
                )
            ]
    total = sum(map(len, lengths.values()))
    shards: list[ShardRange] = []
    first = 0
    for split, counts in lengths.items():
        for shard, rows in enumerate(counts):
            shards.append(ShardRange(split, shard, len(counts), len(shards), total, first, rows))
            first += rows
    return shards


def _weigh(sizes: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Returns the bytes that rows take in a shard, by the sizes of their images; NaN: unknown."""
    known = np.where(np.isnan(sizes), UNKNOWN_BYTES, sizes).astype(np.int64)
    # Larger ones are rejected.
    return np.where(known > MAX_IMAGE_BYTES, 0, known)
