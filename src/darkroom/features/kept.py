"""Features of a dataset without `features.parquet`: those that `embed` and trainings have kept."""

from __future__ import annotations

import numpy as np

from darkroom import storage
from darkroom.dataset.index import find_index_files, read_index
from darkroom.features.cache import FeatureCache, find_kept
from darkroom.features.compute import number_contents
from darkroom.features.table import Features
from darkroom.features.values import make_values
from darkroom.options.input import RESIZES, STRETCH
from darkroom.options.training import EFFICIENTNET_LITE
from darkroom.storage.parquet import BATCH_ROWS

# Of EfficientNet-Lite0 with the weights of ImageNet, as its network has them: TensorFlow, which
# could tell, takes seconds to load.
IDENTITY, WIDTH = "a9e7610a51963adbdfb18034c69ff868", 1280
# A training with the usual splits keeps nine tenths, because it does not see test.
_LEAST_SHARE = 0.8


def find_kept_features(index_dir: str) -> Features | None:
    """Returns features of EfficientNet-Lite0 from the cache, of four fifths of the images or more.

    Nothing is computed. The cache has them by the contents of images, so they are of these images.

    Args:
        index_dir: The folder of the index.

    Returns:
        The features, in a temporary file; None where the cache has fewer.

    Raises:
        DataError: The index is damaged.
        OSError: It cannot be read, or the cache.
    """
    folders = {resize: find_kept(f"{IDENTITY}-{resize}") for resize in RESIZES}
    folders = {resize: each for resize, each in folders.items() if each and storage.is_folder(each)}
    places = number_contents(find_index_files(index_dir)) if folders else {}
    for resize, folder in folders.items() if places else ():
        rows = read_index(index_dir, ["row"])["row"].to_numpy()
        values = make_values((len(rows), WIDTH))
        known = FeatureCache(folder).load(places, values)
        found = np.sort([place for key in known for place in places[key]])
        if len(found) < _LEAST_SHARE * sum(map(len, places.values())):
            continue
        for start in range(0, len(found), BATCH_ROWS):
            block = found[start : start + BATCH_ROWS]
            values[start : start + len(block)] = values[block]  # A place is never before its row.
        # Only those of one view are comparable, too; `embed` has that without a name.
        model = f"{EFFICIENTNET_LITE} {IDENTITY}" + (f"-{resize}" if resize != STRETCH else "")
        return Features(model, rows[found], values[: len(found)], is_kept=True)
    return None
