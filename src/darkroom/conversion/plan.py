"""Plans the shards of a dataset from its manifest: which rows go where."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from darkroom import storage
from darkroom.conversion.beam.shard import ShardRange, ShardTask
from darkroom.conversion.commit import describe_options
from darkroom.dataset.layout import Folders
from darkroom.dataset.rejects import count_rejects, format_hint, list_rejects
from darkroom.dataset.splits import TRAIN
from darkroom.errors import DataError
from darkroom.manifest.table import (
    MANIFEST_FILE,
    Manifest,
    SplitSize,
    names_only_jpegs,
    read_manifest,
)
from darkroom.options.conversion import RecordOptions
from darkroom.options.image import ALWAYS_COPIES, AUTO_COPIES, NEVER_COPIES
from darkroom.version import hash_code

SHARD_BYTES = 128 << 20
# With fewer shards than readers some readers are idle; smaller shards cost more than they save.
MIN_TRAIN_SHARDS = 8
MIN_SHARD_ROWS = 16


def plan_tasks(folders: Folders, options: RecordOptions) -> list[ShardTask]:
    """Returns one task for each shard of a manifest, in the order of its rows.

    Args:
        folders: Where everything is; `prepare_output` makes the folders ready for the tasks.
        options: How records are made.

    Raises:
        DataError: There is no manifest, or it has no rows.
    """
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
    return [
        ShardTask(
            range=shard,
            folders=folders,
            plan=plan,
            inputs=manifest.inputs,
            has_images=manifest.has_images,
            image=image,
            compressed=options.compression == "gzip",
            total=manifest.num_examples,
            source=manifest.fingerprint,
            patience_seconds=options.store_patience_seconds,
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
