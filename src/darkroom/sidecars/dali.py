"""NVIDIA DALI: a text file for each shard, with offset and length of each record.

They are the files that DALI's `tfrecord2idx` makes by reading the shards.
"""

from __future__ import annotations

from collections.abc import Sequence

from darkroom.dataset.layout import DALI_FOLDER, split_folder
from darkroom.sidecars.described import Described


def list_sidecar_files(shards: Sequence[str]) -> list[str]:
    """Returns the paths of the sidecars of shards, below the dataset as those of the shards."""
    return [f"{DALI_FOLDER}/{shard.removeprefix(split_folder(''))}.idx" for shard in shards]


def build(described: Described) -> dict[str, bytes]:
    """Returns the contents of the sidecars by path; lengths count the frame of the record."""
    contents = {}
    for shard, tables in described.read_index(("offset", "length")):
        lines = [
            f"{place['offset']} {place['length']}\n"
            for table in tables
            for place in table.select(["offset", "length"]).to_pylist()
        ]
        contents[list_sidecar_files([shard.file])[0]] = "".join(lines).encode()
    return contents
