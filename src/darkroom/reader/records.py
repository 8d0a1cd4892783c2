"""The records of a split by their numbers: the index says where each one is, and what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from darkroom.data.splits import RecordSplit, describe_target
from darkroom.dataset.commit import Dataset
from darkroom.reader.index import FACTS, make_texts, read_shard_index
from darkroom.reader.record_files import Places, RecordFiles
from darkroom.runtime.arrays import Array
from darkroom.targets.kind import find_kind

_THREADS = 8


class SplitRecords:
    """The records of a split, numbered from 0 in the order of its files. It can be pickled.

    Attributes:
        split: The split.
        files: Its files.
        counts: Number of records in each file.
        facts: What the index says of each record, by name, int [N] each; see `index.FACTS`.
        kind: The kind of target.
        names: The label map, or the names of numbers.
        commit: The fingerprints of the datasets.
    """

    def __init__(
        self, split: RecordSplit, folders: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Reads the index, and no record.

        Args:
            split: The split.
            folders: Where to read the files of each of its datasets; see `fetch_datasets`.

        Raises:
            DataError: The index is missing or damaged, or it is not that of the dataset.
            UsageError: The files are compressed.
        """
        self.split = split
        listed = split.list_files(folders)
        self.files = RecordFiles(split, listed)
        self.kind = find_kind(split.target.kind)
        self.names = describe_target(split).names
        commits = {root: each for root, each in split.commits.items() if each}
        self.commit = ",".join(dict.fromkeys(commits[each.root].fingerprint for each in listed))
        numbers = {
            (root, shard.file): number
            for root, commit in commits.items()
            for number, shard in enumerate(commit.shards)
        }
        self._read_columns(
            [(root, commits[root], numbers[root, name]) for _, root, name, _ in listed]
        )
        # Arrow would keep the memory of the tables: at a million records, more than all the rest.
        pa.default_memory_pool().release_unused()

    def __len__(self) -> int:
        return int(self._starts[-1])

    def find_places(self, numbers: Array) -> Places:
        """Returns where records are, int64 [N], and what the index says of them."""
        files = np.searchsorted(self._starts, numbers, "right") - 1
        facts = {name: values[numbers].tolist() for name, values in self.facts.items()}
        return Places(files.tolist(), (numbers - self._starts[files]).tolist(), facts)

    def take_targets(self, numbers: Array) -> Any:
        """Returns what records are labelled with; see `Targets.take`."""
        return self._targets.take(numbers)

    def _read_columns(self, parts: Sequence[tuple[str, Dataset, int]]) -> None:
        """Reads the index of files: the folder and commit of their dataset, and their numbers."""
        self.counts = [dataset.shards[number].records for _, dataset, number in parts]
        self._starts = np.fromiter(accumulate(self.counts, initial=0), np.int64)
        self.facts = {name: np.empty(len(self), kind) for name, kind in FACTS.items()}

        def read(file: int) -> pa.Array:
            """Keeps the facts of a file, and returns its labels."""
            facts, labels = read_shard_index(*parts[file])
            for name, values in facts.items():
                self.facts[name][slice(*self._starts[file : file + 2])] = values
            return labels

        filled = [file for file, count in enumerate(self.counts) if count]
        # On a store, each file takes a request or two.
        with ThreadPoolExecutor(_THREADS) as pool:
            labels = pa.concat_arrays(list(pool.map(read, filled)))
        values, numbers = self.kind.number(labels, make_texts(self.split.labels))
        numbers = values if self.kind.names is None else numbers
        sides = self.facts["height"], self.facts["width"]
        self._targets = self.kind.hold(values, numbers, len(self.names), sides)
