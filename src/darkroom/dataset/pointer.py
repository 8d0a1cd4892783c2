"""The `dataset.json` of an output on a store: it names the folder that holds the dataset.

A store cannot rename folders, and a worker of an earlier attempt may still write there. So each
attempt has a separate folder in the output, and a dataset becomes the output's by one write of
this small file. The folder that it names is a dataset as on a local disk, with a `dataset.json` of
its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from darkroom import storage
from darkroom.dataset.layout import DATA_FOLDER, DATASET_FILE

# That of the file that names a folder; that of a commit is in `commit.py`.
_FORMAT = 4
_FIELDS = {"format_version", "dataset", "fingerprint"}
_MAX_BYTES = 1 << 10


def data_folder(output: str, token: str) -> str:
    """Returns the folder of an attempt in an output on a store."""
    return storage.join(output, f"data-{token}")


def format_pointer(name: str, fingerprint: str) -> bytes:
    """Returns the file that names the folder of a dataset, and its fingerprint."""
    fields = {"format_version": _FORMAT, "dataset": name, "fingerprint": fingerprint}
    return f"{json.dumps(fields, indent=2)}\n".encode()


def parse_pointer(fields: object) -> Mapping[str, Any] | None:
    """Returns the fields of such a file; None when it is another commit.

    Raises:
        ValueError: It names no folder that could be a dataset of the output.
    """
    if not isinstance(fields, dict) or fields.keys() != _FIELDS:
        return None
    name, fingerprint = fields["dataset"], fields["fingerprint"]
    is_text = isinstance(name, str) and isinstance(fingerprint, str)
    if fields["format_version"] != _FORMAT or not is_text or not DATA_FOLDER.fullmatch(name):
        raise ValueError("it does not name the folder of a dataset")
    return fields


def find_output(folder: str) -> str:
    """Returns the output that the folder of a dataset's files is in: mostly the folder itself."""
    output, _, name = folder.rpartition("/")
    return output if storage.is_remote(folder) and DATA_FOLDER.fullmatch(name) else folder


def find_data(folder: str) -> str:
    """Returns the folder that holds the files of a dataset: mostly the folder itself.

    Args:
        folder: The folder of a dataset; it need not be one.
    """
    try:
        path = storage.join(folder, DATASET_FILE)
        fields = parse_pointer(storage.read_json(path, dict[str, Any], _MAX_BYTES))
    except (*storage.UNUSABLE, ValueError):
        return folder  # whoever reads the commit reports the problem
    return storage.join(folder, fields["dataset"]) if fields else folder
