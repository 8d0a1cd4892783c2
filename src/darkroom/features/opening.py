"""Opens the features of a dataset: those of its table, else those that the cache has.

The cache is the home of features: trainings and `embed` keep there what they have computed, by the
contents of images. The table is its export for one dataset, which also says which model is meant.
It goes with the dataset to where there is no cache, as into a container.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from darkroom import storage
from darkroom.dataset.index import find_index_files, read_index
from darkroom.features.cache import FeatureCache, find_cached
from darkroom.features.compute import number_contents
from darkroom.features.table import Features, find_features_file, read_features
from darkroom.features.values import make_values
from darkroom.options.input import RESIZES, STRETCH
from darkroom.options.training import EFFICIENTNET_LITE
from darkroom.storage.parquet import BATCH_ROWS

# Of EfficientNet-Lite0 with the weights of ImageNet, as its network has them: TensorFlow, which
# could tell, takes seconds to load.
NETWORK_IDENTITY, NETWORK_WIDTH = "a9e7610a51963adbdfb18034c69ff868", 1280
# A training with the usual splits keeps nine tenths, because it does not see test.
_LEAST_SHARE = 0.8


def open_features(index_dir: str, *, uses_cache: bool = True) -> Features | None:
    """Opens the features of a dataset. Nothing is computed.

    Args:
        index_dir: The folder of the index.
        uses_cache: Whether they may come from the cache of this machine, where the dataset has no
            table: those of EfficientNet-Lite0, of four fifths of the images or more.

    Returns:
        The features; None where there are none.

    Raises:
        DataError: The table or the index is damaged, or they do not belong together.
        OSError: One cannot be read, or the cache.
    """
    if path := find_features_file(index_dir):
        return read_features(path, index_dir)
    return _find_in_cache(index_dir) if uses_cache else None


def _find_in_cache(index_dir: str) -> Features | None:
    """Returns what the cache has of the images of an index, by their contents."""
    folders = {resize: find_cached(f"{NETWORK_IDENTITY}-{resize}") for resize in RESIZES}
    folders = {resize: each for resize, each in folders.items() if each and storage.is_folder(each)}
    places = number_contents(find_index_files(index_dir)) if folders else {}
    for resize, folder in folders.items() if places else ():
        index = read_index(index_dir, ["row", "sha256"])
        values = make_values((len(index), NETWORK_WIDTH))
        known = FeatureCache(folder).load(places, values)
        found = np.sort([place for key in known for place in places[key]])
        if len(found) < _LEAST_SHARE * sum(map(len, places.values())):
            continue
        for start in range(0, len(found), BATCH_ROWS):
            block = found[start : start + BATCH_ROWS]
            values[start : start + len(block)] = values[block]  # A place is never before its row.
        # Only those of one view are comparable, too; `embed` has that without a name.
        model = f"{EFFICIENTNET_LITE} {NETWORK_IDENTITY}" + (
            f"-{resize}" if resize != STRETCH else ""
        )
        rows, values = index.take(pa.array(found)), values[: len(found)]
        return Features(model, rows["row"].to_numpy(), values, rows["sha256"], is_cached=True)
    return None
