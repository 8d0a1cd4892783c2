"""A split of what was opened: records of datasets with their commits, or the files of images."""

from __future__ import annotations

import functools
import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple, TypedDict

from darkroom import storage
from darkroom.data.cache import stage_dataset
from darkroom.dataset.commit import Dataset, Shard, Target
from darkroom.dataset.index import check_index_rows
from darkroom.dataset.index_queries import count_classes
from darkroom.dataset.layout import DATASET_FILE, INDEX_FOLDER, split_folder
from darkroom.dataset.opening import check_shard_files, check_unchanged
from darkroom.errors import DataError, UsageError
from darkroom.options.image import RAW_ENCODING
from darkroom.proof.verify import check_hashes
from darkroom.targets.kind import find_kind
from darkroom.targets.learned import Learned

# The name of all splits together.
ALL_SPLITS = "all"
# The commits of datasets by their folders; None for Examples that another tool wrote.
Commits = Mapping[str, Dataset | None]


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


class RecordFile(NamedTuple):
    """A file of records.

    Attributes:
        path: Where it is read.
        root: The folder of its dataset.
        name: Its path below that folder.
        shard: What the commit says of it; None if another tool wrote it.
    """

    path: str
    root: str
    name: str
    shard: Shard | None


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
    def target(self) -> Target:
        """What its images are labelled with: one label if another tool wrote them."""
        return next((each.target for each in self.commits.values() if each), Target())

    @property
    def data(self) -> list[DataPart]:
        """The datasets that it is in. The fingerprint is that of all their splits."""
        return [
            {
                "name": root.rpartition("/")[2],
                "fingerprint": each.fingerprint,
                "records": sum(
                    split.records
                    for name, split in each.splits.items()
                    if self.name in (name, ALL_SPLITS)
                ),
            }
            for root, each in self.commits.items()
            if each is not None
        ]

    @property
    def num_images(self) -> int:
        """Number of its records in datasets; those of another tool are not counted."""
        return sum(part["records"] for part in self.data)

    def list_files(self, folders: Mapping[str, str] = MappingProxyType({})) -> list[RecordFile]:
        """Returns its files in order.

        Args:
            folders: Where to read the files of a dataset that are not read in its own folder, by
                the folder of the dataset; see `fetch_datasets`.
        """
        found = []
        for root, names in self.files.items():
            dataset, folder = self.commits[root], folders.get(root, root)
            shards = {shard.file: shard for shard in dataset.shards} if dataset else {}
            found += [
                RecordFile(storage.join(folder, name), root, name, shards.get(name))
                for name in names
            ]
        return found

    def find_columns(self, names: Sequence[str]) -> dict[str, str]:
        """Returns the type of features that a record has once each, and that are not its target.

        Raises:
            UsageError: There is no such feature.
        """
        target = find_kind(self.target.kind).features
        types = {
            name: each["type"]
            for commit in self.commits.values()
            if commit
            for name, each in commit.features.items()
            if name not in target
        }
        if missing := [name for name in names if name not in types]:
            raise UsageError(
                f"columns names {missing[0]!r}, which the records do not have beside their labels.",
                f"They have {', '.join(types)}.",
            )
        return {name: types[name] for name in names}

    @property
    def target_size(self) -> int:
        """The most objects of a record; else the number of labels, or that of numbers."""
        objects = [each.objects for each in self.commits.values() if each and each.objects]
        names = describe_target(self).names
        return max(each.most for each in objects) if objects else len(names)

    @functools.cached_property
    def label_counts(self) -> Sequence[int] | None:
        """Number of records of each label, by the index; None where none is of these files."""
        counts: Counter[str] = Counter()
        for root, files in self.files.items():
            if (dataset := self.commits[root]) is None:
                return None
            index = storage.join(root, INDEX_FOLDER)
            try:
                check_index_rows(index, dataset)
                kind = find_kind(dataset.target.kind)
                found = count_classes(index, dataset.labels, kind.list_names)
            except (*storage.UNUSABLE, DataError, ValueError):
                # It is missing or damaged, and no record depends on it.
                return None
            folders = {os.path.dirname(file) for file in files}
            for name in dataset.splits:
                counts.update(found.get(name, {}) if split_folder(name) in folders else {})
        # An index may be of more files than those that are read.
        known = [counts[label] for label in self.labels]
        total = sum(each.shard.records for each in self.list_files() if each.shard)
        return known if sum(known) == total else None


@dataclass(frozen=True)
class ImageSplit:
    """Image files of a split, which a list or a folder names.

    Attributes:
        name: Its name; `all` for all splits.
        source: The name of the list or folder.
        labels: The label map.
        uris: The paths of the images, or their URIs.
        numbers: The number of the label of each image; a list of numbers where it has several.
        version: Changes when one of the files does.
        target: What the images are labelled with.
    """

    name: str
    source: str
    labels: Sequence[str]
    uris: Sequence[str]
    numbers: Sequence[Any]
    version: str
    target: Target = field(default_factory=Target)

    @property
    def data(self) -> list[DataPart]:
        """The list or folder. The fingerprint is that of these images alone."""
        return [{"name": self.source, "fingerprint": self.identify(), "records": len(self.uris)}]

    @property
    def num_images(self) -> int:
        """Number of its images."""
        return len(self.uris)

    @functools.cached_property
    def label_counts(self) -> Sequence[int]:
        """Number of images of each label, where each has one."""
        counts = Counter(self.numbers)
        return [counts[number] for number in range(len(self.labels))]

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


def describe_target(split: Split) -> Learned:
    """Returns what a model of a split can learn: the kind, and its labels or names of numbers."""
    return Learned(split.target.kind, tuple(split.target.names or split.labels))


def list_record_splits(commits: Mapping[str, Dataset]) -> dict[str, RecordSplit]:
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


def fetch_datasets(
    splits: Collection[Split],
    *,
    verify: bool = False,
    stage: bool = True,
    cache_dir: str | os.PathLike[str] | None = None,
) -> dict[str, str]:
    """Copies datasets of a store to the cache, and checks them, each once.

    Args:
        splits: The splits to read. Files of images are read where they are.
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
    records = [split for split in splits if isinstance(split, RecordSplit)]
    for root, dataset in join_commits(records).items():
        copy = root
        if stage and dataset and storage.is_remote(root):
            copy = stage_dataset(root, dataset, cache_dir)
        copies[root] = copy
        if dataset is not None:
            try:
                check_shard_files(copy, dataset)
            except (DataError, OSError):
                check_unchanged({copy: dataset})
                raise
            if verify:
                found = (split.files.get(root, ()) for split in records)
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
        return RecordSplit(ALL_SPLITS, files, commits)
    return replace(
        images[0],
        name=ALL_SPLITS,
        uris=[uri for split in images for uri in split.uris],
        numbers=[number for split in images for number in split.numbers],
    )


def join_commits(splits: Iterable[RecordSplit]) -> Commits:
    """Returns the commits of all datasets of some splits, by folder."""
    return {root: each for split in splits for root, each in split.commits.items()}


def read_shared_labels(commits: Commits) -> list[str]:
    """Returns the label map that datasets share.

    Args:
        commits: The commits of the datasets by their folders. Opening a dataset compares the file
            of its labels with its commit.

    Raises:
        DataError: A folder is not a darkroom dataset, or two label maps differ.
    """
    maps: dict[str, tuple[Target, list[str]]] = {}
    for folder, dataset in commits.items():
        if dataset is None:
            raise DataError(
                f"There is no {DATASET_FILE} in {folder}.",
                "darkroom's Trainer needs Examples that darkroom made; for others, write a run_fn "
                "with darkroom.input.input_fn.",
            )
        maps[folder] = dataset.target, list(dataset.labels)
    (first, (target, labels)), *others = maps.items()
    for folder, (other_target, other) in others:
        if other_target != target:
            raise DataError(
                f"The images of {first} are labelled with {target.kind} {list(target.names)}, "
                f"those of {folder} with {other_target.kind} {list(other_target.names)}.",
                "Read them one after the other.",
            )
        if other != labels:
            raise DataError(
                f"The label maps of {first} and {folder} differ.",
                "Convert both with one label map.",
            )
    return labels


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
    for file in files:
        folder, name = os.path.split(file)
        root, split = os.path.split(folder)
        names.setdefault(root or ".", []).append(f"{split}/{name}")
    return names
