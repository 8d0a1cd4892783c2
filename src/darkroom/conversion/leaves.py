"""Cuts the rows of a split into shards that stay where they are when other rows come and go.

A shard is a leaf of a binary tree over the hash of a row's key: a node that weighs too much is
divided by the next bit of the hash. So a row moves to another shard only where its own node is
divided, or joined again.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

# The hashes of `darkroom.dataset.keys.make_order_hash` have as many bits.
_BITS = 63
# What a row weighs whose image has no known size. Not a mean, which each new row would change.
UNKNOWN_BYTES = 100_000
# With fewer shards than readers some readers are idle, so train is divided so often while a node
# has enough rows.
_LEAST_DEPTH, _LEAST_ROWS = 3, 32


def cut_leaves(
    places: npt.NDArray[np.int64], weights: npt.NDArray[np.int64], most: int, *, is_spread: bool
) -> Iterator[int]:
    """Yields how many rows each leaf has, in order; leaves without rows are left out.

    Args:
        places: The hashes of the rows, ascending, [N].
        weights: What each row weighs, in bytes, [N].
        most: The weight over which a node is divided.
        is_spread: Whether to divide more often than the weight asks for; see `_LEAST_DEPTH`.
    """
    sums = np.concatenate([[0], np.cumsum(weights)])
    nodes = [(0, 0, len(places))]
    while nodes:
        depth, first, stop = nodes.pop()
        is_heavy = sums[stop] - sums[first] > most and depth < _BITS
        is_spare = is_spread and depth < _LEAST_DEPTH and stop - first >= _LEAST_ROWS
        if stop - first > 1 and (is_heavy or is_spare):
            bit = 1 << (_BITS - depth - 1)
            # The first hash of the node's upper half: the bits that all of its rows share, then 1.
            middle = int(places[first]) >> (_BITS - depth) << (_BITS - depth) | bit
            cut = first + int(np.searchsorted(places[first:stop], middle))
            nodes += [(depth + 1, cut, stop), (depth + 1, first, cut)]
        elif stop > first:
            yield stop - first
