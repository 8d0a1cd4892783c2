"""Opens and checks the user's data for a training: datasets, a list, or a folder of images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from darkroom import storage
from darkroom.data.open import OpenedData, open_data
from darkroom.data.splits import ImageSplit, RecordSplit, Split
from darkroom.dataset.example import LABEL_NUMBER
from darkroom.dataset.index_queries import count_classes
from darkroom.dataset.layout import INDEX_FOLDER
from darkroom.dataset.splits import EVAL, TRAIN
from darkroom.errors import DataError
from darkroom.runtime.text import format_count, make_visible


def find_data(data: Sequence[str], eval_data: Sequence[str]) -> OpenedData:
    """Opens the data of a training, and checks that a model can be trained and chosen by it.

    Args:
        data: As in `train_datasets`.
        eval_data: The same.

    Raises:
        DataError: No folder matches, one is not a dataset, records have no labels, all have the
            same, or a split has no records.
    """
    opened = open_data(data, eval_data)
    for split in opened.splits.values():
        if isinstance(split, RecordSplit):
            _check_have_labels(split)
    check_labels(opened.labels)
    training, _ = map(opened.find_split, (TRAIN, EVAL))
    check_training_labels(_count_labels(training))
    return opened


def check_labels(labels: Sequence[str]) -> None:
    """Checks that there is something to tell apart.

    Raises:
        DataError: There are fewer than two labels.
    """
    if len(labels) < 2:
        raise DataError(
            f"The label map has {format_count(len(labels), 'label')}, expected at least 2.",
            "Training needs images of two labels or more.",
        )


def check_training_labels(counts: Mapping[str, int]) -> None:
    """Checks that training images have at least two labels: a model of one would always be right.

    Args:
        counts: Number of training images by label.

    Raises:
        DataError: They have one.
    """
    present = [label for label, number in counts.items() if number]
    if len(present) == 1:
        raise DataError(
            f"All {sum(counts.values()):,} images of the train split have the label "
            f"{make_visible(present[0])}, expected at least 2 labels.",
            "If the source names splits, move images of other labels into its train split. If it "
            "names none, convert it with a larger share of train in --split-ratios.",
        )


def _check_have_labels(split: RecordSplit) -> None:
    for root, dataset in split.commits.items():
        if dataset and LABEL_NUMBER not in dataset.features:
            raise DataError(
                f"The records of {root} have no labels.",
                "Convert a source with a column of labels, or name it with --columns (columns= in "
                "Python).",
            )


def _count_labels(split: Split) -> Counter[str]:
    """Counts training images by label; nothing where an index is not beside its records."""
    if isinstance(split, ImageSplit):
        return Counter(split.labels[number] for number in split.numbers)
    counts: Counter[str] = Counter()
    for root in split.commits:
        index = storage.join(root, INDEX_FOLDER)
        try:
            counts.update(count_classes(index, split.labels).get(TRAIN, {}))
        except (*storage.UNUSABLE, ValueError):
            # Training does not need it.
            return Counter()
    total = sum(part["records"] for part in split.data)
    return counts if counts.total() == total else Counter()
