"""Opens and checks the user's data for a training: datasets, a list, or a folder of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from darkroom.data.open import OpenedData, open_data
from darkroom.data.splits import RecordSplit, Split
from darkroom.dataset.commit import Target
from darkroom.dataset.example import LABEL_NUMBER
from darkroom.dataset.splits import EVAL, TRAIN
from darkroom.errors import DataError
from darkroom.runtime.text import format_count, make_visible
from darkroom.targets.kind import check_learned


def open_training_data(data: Sequence[str], eval_data: Sequence[str]) -> OpenedData:
    """Opens the data of a training, and checks that a model can be trained and chosen by it.

    Args:
        data: As in `train_datasets`.
        eval_data: The same.

    Raises:
        DataError: No folder matches, one is not a dataset, records have no labels, all have the
            same, or a split has no records.
    """
    opened = open_data(data, eval_data)
    for name in (TRAIN, EVAL):
        opened.find_split(name)
    check_data(opened.splits)
    return opened


def check_data(splits: Mapping[str, Split]) -> None:
    """Checks that there is something to learn.

    Args:
        splits: The train and the eval split, by name. They have one label map.

    Raises:
        DataError: No model of darkroom learns the kind of target, records have no labels, all have
            the same, or the label map has too few.
    """
    training = splits[TRAIN]
    check_learned(training.target.kind)
    if training.target != Target():
        return
    for split in splits.values():
        for root, dataset in split.commits.items() if isinstance(split, RecordSplit) else ():
            if dataset and LABEL_NUMBER not in dataset.features:
                raise DataError(
                    f"The records of {root} have no labels.",
                    "Convert a source with a column of labels, or name it with --columns "
                    "(columns= in Python).",
                )
    labels = training.labels
    if len(labels) < 2:
        raise DataError(
            f"The label map has {format_count(len(labels), 'label')}, expected at least 2.",
            "Training needs images of two labels or more.",
        )
    counts = training.label_counts or ()
    present = [label for label, count in zip(labels, counts, strict=False) if count]
    # A model of one would always be right.
    if len(present) == 1:
        raise DataError(
            f"All {sum(counts):,} images of the train split have the label "
            f"{make_visible(present[0])}, expected at least 2 labels.",
            "If the source names splits, move images of other labels into its train split. If it "
            "names none, convert it with a larger share of train in --split-ratios.",
        )
