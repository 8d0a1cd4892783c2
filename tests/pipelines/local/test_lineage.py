"""ML Metadata where its file cannot be written."""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from darkroom.errors import DataError, StorageError
from darkroom.pipelines.local.lineage import name_metadata, read_run
from darkroom.pipelines.pipeline import make_connection_config

pytestmark = pytest.mark.tfx


@contextmanager
def limited_files(num_bytes: int) -> Iterator[None]:
    """Lets this process write only short files, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path):
    with limited_files(20_000), pytest.raises(StorageError) as caught:
        read_run(make_connection_config(str(tmp_path)), "darkroom")
    path = f"{tmp_path}/metadata.sqlite"
    assert caught.value.message == f"{path} cannot be read or written: disk I/O error."


@pytest.mark.parametrize(
    "module", ["ml_metadata.metadata_store.metadata_store", "tfx.orchestration.metadata"]
)
def test_words_of_sqlite_within_a_run(tmp_path: Path, module: str):
    text = "Cannot create node: database or disk is full query: INSERT INTO `Type`"
    connection = make_connection_config(str(tmp_path))
    with pytest.raises(StorageError, match=r"metadata\.sqlite cannot be read or written: "):  # noqa: SIM117
        with name_metadata(connection):
            exec("raise error", {"__name__": module, "error": RuntimeError(text)})


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("another one"),
        DataError("disk I/O error"),
        # Of a database of the user's own.
        sqlite3.OperationalError("unable to open database file"),
    ],
)
def test_other_errors_stay(tmp_path: Path, error: Exception):
    with pytest.raises(type(error)) as caught, name_metadata(make_connection_config(str(tmp_path))):
        raise error
    assert caught.value is error
