"""Opens data: converted datasets, patterns of them, one list of images, or TFX Examples."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from darkroom import storage
from darkroom.data.splits import (
    ALL_SPLITS,
    ImageSplit,
    RecordSplit,
    Split,
    group_by_folder,
    join_splits,
    list_record_splits,
    read_shared_labels,
)
from darkroom.dataset.commit import find_dataset, read_output
from darkroom.dataset.layout import DATASET_FILE, is_reserved, split_folder
from darkroom.dataset.named import find_named, split_name
from darkroom.dataset.sources import AnySource, find_sources
from darkroom.dataset.splits import EVAL
from darkroom.errors import DataError, UsageError
from darkroom.options.manifest import ManifestOptions
from darkroom.storage.locks import LOCK_FILE

__all__ = ["list_files"]


@dataclass(frozen=True)
class OpenedData:
    """What a user named as data. No image is read, and no file of records.

    Attributes:
        labels: The label map.
        splits: The splits that have records or images, by name.
        places: What was opened, for errors.
        eval_places: What the eval split was taken from instead, if anything.
    """

    labels: Sequence[str]
    splits: Mapping[str, Split]
    places: Sequence[AnySource] = ()
    eval_places: Sequence[AnySource] = ()

    @property
    def identity(self) -> dict[str, list[str]]:
        """Values for JSON that change with the images and their labels."""
        return {
            name: [part["fingerprint"] for part in split.data]
            for name, split in self.splits.items()
        }

    def find_split(self, name: str, instead: str = "") -> Split:
        """Returns a split by its name; all of them as one for `all`.

        Args:
            name: Its name.
            instead: How a user names another one, with `{split}`.

        Raises:
            DataError: It has no record and no image.
        """
        if name == ALL_SPLITS and self.splits:
            return join_splits([*self.splits.values()])
        if name in self.splits:
            return self.splits[name]
        are_images = any(isinstance(each, ImageSplit) for each in self.splits.values())
        places = self.eval_places if name == EVAL and self.eval_places else self.places
        others = f" Its splits are {', '.join(self.splits)}." if self.splits else ""
        advice = instead.format(split=[*self.splits][-1]) if self.splits else ""
        # Shares count only for rows that name no split.
        raise DataError(
            f"There is no {'image' if are_images else 'record'} of the {name} split in "
            f"{', '.join(map(str, places))}.{others}",
            f"{advice} If the source names splits, name this one there, too, or convert the folder "
            "below the split's, as photos/train, with --split-ratios. If it names none, convert it "
            "with --split-ratios.".lstrip(),
        )


def open_data(
    data: Sequence[AnySource],
    eval_data: Sequence[AnySource] = (),
    manifest: ManifestOptions | None = None,
    roots: Sequence[str] | None = None,
) -> OpenedData:
    """Opens datasets, or one list or folder of images. It reads their list, and no image.

    Args:
        data: Folders that `darkroom convert` wrote, or patterns of such folders; or one list or
            folder of images, as `darkroom convert` takes it.
        eval_data: The same, to use its eval split instead. All have the same label map.
        manifest: How the rows of a list or folder are read.
        roots: The datasets of `data`, if `find_roots` has found them. Only without `eval_data`.

    Raises:
        DataError: There is nothing at a path, a folder is not a dataset, or label maps differ.
        UsageError: The paths name several lists of images, or lists and datasets.
        StorageError: A dataset has another fingerprint than its name says.
        OSError: A path cannot be read.
    """
    if not data:
        raise UsageError("No data is given.", "Name a dataset, a list or a folder of images.")
    eval_roots: Sequence[str] = ()
    if roots is None:
        roots, eval_roots = find_roots(data, eval_data)
    splits: Mapping[str, Split]
    eval_splits: Mapping[str, Split] = {}
    if roots:
        # A dataset of both splits is read once.
        opened = {root: read_output(root) for root in dict.fromkeys(chain(roots, eval_roots))}
        labels: Sequence[str] = read_shared_labels(dict(opened.values()))
        splits = list_record_splits(dict(opened[root] for root in roots))
        eval_splits = list_record_splits(dict(opened[root] for root in eval_roots))
    else:
        # It loads DuckDB, which datasets do not need.
        from darkroom.data.images import list_images

        labels, splits = list_images(data[0], manifest)
        if eval_data:
            eval_splits = list_images(eval_data[0], ManifestOptions(labels=labels))[1]
    if eval_data:
        chosen = {name: each for name, each in splits.items() if name != EVAL}
        splits = chosen | {name: each for name, each in eval_splits.items() if name == EVAL}
    return OpenedData(labels, splits, data, eval_data)


def list_examples(file_patterns: Mapping[str, str | Sequence[str]]) -> dict[str, RecordSplit]:
    """Lists TFX Examples, and reads the commits of their datasets if darkroom made them.

    Args:
        file_patterns: Paths or patterns, as in TFX's `fn_args.train_files`, by the name of their
            split.

    Returns:
        The splits by name.

    Raises:
        DataError: No file matches, or a dataset was never finished.
    """
    files = {name: group_by_folder(list_files(given)) for name, given in file_patterns.items()}
    commits = {root: find_dataset(root) for root in dict.fromkeys(chain(*files.values()))}
    return {
        name: RecordSplit(name, each, {root: commits[root] for root in each})
        for name, each in files.items()
    }


def resolve_patterns(file_patterns: str | Sequence[str]) -> list[str]:
    """Returns paths or patterns of files in splits, with links to their datasets followed."""
    given = [file_patterns] if isinstance(file_patterns, str) else file_patterns
    found = []
    for path in map(storage.expand_home, given):
        folder, name = os.path.split(path)
        root, split = os.path.split(folder)
        found.append(storage.join(storage.resolve_links(root), split, name) if root else path)
    return found


def list_files(file_patterns: str | Sequence[str]) -> list[str]:
    """Returns the sorted files that paths or patterns name, as of `resolve_patterns`.

    Raises:
        DataError: No file matches.
        OSError: A store cannot be asked.
    """
    patterns = resolve_patterns(file_patterns)
    files = sorted({file for pattern in patterns for file in storage.match_pattern(pattern)})
    if not files:
        raise DataError(
            f"No file matches {', '.join(patterns) or 'an empty list of patterns'}.",
            "Check the path, and that the split has rows.",
        )
    return files


def find_roots(*groups: Sequence[AnySource]) -> list[list[str]]:
    """Returns the folders of the datasets that each group names; none if they name images.

    Raises:
        UsageError: They name several lists of images, lists and datasets, or a part of a dataset.
        StorageError: A dataset has another fingerprint than its name says.
        OSError: There is nothing at a path, or it cannot be read.
    """
    found = [[_list_roots(source) for source in group] for group in groups]
    are_images = [not roots for group in found for roots in group]
    if any(are_images) and (max(map(len, groups)) > 1 or not all(are_images)):
        paths = ", ".join(f"{source}" for group in groups for source in group)
        raise UsageError(
            f"Images that are not converted must come from one list, folder or pattern, got "
            f"{paths}.",
            "Pass one of them, or convert them all.",
        )
    return [list(dict.fromkeys(chain(*group))) for group in found]


def _list_roots(source: AnySource) -> list[str]:
    """Returns the datasets that a path or pattern names, finished or not; none for images."""
    if not isinstance(source, str | os.PathLike):
        return []
    path = storage.absolute(source)
    root, inside, _ = path.rpartition(f"/{split_folder('')}")
    if inside and storage.exists(storage.join(root, DATASET_FILE)):
        raise UsageError(f"{path} is a part of the dataset {root}.", f"Give {root}: all of it.")
    if storage.is_pattern(path):
        commits = storage.match_pattern(storage.join(path, DATASET_FILE))
        return sorted(storage.resolve_links(commit.rpartition("/")[0]) for commit in commits)
    return [find_named(source)] if _is_converted(storage.absolute(split_name(source)[0])) else []


def _is_converted(path: str) -> bool:
    """Tells whether `darkroom.convert` wrote into a folder.

    A folder without `dataset.json` is a folder of images if it has a file that a conversion never
    writes.
    """
    # The commit first: for a remote dataset this is the only request.
    if storage.exists(storage.join(path, DATASET_FILE)):
        return True
    names = storage.list_folder(path)
    if not names:
        # A file, a pattern or an empty folder. If there is nothing at all, this raises an error.
        find_sources(path)
    return bool(names) and all(is_reserved(name) or name == LOCK_FILE for name in names)
