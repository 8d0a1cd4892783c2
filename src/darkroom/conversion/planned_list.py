"""The list of the rows of a dataset, as a file for people."""

from __future__ import annotations

import os

from darkroom import storage
from darkroom.conversion.planned_rows import ENDINGS, write_planned_rows
from darkroom.dataset.layout import Folders
from darkroom.dataset.named import find_named_data
from darkroom.dataset.opening import check_outside, open_dataset
from darkroom.errors import UsageError
from darkroom.storage import ledger


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
        DataError: There is no dataset in the folder, or it is damaged.
        OutputError: The file exists, or is in the dataset.
        OSError: A file cannot be read or written.
    """
    source, path = find_named_data(directory), storage.absolute(file)
    if not path.lower().endswith(ENDINGS):
        raise UsageError(
            f"The list is JSON Lines, and {path} does not end in {' or '.join(ENDINGS)}.",
            "darkroom convert tells the form of a source by its ending.",
        )
    check_outside(source, path, "The list")
    ledger.check_output_file(path, overwrite=overwrite)
    has_objects = open_dataset(source).objects is not None
    return write_planned_rows(Folders.of_dataset(source), path, has_objects=has_objects)
