"""A dataset that is named with its fingerprint, `URI#FINGERPRINT`: that one and no later one.

A pipeline hands the place of a dataset from task to task, and a service's cache compares its text
alone. Where one place gets one dataset after another, the place does not say which one is meant.
"""

from __future__ import annotations

import os
import re

from darkroom import storage
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.layout import DATASET_FILE, Folders
from darkroom.dataset.pointer import find_data
from darkroom.errors import DataError, StorageError

# Any other `#` is a part of a name.
_NAMED = re.compile(r"(.+)#([0-9a-fA-F]{64})", re.DOTALL)


def name_dataset(place: str, fingerprint: str) -> str:
    """Returns the name of the dataset that a place has now."""
    return f"{place}#{fingerprint}"


def split_name(name: str | os.PathLike[str]) -> tuple[str, str]:
    """Returns the place that a name of a dataset has, and the fingerprint; "" without one."""
    text = os.fspath(name)
    found = _NAMED.fullmatch(text)
    return (found[1], found[2].lower()) if found else (text, "")


def find_named(name: str | os.PathLike[str], known: str = "") -> str:
    """Returns the absolute folder of a dataset that a user names.

    Links are followed here, once: whoever opened a dataset by a link reads that dataset, also when
    the link leads to another one later.

    Args:
        name: Its folder or URI, also one of Kubeflow's store; after `#` may be its fingerprint.
        known: The fingerprint where the name has none; "" for any dataset.

    Raises:
        UsageError: It is not a path.
        StorageError: The dataset there has another fingerprint.
        OSError: It cannot be read.
    """
    place, expected = split_name(name) if isinstance(name, str | os.PathLike) else (name, "")
    folder = storage.resolve_links(storage.absolute(place))
    expected = expected or known
    try:
        found = read_dataset(folder).fingerprint if expected else ""
    except DataError:
        return folder  # whoever reads it reports the problem
    if found != expected:
        raise StorageError(
            f"{storage.join(folder, DATASET_FILE)} has the fingerprint {found}, expected "
            f"{expected}: another dataset has replaced the one that was named.",
            "To read the one that is there now, name it by its own fingerprint or by none; in a "
            "pipeline, run again with caching off. To have the other one again, convert its list.",
        )
    return folder


def find_named_data(name: str | os.PathLike[str]) -> str:
    """Returns the folder with the files of a dataset that a user names; see `find_named`."""
    return find_data(find_named(name))


def find_base(place: str) -> Folders | None:
    """Returns where the files of the dataset in a place are; None if there is none yet."""
    folder = find_named_data(place)
    is_there = storage.exists(storage.join(folder, DATASET_FILE))
    return Folders.of_dataset(folder) if is_there else None
