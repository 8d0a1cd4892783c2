"""Where the parts of a conversion go, and which names in an output belong to it."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom import storage
from darkroom.conversion.sharding import split_folder
from darkroom.dataset import labels, rejects
from darkroom.dataset.commit import DATASET_FILE, DUPLICATES_FILE, INDEX_FOLDER, WORK_FOLDER

DATAFLOW_FOLDER = ".dataflow"

_REJECTS = (rejects.PARQUET_FILE, rejects.JSONL_FILE)
_NAMES = frozenset(
    (
        DATASET_FILE,
        labels.LABELS_FILE,
        INDEX_FOLDER,
        DUPLICATES_FILE,
        WORK_FOLDER,
        DATAFLOW_FOLDER,
        *_REJECTS,
    )
)


@dataclass(frozen=True)
class Folders:
    """Where the parts of a conversion go.

    Attributes:
        manifest: The manifest that is converted.
        manifest_rejects: What the manifest's stage refused.
        examples: The dataset.
        index: The record index.
        rejects: What both stages refused.
    """

    manifest: str
    manifest_rejects: str
    examples: str
    index: str
    rejects: str

    @classmethod
    def of_dataset(cls, folder: str, manifest: str = "") -> Folders:
        """Returns the folders of a dataset that has its index and its rejects in it."""
        index = storage.join(folder, INDEX_FOLDER)
        return cls(manifest, manifest, folder, index, folder)

    @property
    def work(self) -> str:
        """Where unfinished files are; inside the dataset, so that a rename stays on one disk.

        A plan has a folder of its own in it, by which a later run knows what an earlier one did.
        """
        return storage.join(self.examples, WORK_FOLDER)


def is_reserved(name: str) -> bool:
    """Tells whether a conversion writes files or folders of this name into its output."""
    return name in _NAMES or name.startswith((split_folder(""), storage.PART_PREFIX))


def is_reserved_for_rejects(name: str) -> bool:
    """Tells whether a conversion writes files of this name into the folder of its rejects."""
    return name in _REJECTS or name.startswith(storage.PART_PREFIX)
