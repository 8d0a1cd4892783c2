"""All forms of sidecars, by the name of their reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from darkroom import storage
from darkroom.dataset.checksums import FileSum, sum_bytes
from darkroom.dataset.tfrecord import GZIP_SUFFIX
from darkroom.options.sidecars import check_readers
from darkroom.sidecars import croissant, dali, huggingface, object_detection, tfds
from darkroom.sidecars.described import Described


class Form(NamedTuple):
    """The sidecars of a reader.

    Attributes:
        list_files: Returns their paths below the dataset, of the paths of its shards.
        build: Returns their contents by path.
    """

    list_files: Callable[[Sequence[str]], list[str]]
    build: Callable[[Described], dict[str, bytes]]


FORMS: Mapping[str, Form] = {
    "tfds": Form(tfds.list_files, tfds.build),
    "dali": Form(dali.list_files, dali.build),
    "object_detection": Form(object_detection.list_files, object_detection.build),
    "croissant": Form(croissant.list_files, croissant.build),
    "huggingface": Form(huggingface.list_files, huggingface.build),
}


def list_sidecars(readers: Iterable[str], shards: Sequence[str]) -> list[str]:
    """Returns the paths, below a dataset, of all sidecars that readers may get."""
    return [file for name in readers for file in FORMS[name].list_files(shards)]


def build_sidecars(readers: Sequence[str], described: Described) -> dict[str, bytes]:
    """Returns the contents of the sidecars of readers, by their paths below the dataset.

    Raises:
        UsageError: The shards are compressed, and one of the readers reads them itself.
        DataError: The index is damaged.
        OSError: It cannot be read.
    """
    shards = described.dataset.shards
    check_readers(readers, compressed=any(each.file.endswith(GZIP_SUFFIX) for each in shards))
    return {path: data for name in readers for path, data in FORMS[name].build(described).items()}


def write_sidecars(
    folder: str, contents: Mapping[str, bytes], find_part: Callable[[str], str]
) -> dict[str, FileSum]:
    """Writes sidecars into the folder of a dataset.

    Args:
        folder: The folder.
        contents: Their contents by path.
        find_part: Returns the path for a file until it is complete.

    Returns:
        Their sums by path.
    """
    for path, data in contents.items():
        whole = storage.join(folder, path)
        storage.make_folder(whole.rpartition("/")[0])
        storage.write_bytes(whole, data, find_part(whole))
    return {path: sum_bytes(data) for path, data in contents.items()}
