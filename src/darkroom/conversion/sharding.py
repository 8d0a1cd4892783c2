"""How a split is cut into shards, and what their files are called."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from darkroom.dataset.splits import SPLITS, TRAIN
from darkroom.errors import UsageError
from darkroom.manifest.table import Manifest, SplitSize

SHARD_BYTES = 128 << 20
# Fewer shards than readers leave readers idle; smaller ones than this cost more than they bring.
MIN_TRAIN_SHARDS = 8
MIN_SHARD_ROWS = 16


@dataclass(frozen=True)
class ShardRange:
    """A shard as a range of the manifest.

    Attributes:
        split: Its split.
        shard: Its number within the split.
        num_shards: Number of shards of the split.
        number: Its number within the dataset.
        total: Number of shards of the dataset.
        first_row: Place of its first row in the manifest.
        num_rows: Number of its rows.
    """

    split: str
    shard: int
    num_shards: int
    number: int
    total: int
    first_row: int
    num_rows: int


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
        manifest: What is to be converted.
        given: Number of shards by split, where the user gave one.
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
    """Yields the bounds of `parts` pieces of `range(length)` whose sizes differ by one at most."""
    for part in range(parts):
        yield length * part // parts, length * (part + 1) // parts


def shard_file(split: str, shard: int, num_shards: int, suffix: str = "") -> str:
    """Returns the path of a shard below its dataset, in TFX's own form."""
    return f"{split_folder(split)}/data_tfrecord-{shard:05d}-of-{num_shards:05d}{suffix}"


def split_folder(split: str) -> str:
    """Returns the name of the folder that holds a split's shards."""
    return f"Split-{split}"


def index_file(number: int, total: int) -> str:
    """Returns the name of the index file of a shard."""
    return f"index-{number:05d}-of-{total:05d}.parquet"


def parse_shard_counts(given: int | Mapping[str, int] | None) -> dict[str, int]:
    """Returns the number of shards by split, from one number for all or one a split.

    Raises:
        UsageError: A number is not positive, or a split is unknown.
    """
    if given is None or given == 0:
        return {}
    if not isinstance(given, int | Mapping) or isinstance(given, bool):
        raise UsageError(f"num_shards must be a whole number or one a split, got {given!r}.")
    counts = dict.fromkeys(SPLITS, given) if isinstance(given, int) else dict(given)
    if unknown := sorted(set(counts) - set(SPLITS)):
        raise UsageError(f"Unknown splits {unknown} in the shard counts.", f"Known: {SPLITS}.")
    if bad := {s: n for s, n in counts.items() if not isinstance(n, int) or n < 1}:
        raise UsageError(f"Shard counts must be positive, got {bad}.")
    return counts
