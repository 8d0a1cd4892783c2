"""The forms of sidecars, found by the names of their readers, as `options.sidecars` has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Protocol, cast

from darkroom import storage
from darkroom.dataset.checksums import FileSum, sum_bytes
from darkroom.dataset.tfrecord import GZIP_SUFFIX
from darkroom.options.sidecars import check_readers
from darkroom.sidecars.described import Described


class Form(Protocol):
    """The sidecars of a reader, which are in the module of its name."""

    def list_files(self, shards: Sequence[str]) -> list[str]:
        """Returns their paths below the dataset, of the paths of its shards."""

    def build(self, described: Described) -> dict[str, bytes]:
        """Returns their contents by path."""


def _load_form(name: str) -> Form:
    return cast("Form", import_module(f"darkroom.sidecars.{name}"))


def list_sidecars(readers: Iterable[str], shards: Sequence[str]) -> list[str]:
    """Returns the paths, below a dataset, of all sidecars that readers may get."""
    return [file for name in readers for file in _load_form(name).list_files(shards)]


def build_sidecars(readers: Sequence[str], described: Described) -> dict[str, bytes]:
    """Returns the contents of the sidecars of readers, by their paths below the dataset.

    Raises:
        UsageError: The shards are compressed, and one of the readers reads them itself.
        DataError: The index is damaged.
        OSError: It cannot be read.
    """
    shards = described.dataset.shards
    check_readers(readers, compressed=any(each.file.endswith(GZIP_SUFFIX) for each in shards))
    forms = map(_load_form, readers)
    return {path: data for form in forms for path, data in form.build(described).items()}


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
