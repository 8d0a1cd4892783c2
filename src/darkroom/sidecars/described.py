"""The dataset that sidecars describe, as each form of them sees it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from darkroom import storage
from darkroom.dataset.commit import Dataset, Shard
from darkroom.dataset.index import read_index_batches
from darkroom.storage.parquet import BATCH_ROWS


@dataclass(frozen=True)
class Described:
    """A dataset, and where its files are as seen from the sidecars.

    Attributes:
        dataset: Its commit.
        index: The folder of its index.
        root: What comes before the path of one of its files: empty for sidecars in the dataset,
            else its absolute folder with a `/` at the end.
    """

    dataset: Dataset
    index: str
    root: str = ""

    def read_index(self, names: Sequence[str]) -> Iterator[tuple[Shard, Iterator[pa.Table]]]:
        """Yields each shard with the rows of its index.

        Args:
            names: The columns to read, and `extra` if it exists.

        Raises:
            DataError: A file of the index is damaged.
            OSError: It cannot be read.
        """
        for file, shard in zip(self.dataset.index_files, self.dataset.shards, strict=True):
            path = storage.join(self.index, file)
            yield shard, read_index_batches(path, names, BATCH_ROWS, ("extra",))
