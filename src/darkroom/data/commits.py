"""The datasets that TFRecord files belong to, and the facts of their commits about the files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from darkroom.dataset.commit import Dataset, Shard
from darkroom.dataset.layout import DATASET_FILE
from darkroom.errors import DataError
from darkroom.options.image import RAW_ENCODING

# The commits of datasets by their folders; None for Examples that another tool wrote.
Commits = Mapping[str, Dataset | None]


def read_shared_labels(commits: Commits) -> list[str]:
    """Returns the label map that datasets share.

    Args:
        commits: The commits of the datasets by their folders. Opening a dataset compares the file
            of its labels with its commit.

    Raises:
        DataError: A folder is not a darkroom dataset, or two label maps differ.
    """
    maps: dict[str, list[str]] = {}
    for folder, dataset in commits.items():
        if dataset is None:
            raise DataError(
                f"There is no {DATASET_FILE} in {folder}.",
                "darkroom's Trainer needs Examples that darkroom made; for others, write a run_fn "
                "with darkroom.input.input_fn.",
            )
        maps[folder] = list(dataset.labels)
    (first, labels), *others = maps.items()
    for folder, other in others:
        if other != labels:
            raise DataError(
                f"The label maps of {first} and {folder} differ.",
                "Convert both with one label map.",
            )
    return labels


def find_shards(files: Sequence[str], commits: Commits) -> dict[str, tuple[Shard, Sequence[str]]]:
    """Returns the shard and the features of its records, for each file that a commit names."""
    known: dict[tuple[str, str], tuple[Shard, Sequence[str]]] = {}
    for folder, dataset in commits.items():
        if dataset is not None:
            for split in dataset.splits.values():
                known |= {(folder, s.file): (s, tuple(dataset.features)) for s in split.shards}
    return {file: known[place] for file in files if (place := _split_path(file)) in known}


def stores_pixels(commits: Commits) -> bool:
    """Tells whether datasets store pixels instead of encoded images.

    Raises:
        DataError: Some do and others do not.
    """
    raw = [
        folder
        for folder, dataset in commits.items()
        if dataset and dataset.options.get("encoding") == RAW_ENCODING
    ]
    if raw and len(raw) < len(commits):
        other = next(folder for folder in commits if folder not in raw)
        raise DataError(
            f"{raw[0]} stores raw pixels, {other} does not.",
            "Read them separately, or convert them with the same --encoding.",
        )
    return bool(raw)


def group_by_folder(files: Sequence[str]) -> dict[str, list[str]]:
    """Returns the folders of the datasets of files, each with the files' paths below it."""
    names: dict[str, list[str]] = {}
    for folder, name in map(_split_path, files):
        names.setdefault(folder, []).append(name)
    return names


def _split_path(file: str) -> tuple[str, str]:
    """Returns the folder of the dataset that a shard is in, and the shard's path below it."""
    folder, name = os.path.split(file)
    root, split = os.path.split(folder)
    return root or ".", f"{split}/{name}"
