"""How many images of each label a training has."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from darkroom import storage
from darkroom.dataset.index_queries import count_classes
from darkroom.dataset.layout import INDEX_FOLDER, split_folder
from darkroom.dataset.splits import SPLITS
from darkroom.input.files import FileSource
from darkroom.input.records import RecordSource
from darkroom.input.source import ImageSource
from darkroom.options.input import NO_CACHE, InputOptions
from darkroom.runtime import progress

Counts = npt.NDArray[np.int64]

_BATCH_RECORDS = 1024


def find_label_counts(source: ImageSource, num_classes: int) -> Counts | None:
    """Returns the number of images of each label, where that is known without reading images.

    Args:
        source: The images.
        num_classes: C, the number of labels.

    Returns:
        int64 [C]; None where the images would have to be read.
    """
    if isinstance(source, FileSource):
        return np.bincount(source.split.numbers, minlength=num_classes).astype(np.int64)
    return _sum_indexes(source, num_classes) if isinstance(source, RecordSource) else None


def count_labels(source: ImageSource, options: InputOptions, num_classes: int) -> Counts:
    """Returns the number of images of each label. It reads records only if that is the only way.

    Args:
        source: The images.
        options: How they are read.
        num_classes: C, the number of labels.

    Returns:
        int64 [C].
    """
    found = find_label_counts(source, num_classes)
    if found is not None:
        return found
    counts = np.zeros(num_classes, np.int64)
    # A cache is filled by the training.
    options = replace(options, record_cache=NO_CACHE, service=None)
    with progress.step("Counting labels"):
        labels = source.make_elements(options, None).map(source.parse_label)
        for batch in labels.batch(_BATCH_RECORDS).as_numpy_iterator():
            counts += np.bincount(batch, minlength=num_classes)
    return counts


def _sum_indexes(source: RecordSource, num_classes: int) -> Counts | None:
    """Returns the counts in the indexes of the datasets; None if one is not beside its records."""
    names = {split_folder(split): split for split in SPLITS}
    folders = {os.path.split(os.path.dirname(file)) for file in source.files}
    counts = np.zeros(num_classes, np.int64)
    for root, name in folders:
        dataset, index = source.commits.get(root), storage.join(root, INDEX_FOLDER)
        if dataset is None or name not in names or not storage.is_folder(index):
            return None
        try:
            found = count_classes(index, dataset.labels).get(names[name], {})
        except ValueError:
            # It is damaged, and no record depends on it.
            return None
        for number, label in enumerate(dataset.labels):
            counts[number] += found.get(label, 0)
    # An index may be of more files than those that are read.
    return counts if counts.sum() == source.count_images() else None
