"""A split of what was opened: records of datasets, or the files of images."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypedDict

from darkroom.audit.verify import check_hashes
from darkroom.data.cache import stage_dataset
from darkroom.data.commits import Commits
from darkroom.dataset.commit import Dataset
from darkroom.dataset.layout import DATASET_FILE
from darkroom.dataset.opening import check_files, check_unchanged
from darkroom.errors import DataError

# The name of all splits together.
ALL = "all"


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


@dataclass(frozen=True)
class RecordSplit:
    """TFRecord files of a split.

    Attributes:
        name: Its name; `all` for all splits.
        files: The paths of its files below each folder of a dataset.
        commits: The commits of these datasets by folder; None for Examples of another tool.
    """

    name: str
    files: Mapping[str, Sequence[str]]
    commits: Commits

    @property
    def labels(self) -> Sequence[str]:
        """The label map, which its datasets share; empty if another tool wrote them."""
        return next((each.labels for each in self.commits.values() if each), ())

    @property
    def data(self) -> list[DataPart]:
        """The datasets that it is in. The fingerprint is that of all their splits."""
        return [
            {
                "name": root.rpartition("/")[2],
                "fingerprint": each.fingerprint,
                "records": sum(
                    split.records for name, split in each.splits.items() if self.name in (name, ALL)
                ),
            }
            for root, each in self.commits.items()
            if each is not None
        ]


@dataclass(frozen=True)
class ImageSplit:
    """Image files of a split, which a list or a folder names.

    Attributes:
        name: Its name; `all` for all splits.
        source: The name of the list or folder.
        labels: The label map.
        uris: The paths of the images, or their URIs.
        numbers: The number of the label of each image.
        version: Changes when one of the files does.
    """

    name: str
    source: str
    labels: Sequence[str]
    uris: Sequence[str]
    numbers: Sequence[int]
    version: str

    @property
    def data(self) -> list[DataPart]:
        """The list or folder. The fingerprint is that of these images alone."""
        return [{"name": self.source, "fingerprint": self.identify(), "records": len(self.uris)}]

    def identify(self) -> str:
        """Returns a hash of the images' paths, labels and versions, 32 hexadecimal digits."""
        digest = hashlib.blake2b(self.version.encode(), digest_size=16)
        digest.update("\0".join(self.uris).encode())
        digest.update(repr(list(self.numbers)).encode())
        return digest.hexdigest()

    def select(self, index: int, count: int) -> ImageSplit:
        """Returns every `count`-th image from `index`."""
        return replace(self, uris=self.uris[index::count], numbers=self.numbers[index::count])


Split = RecordSplit | ImageSplit


def list_splits(commits: Mapping[str, Dataset]) -> dict[str, RecordSplit]:
    """Returns the splits that have records, by name, of the datasets with these commits."""
    found: dict[str, dict[str, list[str]]] = {}
    for root, dataset in commits.items():
        for name, split in dataset.splits.items():
            if split.records:
                found.setdefault(name, {})[root] = [shard.file for shard in split.shards]
    return {
        name: RecordSplit(name, files, {root: commits[root] for root in files})
        for name, files in found.items()
    }


def fetch_records(
    splits: Sequence[RecordSplit],
    *,
    verify: bool = False,
    stage: bool = True,
    cache_dir: str | os.PathLike[str] | None = None,
) -> dict[str, str]:
    """Copies datasets of a store to the cache, and checks them, each once.

    Args:
        splits: The splits to read.
        verify: Read their files and check their SHA-256.
        stage: Copy remote datasets; see `darkroom.data.cache`.
        cache_dir: The cache.

    Returns:
        The folder to read each dataset from, by the folder of the dataset.

    Raises:
        DataError: A shard is missing or has another size or hash, a dataset was replaced, or
            another tool wrote files that are to be verified.
        StorageError: The cache cannot be written, or the store fails.
    """
    copies: dict[str, str] = {}
    for root, dataset in join_commits(splits).items():
        copies[root] = copy = stage_dataset(root, dataset, cache_dir) if stage and dataset else root
        if dataset is not None:
            try:
                check_files(copy, dataset)
            except (DataError, OSError):
                check_unchanged({copy: dataset})
                raise
            if verify:
                found = (split.files.get(root, ()) for split in splits)
                check_hashes(copy, dataset, [*chain.from_iterable(found)])
        elif verify:
            raise DataError(
                f"{root} cannot be verified: it has no {DATASET_FILE}.",
                "Only a dataset that darkroom made has one. Read others without verify.",
            )
    return copies


def join_splits(splits: Iterable[Split]) -> Split:
    """Returns all splits of opened data as one, in their order."""
    records = [split for split in splits if isinstance(split, RecordSplit)]
    images = [split for split in splits if isinstance(split, ImageSplit)]
    if not images:
        commits = join_commits(records)
        files = {
            root: [file for split in records for file in split.files.get(root, ())]
            for root in commits
        }
        return RecordSplit(ALL, files, commits)
    return replace(
        images[0],
        name=ALL,
        uris=[uri for split in images for uri in split.uris],
        numbers=[number for split in images for number in split.numbers],
    )


def join_commits(splits: Iterable[RecordSplit]) -> Commits:
    """Returns the commits of all datasets of some splits, by folder."""
    return {root: each for split in splits for root, each in split.commits.items()}
