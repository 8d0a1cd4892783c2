"""The files of an epoch, read so that all parts of it mix spans as their shares say.

A file is read from its start to its end, and few are read at the same time. If the next file began
where one ends, the small files of new spans would come early in an epoch, and the large ones of the
first span last. So files are dealt into lanes. A lane is read file after file, and lanes take turns
in proportion to their records, so that they end together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from darkroom.dataset.tfrecord import GZIP_SUFFIX
from darkroom.input.source import EpochOrder

READ_BUFFER_BYTES = 1 << 20
# Blocks of a lane that are read before their turn: the next file of a store takes time to open.
BLOCKS_AHEAD = 6
# Turns of a lane of mean size, before they repeat: so exact are the shares.
_TURNS = 256


def read_lanes(
    files: Sequence[str],
    weights: Sequence[int],
    order: EpochOrder | None,
    cycle_length: int,
    block_length: int,
) -> tf.data.Dataset:
    """Returns the records of files, string [] each.

    Args:
        files: Paths of TFRecord files, gzip-compressed when they end in `.gz`.
        weights: The number of records of each, or what is in proportion to it.
        order: Shuffles the files of each lane; None: they keep their order.
        cycle_length: Number of lanes.
        block_length: Records that a lane gives in a turn.
    """
    lanes = deal_into_lanes(weights, cycle_length)
    shares = [sum(weights[file] for file in lane) for lane in lanes]
    turns = np.repeat(list_turns(shares), block_length)

    def read(number: tf.Tensor) -> tf.data.Dataset:
        """Returns the records of an epoch; its number, int64 [], and the lane are the seed."""
        found = []
        for place, lane in enumerate(lanes):
            paths = [files[file] for file in lane]
            # A TFRecordDataset reads either compressed files or others.
            parts = [
                _read_files(tf.constant([*each]), is_gzip, (number, place) if order else None)
                for is_gzip, each in groupby(sorted(paths, key=_is_gzip), _is_gzip)
            ]
            records = parts[0] if len(parts) == 1 else parts[0].concatenate(parts[1])
            found.append(records.prefetch(BLOCKS_AHEAD * block_length))
        choices = tf.data.Dataset.from_tensor_slices(turns).repeat()
        return tf.data.Dataset.choose_from_datasets(found, choices, stop_on_empty_dataset=False)

    return order.with_number(read) if order else read(tf.constant(0, tf.int64))


def deal_into_lanes(weights: Sequence[int], count: int) -> list[list[int]]:
    """Deals files into lanes of about equal weight.

    Files of about equal size share a lane: a large one among small ones would hold them up. So do
    neighbours: a lane has few spans, and at any time there are records of the spans of each.

    Args:
        weights: Of each file, in the order of spans.
        count: The most lanes. A file that outweighs a lane has one of its own.

    Returns:
        The numbers of the files of each lane.
    """
    lanes: dict[int, list[int]] = {}
    total, seen = max(1, sum(weights)), 0
    for file in sorted(range(len(weights)), key=lambda file: -weights[file].bit_length()):
        place = (2 * seen + weights[file]) * count // (2 * total)
        lanes.setdefault(min(place, count - 1), []).append(file)
        seen += weights[file]
    return list(lanes.values())


def list_turns(shares: Sequence[int]) -> npt.NDArray[np.int64]:
    """Returns numbers of lanes, int64 [T]: each as often as its share says, and evenly spread."""
    total = max(1, sum(shares))
    times = [max(1, round(_TURNS * len(shares) * share / total)) for share in shares]
    places = np.concatenate([(np.arange(each) + 0.5) / each for each in times])
    lanes: npt.NDArray[np.int64] = np.repeat(np.arange(len(shares)), times)
    return lanes[np.argsort(places, kind="stable")]


def _is_gzip(path: str) -> bool:
    return path.endswith(GZIP_SUFFIX)


def _read_files(paths: tf.Tensor, is_gzip: bool, seed: Sequence[object] | None) -> tf.data.Dataset:
    """Returns the records of files, one after the other, shuffled by a seed if there is one."""
    if seed is not None:
        draws = tf.random.stateless_uniform(paths.shape, tf.stack(seed), None, None, tf.int64)
        paths = tf.gather(paths, tf.argsort(draws))
    # `TFRecordDataset` traces a function for each lane, which takes long.
    records = tf.raw_ops.TFRecordDataset(
        filenames=paths,
        compression_type="GZIP" if is_gzip else "",
        buffer_size=READ_BUFFER_BYTES,
    )
    return tf.data.experimental.from_variant(records, tf.TensorSpec((), tf.string))
