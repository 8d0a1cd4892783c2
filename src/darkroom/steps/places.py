"""Where a task finds its artifacts: KFP passes URIs, and its launcher copies their files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from darkroom import storage
from darkroom.dataset.checksums import read_sums
from darkroom.dataset.pointer import find_data
from darkroom.errors import DataError, StorageError
from darkroom.runtime.text import MAX_LISTED_ROWS
from darkroom.storage.uris import find_remote

# Metadata of a dataset; the first if it is elsewhere than its artifact.
LOCATION_KEY, FINGERPRINT_KEY = "location", "fingerprint"
# The file of the artifact of a dataset that was not there; of one without files KFP keeps nothing.
NONE_FILE = "no-dataset.txt"
MOUNTS_VARIABLE = "DARKROOM_MOUNTS"
MOUNTS = {"minio://": "minio", "s3://": "s3", "gs://": "gcs"}
NO_PLACES: Mapping[str, str] = MappingProxyType({})
# Kubeflow gives it to each of its pods, and Vertex, where nothing is copied, does not have it.
_POD_VARIABLE = "KFP_POD_NAME"


def find_mount(uri: str) -> str:
    """Returns the path where KFP's launcher puts an artifact, or looks for it.

    The launcher's folders are `/minio`, `/s3` and `/gcs`; for tests without a container,
    `DARKROOM_MOUNTS` names another folder for the three.
    """
    for scheme, folder in MOUNTS.items():
        if uri.startswith(scheme):
            return storage.join(
                os.environ.get(MOUNTS_VARIABLE, "/"), folder, uri.removeprefix(scheme)
            )
    return uri


def find_artifact_place(uri: str) -> str:
    """Returns where a task reads or writes an artifact: a folder of the launcher, or the URI."""
    is_copied = not uri.startswith("gs://") or {_POD_VARIABLE, MOUNTS_VARIABLE} & os.environ.keys()
    return find_mount(uri) if is_copied else uri


def name_uris(text: str, places: Mapping[str, str] = NO_PLACES) -> str:
    """Returns a text with the URIs of artifacts in the place of the launcher's folders.

    The folders are gone when somebody reads a message, a page or the metadata of an artifact.

    Args:
        text: The text.
        places: Other folders of the container, and the URI of each; the inner ones first.
    """
    for folder, uri in places.items():
        text = text.replace(folder, uri)
    root = re.escape(os.environ.get(MOUNTS_VARIABLE, "/").rstrip("/"))
    for scheme, folder in MOUNTS.items():
        text = re.sub(rf"(?<![\w./-]){root}/{folder}/(?=\w)", scheme, text)
    return text


def name_place(place: str) -> str:
    """Returns the name by which a later task finds an artifact in a place of this one."""
    return find_remote(name_uris(place))


def check_inputs(inputs: Iterable[tuple[str, str]], how: str = "") -> None:
    """Checks that each input of a task has files: all artifacts of darkroom and TFX have.

    A store may delete files by its own rules, while the metadata store and the cache still list the
    artifact. KFP's launcher downloads the rest below the URI, and succeeds in any case. Where
    an artifact lists its files, all of them must be there.

    Args:
        inputs: URI and place of each input.
        how: The flag that turns the cache off, in brackets; "" for nothing.

    Raises:
        StorageError: An input has no files, or not all.
        OSError: A store does not answer.
    """
    places = dict(inputs)
    hint = f"Run again with caching off{how} to make it again, or restore its files."
    if missing := sorted(uri for uri, place in places.items() if not storage.has_files(place)):
        raise StorageError(
            f"The store no longer has any file of the input {', '.join(missing)}.", hint
        )
    for uri, place in places.items():
        if lost := _list_lost(place):
            named = ", ".join(lost[:MAX_LISTED_ROWS])
            raise StorageError(
                f"The store no longer has all files of the input {uri}: {named} "
                f"({len(lost):,} of them).",
                hint,
            )


def _list_lost(place: str) -> list[str]:
    """Returns the files that the list in a folder names, and that are not there."""
    folder = find_data(place)
    try:
        sums = read_sums(folder)
    except (FileNotFoundError, NotADirectoryError, DataError):
        return []  # whoever reads the artifact reports the problem
    there = storage.list_everything(folder)
    return [name for name in sums if name not in there]
