"""Names and forms of the files of a dataset, and where the parts of a conversion go."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

from darkroom import storage

DATASET_FILE = "dataset.json"
SUMS_FILE = "SHA256SUMS"
LABELS_FILE = "labels.txt"
INDEX_FOLDER = "index"
REJECTS_FILE = "rejects.parquet"
REJECTS_LIST_FILE = "rejects.jsonl"
DUPLICATES_FILE = "duplicates.parquet"
FEATURES_FILE = "features.parquet"
READ_AS_FILE = "read-as.json"
# Decisions that were taken from the gallery, as lines that last.
DECISIONS_FILE = "decisions.jsonl"
WORK_FOLDER = ".attempt"
# How the source was read, decisions, features, and files for readers of other frameworks
# (`darkroom.sidecars`): `SHA256SUMS` alone lists them. Users have files of these names, too, so
# only the folder counts by its name.
SIDECAR_FILES = (
    "dataset_info.json",
    "features.json",
    "image.class.label.labels.txt",
    "croissant.json",
    "README.md",
    FEATURES_FILE,
    READ_AS_FILE,
    DECISIONS_FILE,
)
# Those that the folder of a manifest may have, for the dataset that is made of it.
_MANIFEST_SIDECARS = (READ_AS_FILE, DECISIONS_FILE)
DALI_FOLDER = "dali-index"
# On a store, the folder of an attempt and later of its dataset; it ends in the attempt's token.
DATA_FOLDER = re.compile(r"data-[0-9a-f]{8}")
DATAFLOW_FOLDER = ".dataflow"

DUPLICATES_SCHEMA = pa.schema(
    [
        ("group", pa.int64()),
        ("kind", pa.string()),
        ("key", pa.string()),
        ("row", pa.int64()),
        ("uri", pa.string()),
        ("split", pa.string()),
        ("label", pa.string()),
        ("keep", pa.bool_()),
        ("labels_differ", pa.bool_()),
        ("splits_differ", pa.bool_()),
    ]
)

_REJECTS = (REJECTS_FILE, REJECTS_LIST_FILE, SUMS_FILE)
_NAMES = frozenset(
    (
        DATASET_FILE,
        LABELS_FILE,
        INDEX_FOLDER,
        WORK_FOLDER,
        DATAFLOW_FOLDER,
        DALI_FOLDER,
        *_REJECTS,
    )
)


@dataclass(frozen=True)
class Folders:
    """Where the parts of a conversion go.

    Attributes:
        manifest: The manifest that is converted.
        manifest_rejects: Rows that the manifest's stage rejected.
        examples: The dataset.
        index: The record index.
        rejects: Rows that both stages rejected.
        token: Names the attempt that writes; empty for whoever only reads.
    """

    manifest: str
    manifest_rejects: str
    examples: str
    index: str
    rejects: str
    token: str = ""

    @classmethod
    def of_dataset(cls, folder: str, manifest: str = "", token: str = "") -> Folders:
        """Returns the folders of a dataset that contains its index and rejects."""
        index = storage.join(folder, INDEX_FOLDER)
        return cls(manifest, manifest, folder, index, folder, token)

    @property
    def attempts(self) -> str:
        """Where attempts have their folders; inside the dataset, so that renames stay on a disk."""
        return storage.join(self.examples, WORK_FOLDER)

    @property
    def work(self) -> str:
        """The attempt's own folder: its journal, its unfinished and finished files.

        A later attempt takes the folder by renaming it. From then on the earlier one, which may
        have workers elsewhere, cannot give any file its name.
        """
        return storage.join(self.attempts, self.token) if self.token else self.attempts

    def find_part(self, path: str) -> str:
        """Returns where a file is written before it gets its name.

        A store needs no such place: a file appears there when it is complete.
        """
        if storage.is_remote(path):
            return path
        if self.token and path.startswith(f"{self.examples}/"):
            name = path[len(self.examples) + 1 :].removeprefix(f"{WORK_FOLDER}/{self.token}/")
            return storage.join(self.work, f"{storage.PART_PREFIX}{name.replace('/', '--')}")
        return storage.find_part(path)


def list_manifest_sidecars(folder: str) -> list[str]:
    """Returns the names of the sidecars that are in the folder of a manifest."""
    names = storage.list_folder(folder)
    return [name for name in _MANIFEST_SIDECARS if name in names]


def is_reserved(name: str) -> bool:
    """Tells whether a conversion writes files or folders of this name into its output."""
    known = name in _NAMES or name.startswith((split_folder(""), storage.PART_PREFIX))
    return known or DATA_FOLDER.fullmatch(name) is not None


def is_sidecar(name: str) -> bool:
    """Tells whether a path below a dataset can be that of a sidecar."""
    return name in SIDECAR_FILES or name.startswith(f"{DALI_FOLDER}/")


def is_reserved_for_rejects(name: str) -> bool:
    """Tells whether a conversion writes files of this name into the folder of its rejects."""
    return name in _REJECTS or name.startswith(storage.PART_PREFIX)


def shard_file(split: str, shard: int, num_shards: int, suffix: str = "") -> str:
    """Returns the path of a shard below its dataset, named as TFX names shards."""
    return f"{split_folder(split)}/data_tfrecord-{shard:05d}-of-{num_shards:05d}{suffix}"


def split_folder(split: str) -> str:
    """Returns the name of the folder of a split's shards."""
    return f"Split-{split}"


def index_file(number: int, total: int) -> str:
    """Returns the name of the index file of a shard."""
    return f"index-{number:05d}-of-{total:05d}.parquet"
