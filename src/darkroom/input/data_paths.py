"""The user's data: converted datasets, patterns of such, or one list of images."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypedDict, TypeGuard

from darkroom import storage
from darkroom.dataset.commit import Dataset, read_output
from darkroom.dataset.layout import DATASET_FILE, is_reserved
from darkroom.dataset.named import find_named, split_name
from darkroom.errors import DataError, UsageError
from darkroom.manifest.sources import AnySource, find_sources
from darkroom.options.source import ONE_LABEL
from darkroom.storage.locks import LOCK_FILE

if TYPE_CHECKING:
    from darkroom.input.source import ImageSource

# The name of all splits together.
ALL = "all"

# Opens the images of a split, and returns them with their label map.
Open = Callable[[], tuple["ImageSource", Sequence[str]]]

# Shares count only for rows that name no split.
SPLIT_HINT = (
    "If the source names splits, name this one there, too, or convert the folder below the "
    "split's, as photos/train, with --split-ratios. If it names none, convert it with "
    "--split-ratios."
)


class DataPart(TypedDict):
    """A dataset, or a list or folder of images.

    Attributes:
        name: The last part of its path.
        fingerprint: Text that changes with its contents.
        records: Number of records or images.
    """

    name: str
    fingerprint: str
    records: int


class NamedSplit(NamedTuple):
    """A split of the user's data; nothing of it is opened yet.

    Attributes:
        name: Its name.
        open: Returns its images and their label map.
        data: The folder's name, fingerprint and number of records of each part; the fingerprint
            may be that of all splits.
    """

    name: str
    open: Open
    data: Sequence[DataPart]


def check_one_kind(*groups: Sequence[str]) -> bool:
    """Tells whether groups of paths name images that are not converted: one list in each group.

    Raises:
        UsageError: They name several lists, or lists and datasets.
        OSError: A path cannot be read.
    """
    paths = [path for group in groups for path in group]
    are_images = [_names_images(path) for path in paths]
    if any(are_images) and (max(map(len, groups)) > 1 or not all(are_images)):
        raise UsageError(
            f"Images that are not converted must come from one list, folder or pattern, got "
            f"{', '.join(paths)}.",
            "Pass one of them, or convert them all.",
        )
    return any(are_images)


def list_roots(paths: Sequence[str]) -> list[str]:
    """Returns the folders of the datasets that paths and patterns name."""
    roots: list[str] = []
    for path in map(find_named, paths):
        found = [path]
        if storage.is_pattern(path):
            commits = storage.match_pattern(storage.join(path, DATASET_FILE))
            found = sorted(commit.rpartition("/")[0] for commit in commits)
        roots += found
    return list(dict.fromkeys(roots))


def find_split(paths: Sequence[str], split: str) -> NamedSplit:
    """Finds a split of the data that paths name.

    Args:
        paths: Folders that `darkroom convert` wrote, or patterns of such folders; or one list or
            folder of images.
        split: The name of the split, or `all`.

    Raises:
        DataError: Nothing of it exists, a folder is not a dataset, or has no labels.
        UsageError: The paths name several lists of images.
        OSError: A path cannot be read.
    """
    if check_one_kind(paths):
        return _find_images(paths[0], split)
    commits = dict(read_output(root) for root in list_roots(paths))
    named = name_datasets(commits, split)
    if not named.data:
        there = dict.fromkeys(
            n for each in commits.values() for n in each.splits if _count(each, n)
        )
        raise _build_missing_error(split, ", ".join(commits) or ", ".join(paths), [*there])
    return named


def name_datasets(commits: Mapping[str, Dataset], split: str) -> NamedSplit:
    """Returns a split of datasets; without records of it, its `data` is empty."""
    parts = {root: each for root, each in commits.items() if _count(each, split)}

    def open_now() -> tuple[ImageSource, Sequence[str]]:
        from darkroom.input.cache import stage_datasets
        from darkroom.input.commits import read_shared_labels
        from darkroom.input.records import RecordSource, open_splits

        labels = read_shared_labels(parts)
        staged = stage_datasets(parts)
        opened = open_splits(staged, names=None if split == ALL else (split,))
        if split != ALL:
            return opened[split], labels
        files = [file for each in opened.values() for file in each.files]
        return RecordSource(files, staged), labels

    data: list[DataPart] = [
        {
            "name": root.rpartition("/")[2],
            "fingerprint": each.fingerprint,
            "records": _count(each, split),
        }
        for root, each in parts.items()
    ]
    return NamedSplit(split, open_now, data)


def _find_images(path: str, split: str) -> NamedSplit:
    from darkroom.input.files import join_images, open_images
    from darkroom.options.manifest import ManifestOptions

    # The model that is looked at defines the labels.
    labels, splits = open_images(path, ManifestOptions(label_kind=ONE_LABEL))
    if split == ALL:
        return name_images(path, join_images([*splits.values()]), labels, ALL)
    if split not in splits:
        raise _build_missing_error(split, path, [*splits], "image")
    return name_images(path, splits[split], labels, split)


def name_images(path: str, source: ImageSource, labels: Sequence[str], split: str) -> NamedSplit:
    """Returns a split of a list or folder of images that is open already."""
    data: DataPart = {
        "name": path.rstrip("/").rpartition("/")[2],
        "fingerprint": source.identify(),
        "records": source.count_images(),
    }
    return NamedSplit(split, lambda: (source, labels), [data])


def is_converted(source: AnySource) -> TypeGuard[str | os.PathLike[str]]:
    """Tells whether a source is a folder that `darkroom.convert` wrote, finished or not.

    A folder without `dataset.json` is a folder of images if it has a file that a conversion never
    writes.

    Raises:
        OSError: There is nothing at the path, or it cannot be read.
    """
    if not isinstance(source, str | os.PathLike):
        return False
    path = storage.absolute(split_name(source)[0])
    # The commit first: for a remote dataset this is the only request.
    if storage.exists(storage.join(path, DATASET_FILE)):
        return True
    names = storage.list_folder(path)
    if not names:
        # A file, a pattern or an empty folder. If there is nothing at all, this raises an error.
        find_sources(path)
    return bool(names) and all(is_reserved(name) or name == LOCK_FILE for name in names)


def _names_images(path: str) -> bool:
    """Tells whether a path or a pattern names images, and not converted datasets."""
    full = storage.absolute(path)
    if storage.is_pattern(full):
        return not storage.match_pattern(storage.join(full, DATASET_FILE))
    return not is_converted(full)


def _count(dataset: Dataset, split: str) -> int:
    if split == ALL:
        return sum(each.records for each in dataset.splits.values())
    return dataset.splits[split].records if split in dataset.splits else 0


def _build_missing_error(
    split: str, place: str, others: Sequence[str], noun: str = "record"
) -> DataError:
    hint = f"Choose one of its splits: {', '.join(others)}." if others else ""
    return DataError(
        f"There is no {noun} of the {split} split in {place}.",
        hint or SPLIT_HINT,
    )
