"""Lists every row that a conversion planned, also those that it rejected while it read images.

Converted from nothing with the dataset's label map, seed and options, the list gives the same
shards, byte for byte.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from darkroom import storage
from darkroom.conversion.leaves import UNKNOWN_BYTES
from darkroom.dataset import rejects
from darkroom.dataset.index import find_index_files, read_index_batches
from darkroom.dataset.layout import REJECTS_FILE, Folders
from darkroom.dataset.named import find_named
from darkroom.dataset.opening import check_outside, open_dataset
from darkroom.dataset.pointer import find_data
from darkroom.errors import UsageError
from darkroom.storage import ledger

_ENDINGS = (".jsonl", ".ndjson")
_BATCH_ROWS = 8_192
_COLUMNS = ("id", "row", "uri", "split", "span", "label", "source_size")


def list_planned_rows(
    directory: str | os.PathLike[str], file: str | os.PathLike[str], *, overwrite: bool = False
) -> int:
    """Writes the planned rows of a dataset as JSON Lines: split, span, label and weight.

    Args:
        directory: A dataset.
        file: The list.
        overwrite: Whether a file that exists is replaced.

    Returns:
        The number of rows.

    Raises:
        UsageError: The name of the file is that of another form.
        DataError: The folder has no dataset, or a damaged one.
        OutputError: The file exists, or is in the dataset.
        OSError: A file cannot be read or written.
    """
    source, path = find_data(find_named(directory)), storage.absolute(file)
    if not path.lower().endswith(_ENDINGS):
        raise UsageError(
            f"The list is JSON Lines, and {path} does not end in {' or '.join(_ENDINGS)}.",
            "darkroom convert tells the form of a source by its ending.",
        )
    check_outside(source, path, "The list")
    ledger.check_output_file(path, overwrite=overwrite)
    open_dataset(source)
    return write_planned_rows(Folders.of_dataset(source), path)


def write_planned_rows(folders: Folders, path: str) -> int:
    """Writes the list of the dataset whose files are in folders; see `list_planned_rows`."""
    count = 0
    with storage.open_write(path) as target:
        for row in _read_rows(folders):
            weight = UNKNOWN_BYTES if row.size is None else row.size
            fields = {"id": row.id, "row": row.row, "span": row.span, "weight": weight}
            target.write(rejects.format_row(row, fields))
            count += 1
    return count


def _read_rows(folders: Folders) -> Iterator[rejects.Reject]:
    """Yields the planned rows, with the texts that a reject has."""
    for path in find_index_files(folders.index):
        for batch in read_index_batches(path, _COLUMNS, _BATCH_ROWS, optional=("extra",)):
            for each in batch.to_pylist():
                size, label = each.pop("source_size"), rejects.format_target(each.pop("label"))
                extra = {k: v for k, v in (each.pop("extra", None) or {}).items() if v is not None}
                yield rejects.Reject(
                    **each, label=label, extra=extra, size=size, stage="", reason="", detail=""
                )
    for reject in rejects.read_rejects(storage.join(folders.rejects, REJECTS_FILE)):
        if reject.stage == rejects.CONVERT_STAGE:
            yield reject
