"""The order of the records of a split in an epoch, as a pure function of a seed.

No process has to tell another what it has read: each asks the same function for its positions. So
the images of an epoch do not depend on the number of processes, and a run that was ended goes on at
any position.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from darkroom.reader.draws import PLACE, draw_bits, draw_uniform, number_epoch
from darkroom.runtime.arrays import Array

# The ways to shuffle: any record next; or, for stores, the files one after the other.
EXACT, WINDOW = ORDERS = ("exact", "window")
# With fewer groups, no process of 64 would have files that no other one reads.
_MOST_GROUPS = 64


@dataclass(frozen=True)
class Order:
    """The order of an epoch. It is computed when it is first asked for, and then kept.

    `exact` is a random permutation of all records. `window` reads every file about once from its
    start to its end: the files are dealt to groups with about equal numbers of records, and the
    groups are asked in turns, until one of them ends. Position p is then of group p mod
    G, so a process with every W-th position reads only its share of the groups, where G is a
    multiple of W. What the other groups still have follows in a random order.

    Attributes:
        counts: Number of records in each file.
        seed: Seed of all epochs.
        epoch: Number of the epoch, from 0.
        kind: `exact` or `window`.
        window: Records of a group, among which the next one is drawn.
    """

    counts: Sequence[int]
    seed: int
    epoch: int
    kind: str = EXACT
    window: int = 1

    @property
    def number(self) -> int:
        """What all random numbers of the epoch depend on; see `draws.number_epoch`."""
        return number_epoch(self.seed, self.epoch)

    def find_rows(self, positions: Array) -> Array:
        """Returns the records at positions of the epoch, both int64 [N], counted from 0."""
        rows: Array = self._rows[positions]
        return rows

    @functools.cached_property
    def _rows(self) -> Array:
        if self.kind == EXACT:
            return self._shuffle(np.arange(sum(self.counts)))
        groups = [self._read_in_window(files) for files in deal_into_groups(self.counts)]
        shortest = min((len(group) for group in groups), default=0)
        turns = np.stack([group[:shortest] for group in groups], axis=1).ravel()
        rest = np.concatenate([group[shortest:] for group in groups])
        return np.concatenate((turns, self._shuffle(rest)))

    def _shuffle(self, rows: Array) -> Array:
        # Not by a generator of NumPy, whose numbers may differ between versions.
        bits = draw_bits(rows, self.number, PLACE)
        shuffled: Array = rows[np.argsort(bits, kind="stable")]
        return shuffled

    def _read_in_window(self, files: Sequence[int]) -> Array:
        """Returns the records of a group: its files in random order, each about in its order."""
        starts = np.concatenate(([0], np.cumsum(self.counts)))
        rows = np.concatenate(
            [np.arange(starts[file], starts[file + 1]) for file in self._shuffle(np.array(files))]
        )
        late = draw_uniform(rows, self.number, PLACE) * self.window
        read: Array = rows[np.argsort(np.arange(len(rows)) + late, kind="stable")]
        return read


def deal_into_groups(counts: Sequence[int]) -> list[list[int]]:
    """Deals files to groups with about equal numbers of records, the same in all epochs.

    Args:
        counts: Number of records in each file.

    Returns:
        The files of each group: at most 64 groups, none without a record.
    """
    files = sorted((file for file, count in enumerate(counts) if count), key=lambda f: -counts[f])
    groups: list[list[int]] = [[] for _ in files[:_MOST_GROUPS]]
    fewest = [(0, number) for number in range(len(groups))]
    for file in files:
        records, number = fewest[0]
        groups[number].append(file)
        heapq.heapreplace(fewest, (records + counts[file], number))
    return groups
