"""Commits a dataset whose other files are complete: the list of all hashes, then `dataset.json`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from darkroom import storage
from darkroom.dataset.commit import Dataset, format_dataset, write_dataset
from darkroom.dataset.integrity.checksums import FileSum, sum_bytes, write_sums
from darkroom.dataset.labels import format_labels
from darkroom.dataset.layout import DATASET_FILE, LABELS_FILE, SUMS_FILE, Folders


def write_commit(
    folders: Folders,
    dataset: Dataset,
    index: Mapping[str, FileSum],
    rejects: Mapping[str, FileSum],
) -> None:
    """Writes `SHA256SUMS`, and `dataset.json` last.

    Index and rejects in the folder of the dataset are listed there. In TFX they are artifacts of
    their own, each with a list of its own.

    Args:
        folders: The folders of the dataset.
        dataset: Its commit.
        index: The sums of the index by name; none when it is not here.
        rejects: The sums of the rejects by name; none when they are not here.
    """
    sums = {
        DATASET_FILE: sum_bytes(format_dataset(dataset).encode()),
        LABELS_FILE: sum_bytes(format_labels(dataset.labels).encode()),
        **{shard.file: FileSum(shard.bytes, shard.sha256) for shard in dataset.shards},
    }
    paths = {storage.join(folders.examples, name): each for name, each in sums.items()}
    paths |= {storage.join(folders.index, name): each for name, each in index.items()}
    paths |= {storage.join(folders.rejects, name): each for name, each in rejects.items()}
    lists: defaultdict[str, dict[str, FileSum]] = defaultdict(dict)
    for path, each in paths.items():
        roots = (folders.examples, folders.index, folders.rejects)
        root = next(root for root in roots if path.startswith(f"{root}/"))
        lists[root][path[len(root) + 1 :]] = each
    for root, listed in lists.items():
        write_sums(root, listed, folders.find_part(storage.join(root, SUMS_FILE)))
    part = folders.find_part(storage.join(folders.examples, DATASET_FILE))
    write_dataset(folders.examples, dataset, part)
