"""The forms of sidecars, found by the names of their readers, as `options.sidecars` has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Protocol, cast

from darkroom.dataset.commit import Dataset
from darkroom.dataset.tfrecord import GZIP_SUFFIX
from darkroom.options.sidecars import check_readers
from darkroom.sidecars.described import Described


class SidecarForm(Protocol):
    """The sidecars of a reader, which are in the module of its name."""

    def list_sidecar_files(self, shards: Sequence[str]) -> list[str]:
        """Returns their paths below the dataset, of the paths of its shards."""

    def build(self, described: Described) -> dict[str, bytes]:
        """Returns their contents by path."""


def _load_form(name: str) -> SidecarForm:
    return cast("SidecarForm", import_module(f"darkroom.sidecars.{name}"))


def list_sidecars(readers: Iterable[str], shards: Sequence[str]) -> list[str]:
    """Returns the paths, below a dataset, of all sidecars that readers may get."""
    return [file for name in readers for file in _load_form(name).list_sidecar_files(shards)]


def build_sidecars(
    readers: Sequence[str], dataset: Dataset, index: str, root: str = ""
) -> dict[str, bytes]:
    """Returns the contents of the sidecars of readers, by their paths below the dataset.

    Args:
        readers: The readers.
        dataset: The commit of the dataset.
        index: The folder of its index.
        root: As of `Described`.

    Raises:
        UsageError: The shards are compressed, and one of the readers reads them itself.
        DataError: The index is damaged.
        OSError: It cannot be read.
    """
    is_compressed = any(each.file.endswith(GZIP_SUFFIX) for each in dataset.shards)
    check_readers(readers, compressed=is_compressed)
    described, forms = Described(dataset, index, root), map(_load_form, readers)
    return {path: data for form in forms for path, data in form.build(described).items()}
