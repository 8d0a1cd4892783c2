"""Verifies the list of hashes of a dataset, and gives it to the other checks."""

from __future__ import annotations

from collections.abc import Mapping

from darkroom.dataset.checksums import FileSum, read_sums, sum_bytes
from darkroom.dataset.commit import Dataset, format_dataset
from darkroom.dataset.layout import DATASET_FILE, LABELS_FILE, SUMS_FILE, is_sidecar
from darkroom.errors import DataError
from darkroom.proof.findings import COMMIT, FILE_HINTS, REWRITE, TABLE, FileFinding, explain_error
from darkroom.runtime.text import list_first

Sums = Mapping[str, FileSum]


def check_sums(root: str, dataset: Dataset) -> tuple[Sums, list[FileFinding]]:
    """Returns the sums of the files beside the shards, and the problem with their list.

    Args:
        root: The dataset.
        dataset: Its commit.

    Returns:
        The sums by path; none when the list is missing or damaged.
    """
    try:
        sums = read_sums(root)
    except DataError:
        what = "is damaged: it does not have its own checksum"
        return {}, [FileFinding(SUMS_FILE, TABLE, what, REWRITE)]
    except OSError as error:
        return {}, [explain_error(SUMS_FILE, error)]
    if what := _find_contradiction(sums, dataset):
        return {}, [FileFinding(SUMS_FILE, TABLE, what, REWRITE)]
    if sums[DATASET_FILE] != sum_bytes(format_dataset(dataset).encode()):
        what = f"and {SUMS_FILE} are of different conversions"
        return {}, [FileFinding(DATASET_FILE, COMMIT, what, FILE_HINTS[COMMIT])]
    return sums, []


def _find_contradiction(sums: Sums, dataset: Dataset) -> str:
    """Returns a contradiction of the list and the commit; empty when nothing."""
    expected = {DATASET_FILE, LABELS_FILE, *(shard.file for shard in dataset.shards)}
    rejects = {name for name in dataset.files if name.startswith("rejects.")}
    # In TFX, index and rejects are not here. If one of the files is here, all are.
    for group in (rejects, dataset.files.keys() - rejects - {LABELS_FILE}):
        if not group.isdisjoint(sums):
            expected |= group
    if missing := sorted(expected - sums.keys()):
        return f"does not list {list_first(missing)}"
    if extra := sorted(name for name in sums.keys() - expected if not is_sidecar(name)):
        return f"lists {list_first(extra)}, which {DATASET_FILE} does not"
    hashed = {name: file.sha256 for name, file in dataset.files.items() if file.sha256}
    hashed |= {shard.file: shard.sha256 for shard in dataset.shards}
    wrong = [name for name, sha256 in hashed.items() if sums[name].sha256 != sha256]
    return f"differs in hashes from {DATASET_FILE} for {list_first(wrong)}" if wrong else ""
