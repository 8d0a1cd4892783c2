"""Adds files to a dataset that exists: sidecars, features, and how its source was read."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from darkroom import storage
from darkroom.conversion.output import ownership
from darkroom.conversion.output.attempts import new_token, take
from darkroom.conversion.output.output import Output
from darkroom.dataset import checksums, journal
from darkroom.dataset.checksums import read_sums, sum_bytes, write_sidecars
from darkroom.dataset.commit import Dataset, read_dataset
from darkroom.dataset.layout import (
    DATASET_FILE,
    READ_AS_FILE,
    SUMS_FILE,
    Folders,
    is_sidecar,
)
from darkroom.dataset.opening import check_unchanged
from darkroom.dataset.pointer import find_data
from darkroom.dataset.read_as import ReadAs, read_read_as
from darkroom.errors import ChangedError, OutputError, StorageError
from darkroom.storage.locks import FolderLock

_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)


def keep_accepted(output: str, read_as: ReadAs) -> None:
    """Takes doubts that were accepted out of the `read-as.json` of a dataset that was complete."""
    data = find_data(output)
    known, left = read_read_as(data), {doubt.name for doubt in read_as.doubts}
    if known and any(doubt.name not in left for doubt in known.doubts):
        contents = {READ_AS_FILE: read_as.to_json().encode()}
        with suppress(StorageError, OutputError):  # as on a disk that is read-only
            add_sidecars(output, data, read_dataset(data), contents, "")


def add_sidecars(
    output: str, data: str, dataset: Dataset, contents: Mapping[str, bytes], hint: str
) -> None:
    """Writes sidecars into a dataset, and lists them; nothing where they are there already.

    Args:
        output: The output.
        data: The folder of its files: on a store, one in it.
        dataset: Its commit.
        contents: The contents of the sidecars by path.
        hint: What to do where the dataset cannot be written.

    Raises:
        DataError: It was replaced meanwhile.
        OutputError: Files of these names are not darkroom's, or another run writes there.
        OSError: A file cannot be read or written.
    """
    listed = read_sums(data)
    sums = {name: sum_bytes(each) for name, each in contents.items()}
    if sums.items() <= listed.items() and not [*checksums.find_changed(data, sums, list(sums))]:
        # A run that was killed may have left its work. In a store it may be that of another run,
        # because no lock tells.
        if not storage.is_remote(output):
            Output(Folders.of_dataset(output)).remove_leftovers()
        return
    try:
        with FolderLock(output):
            _take_and_write(output, data, dataset, contents)
    except OSError as error:
        if error.errno not in _READ_ONLY:
            raise
        raise StorageError(f"{output} cannot be written: {error}.", hint) from error


def _take_and_write(
    output: str, data: str, dataset: Dataset, contents: Mapping[str, bytes]
) -> None:
    """Takes the output as an attempt does, writes the files, and replaces the list by one step.

    On a disk, whoever takes the output from this run takes the folder through which it writes.
    On a store, the list is only replaced in the version that was read.
    """
    folders = replace(Folders.of_dataset(data), token=new_token())
    check_unchanged({output: dataset})
    found = ownership.survey(folders, coming=contents)
    found.check()
    path = storage.join(data, SUMS_FILE)
    version, listed = storage.stat_file(path).version, read_sums(data)
    # A run that was killed may have left files for other readers.
    known = {storage.join(data, name) for name in (*listed, *contents)}
    left = [each for each in found.ours if is_sidecar(each[len(data) + 1 :]) and each not in known]
    written = [storage.join(data, name) for name in contents]
    try:
        take(folders)
        named = [*left, *written, path]
        journal.write_journal(folders, {*named, *map(folders.find_part, named)})
        storage.delete_files(left)
        sums = {**listed, **write_sidecars(data, contents, folders.find_part)}
        if storage.is_remote(path):
            storage.write_if_unchanged(path, checksums.format_sums(sums), version)
        else:
            checksums.write_sums(data, sums, folders.find_part(path))
        is_ours = find_data(output) == data
    except (ChangedError, FileNotFoundError) as error:
        is_taken = find_data(output) != data or not storage.exists(journal.journal_path(folders))
        if not is_taken and not isinstance(error, ChangedError):
            raise
        is_ours = False
    if not is_ours and storage.is_remote(data):
        _withdraw(data, contents)
    ownership.end_attempt(folders, committed=True)
    if not is_ours:
        raise OutputError(
            f"Another run has taken {output} since this one began.", "Run this again after it."
        )


def _withdraw(data: str, contents: Iterable[str]) -> None:
    """Deletes what was written into a folder on a store, but not what another run lists."""
    if storage.exists(storage.join(data, DATASET_FILE)):
        written = {*contents} - checksums.list_summed_sidecars(data)
    else:  # The dataset was replaced, and its list was written after it had been deleted.
        written = {*contents, SUMS_FILE}
    storage.delete_files(storage.join(data, name) for name in written)
