"""Finds the images of a training in the user's data: datasets, a list, or a folder of images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from darkroom import storage
from darkroom.dataset.commit import Dataset, read_output
from darkroom.dataset.example import LABEL_NUMBER
from darkroom.dataset.index_queries import count_classes
from darkroom.dataset.layout import INDEX_FOLDER
from darkroom.dataset.splits import EVAL, TEST, TRAIN
from darkroom.errors import DataError
from darkroom.input.data_paths import (
    SPLIT_HINT,
    NamedSplit,
    check_one_kind,
    list_roots,
    name_datasets,
    name_images,
)
from darkroom.runtime.text import format_count, make_visible

if TYPE_CHECKING:
    from darkroom.input.source import ImageSource


class TrainingData(NamedTuple):
    """The data of a training, which is opened when the training starts.

    Attributes:
        identity: Values for JSON that change with the images and their labels.
        open: Returns the images of the train split, those of the eval split, and the label map. Its
            argument says whether to read all files first and check their SHA-256.
        splits: The splits by name: train, eval, and test if there is one.
    """

    identity: Sequence[object]
    open: Callable[[bool], tuple[ImageSource, ImageSource, Sequence[str]]]
    splits: Mapping[str, NamedSplit]


def find_data(data: Sequence[str], eval_data: Sequence[str]) -> TrainingData:
    """Finds the images of a training. It reads their list, and no image.

    Args:
        data: As in `train_datasets`.
        eval_data: The same.

    Raises:
        DataError: No folder matches, one is not a dataset, or a split has no records.
    """
    if check_one_kind(data, eval_data):
        return _find_images(data[0], eval_data[0] if eval_data else None)
    return _find_datasets(data, eval_data or data)


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


def _find_images(path: str, eval_path: str | None) -> TrainingData:
    from darkroom.input.files import open_images
    from darkroom.options.manifest import ManifestOptions

    labels, splits = open_images(path)
    check_labels(labels)
    eval_splits = splits
    if eval_path is not None:
        eval_splits = open_images(eval_path, ManifestOptions(labels=labels)).splits
    for name, found, place in (
        ("train", splits, path),
        ("eval", eval_splits, eval_path or path),
    ):
        if name not in found:
            raise DataError(
                f"There is no image of the {name} split in {place}.",
                SPLIT_HINT,
            )
    training, evaluation = splits["train"], eval_splits["eval"]
    check_training_labels(Counter(labels[number] for number in training.labels))
    named = {
        TRAIN: name_images(path, training, labels, TRAIN),
        EVAL: name_images(eval_path or path, evaluation, labels, EVAL),
    }
    if TEST in splits:
        named[TEST] = name_images(path, splits[TEST], labels, TEST)
    identity = [training.identify(), evaluation.identify()]
    return TrainingData(identity, lambda _: (training, evaluation, labels), named)


def _find_datasets(data: Sequence[str], eval_data: Sequence[str]) -> TrainingData:
    roots = {"train": list_roots(data), "eval": list_roots(eval_data)}
    # A dataset of both splits is read once.
    opened = {root: read_output(root) for root in dict.fromkeys(chain(*roots.values()))}
    commits = dict(opened.values())
    for root, dataset in commits.items():
        if LABEL_NUMBER not in dataset.features:
            raise DataError(
                f"The records of {root} have no labels.",
                "Convert a source with a column of labels, or name it with --columns (columns= in "
                "Python).",
            )
        check_labels(dataset.labels)
    parts = {split: dict(opened[root] for root in found) for split, found in roots.items()}
    for split, part in parts.items():
        if not any(split in each.splits and each.splits[split].records for each in part.values()):
            raise DataError(
                f"There is no record of the {split} split in {', '.join(part)}.",
                SPLIT_HINT,
            )

    check_training_labels(_count_labels(parts[TRAIN]))

    def open_data(verify: bool) -> tuple[ImageSource, ImageSource, Sequence[str]]:
        from darkroom.input.cache import stage_datasets
        from darkroom.input.commits import read_shared_labels
        from darkroom.input.records import open_splits

        labels = read_shared_labels(commits)
        opened = {
            split: open_splits(stage_datasets(part), verify, (split,))
            for split, part in parts.items()
        }
        return opened["train"]["train"], opened["eval"]["eval"], labels

    identity = [[dataset.fingerprint for dataset in part.values()] for part in parts.values()]
    named = {split: name_datasets(part, split) for split, part in parts.items()}
    if (test := name_datasets(parts[TRAIN], TEST)).data:
        named[TEST] = test
    return TrainingData(identity, open_data, named)


def _count_labels(datasets: Mapping[str, Dataset]) -> Counter[str]:
    """Counts training images by label; nothing where an index is not beside its records."""
    counts: Counter[str] = Counter()
    total = sum(each.splits[TRAIN].records for each in datasets.values() if TRAIN in each.splits)
    for root, dataset in datasets.items():
        index = storage.join(root, INDEX_FOLDER)
        try:
            counts.update(count_classes(index, dataset.labels).get(TRAIN, {}))
        except (*storage.UNUSABLE, ValueError):
            # Training does not need it.
            return Counter()
    return counts if counts.total() == total else Counter()
