"""Recognises a dataset that an earlier run has finished, so that nothing is done again."""

from __future__ import annotations

from darkroom import storage
from darkroom.conversion.commit import describe_options
from darkroom.conversion.result import ConversionResult, describe_dataset
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.index import read_source_fingerprint
from darkroom.dataset.layout import DATASET_FILE, INDEX_FOLDER, REJECTS_FILE
from darkroom.dataset.opening import check_files, check_listed
from darkroom.dataset.rejects import read_rejects
from darkroom.errors import DataError
from darkroom.images.access import is_readable_now
from darkroom.manifest.table import Manifest
from darkroom.options.conversion import RecordOptions


def describe_finished(
    manifest: Manifest, options: RecordOptions, folder: str, *, with_shards: bool = False
) -> ConversionResult | None:
    """Returns the result of the dataset in a folder if it is the wanted one.

    Args:
        manifest: The rows to convert.
        options: How.
        folder: Where the dataset may be.
        with_shards: Whether the hashes of the shards are checked, too; this reads them all.

    Raises:
        DataError: It is, but files are missing or damaged.
    """
    if not storage.exists(storage.join(folder, DATASET_FILE)):
        return None
    try:
        dataset = read_dataset(folder)
    except DataError:
        return None
    is_same = dataset.options == describe_options(manifest, options)
    if not is_same or list(dataset.labels) != manifest.labels:
        return None
    check_files(folder, dataset)
    check_listed(folder, dataset, with_shards=with_shards)
    made_from = read_source_fingerprint(storage.join(folder, INDEX_FOLDER))
    if not made_from or made_from != manifest.fingerprint:
        return None
    return describe_dataset(folder, dataset, manifest, already_complete=True)


def can_read_more(result: ConversionResult) -> bool:
    """Tells whether rejected images can be read now, as with an extra that was missing."""
    rejects = read_rejects(storage.join(result.data_dir, REJECTS_FILE))
    return any(map(is_readable_now, rejects))
