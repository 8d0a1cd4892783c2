"""Plans the job of a conversion from its manifest: which rows go into which shard."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from darkroom import storage
from darkroom.conversion.beam.runners import LOCAL_RUNNER
from darkroom.conversion.beam.shard import ShardRange, ShardTask
from darkroom.conversion.output.attempts import Attempt
from darkroom.conversion.output.commit import Commit, describe_options
from darkroom.dataset.layout import Folders
from darkroom.dataset.rejects import count_rejects, format_hint, list_rejects
from darkroom.dataset.splits import TRAIN
from darkroom.errors import DataError
from darkroom.images.access import PROBED_IMAGES
from darkroom.manifest.table import (
    MANIFEST_FILE,
    Manifest,
    SplitSize,
    names_only_jpegs,
    read_manifest,
    read_manifest_rows,
)
from darkroom.options.conversion import RecordOptions
from darkroom.options.image import ALWAYS_COPIES, AUTO_COPIES, NEVER_COPIES
from darkroom.version import hash_code

if TYPE_CHECKING:
    from darkroom.conversion.beam.transforms import WriteDataset

SHARD_BYTES = 128 << 20
# With fewer shards than readers some readers are idle; smaller shards cost more than they save.
MIN_TRAIN_SHARDS = 8
MIN_SHARD_ROWS = 16


def plan_job(
    folders: Folders, attempt: Attempt, options: RecordOptions, max_rejects: float | None = None
) -> WriteDataset:
    """Returns the job that writes a dataset.

    Args:
        folders: Where the manifest is.
        attempt: The attempt that it belongs to; `Output.begin` makes the output ready for it.
        options: How records are made.
        max_rejects: Share of rejected rows over which nothing is committed; None for any.

    Raises:
        DataError: There is no manifest, or it has no rows.
    """
    from darkroom.conversion.beam.transforms import WriteDataset

    tasks = plan_tasks(folders, attempt, options)
    seen: list[str] = []
    if attempt.record.runner != LOCAL_RUNNER and tasks[0].has_images:
        # Some images that are on this machine's disk.
        rows = read_manifest_rows(folders.manifest, 0, PROBED_IMAGES)
        local = [storage.local_path(row.uri) for row in rows if not storage.is_remote(row.uri)]
        seen = list(filter(os.path.exists, local))
    return WriteDataset(tasks, Commit(attempt, options, max_rejects), seen)


def plan_tasks(folders: Folders, attempt: Attempt, options: RecordOptions) -> list[ShardTask]:
    """Returns one task for each shard of a manifest, in the order of its rows; see `plan_job`."""
    manifest = read_manifest(folders.manifest)
    if not manifest.num_examples:
        raise DataError(
            f"Nothing can be written: {manifest.rejected} of {manifest.rows} rows were rejected. "
            + list_rejects(folders.manifest_rejects),
            f"Fix the source.\n{format_hint(count_rejects(folders.manifest_rejects))}".rstrip(),
        )
    image = options.image
    if image.find_decoded_copies == AUTO_COPIES:
        found = NEVER_COPIES if names_only_jpegs(folders.manifest) else ALWAYS_COPIES
        image = replace(image, find_decoded_copies=found)
    shards = plan_shards(manifest, options.shard_counts)
    # All that the bytes of the shards depend on.
    rows = storage.hash_file(storage.join(folders.manifest, MANIFEST_FILE))
    parts = (hash_code(), rows, manifest.fingerprint, describe_options(manifest, options))
    plan = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
    work = ((each, storage.join(each.work, plan)) for each in attempt.earlier)
    earlier = tuple(each for each, folder in work if storage.is_folder(folder))
    return [
        ShardTask(
            range=shard,
            attempt=attempt,
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
        )
        for shard in shards
    ]


def count_shards(split: str, size: SplitSize, given: int | None = None) -> int:
    """Returns the number of shards of a split: as given, else from its bytes."""
    if given is not None:
        return min(given, size.rows)
    shards = math.ceil(size.image_bytes / SHARD_BYTES)
    if split == TRAIN:
        shards = max(shards, min(MIN_TRAIN_SHARDS, size.rows // MIN_SHARD_ROWS))
    return max(1, min(shards, size.rows))


def plan_shards(manifest: Manifest, given: Mapping[str, int]) -> list[ShardRange]:
    """Returns all shards of a manifest, in its order.

    Args:
        manifest: The rows to convert.
        given: Number of shards by split, as far as the user gave one.
    """
    counts = {
        split: count_shards(split, size, given.get(split))
        for split, size in manifest.splits.items()
    }
    total = sum(counts.values())
    shards: list[ShardRange] = []
    for split, count in counts.items():
        first, rows = manifest.first_row(split), manifest.splits[split].rows
        for shard, (start, stop) in enumerate(cut_range(rows, count)):
            shards.append(
                ShardRange(split, shard, count, len(shards), total, first + start, stop - start)
            )
    return shards


def cut_range(length: int, parts: int) -> Iterator[tuple[int, int]]:
    """Yields the bounds of `parts` pieces of `range(length)`; their sizes differ by one at most."""
    for part in range(parts):
        yield length * part // parts, length * (part + 1) // parts
