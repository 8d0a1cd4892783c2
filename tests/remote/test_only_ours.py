"""In a store, too: a command replaces only the objects that darkroom wrote."""

from __future__ import annotations

import pytest

from darkroom import storage
from darkroom.audit.contact_sheet import inspect
from darkroom.audit.duplicates import find_duplicates
from darkroom.errors import OutputError
from darkroom.storage import ledger

from .test_ownership import read_objects

pytestmark = pytest.mark.heavy


def test_a_contact_sheet_is_replaced_and_no_object_of_the_user(store, converted_jpegs):
    folder = f"{store[1]}/look"
    for n in (3, 3, 2):
        inspect(converted_jpegs, n=n, output_dir=folder)
    storage.write_bytes(f"{folder}/records.csv", b"mine")
    before = read_objects(folder)
    with pytest.raises(OutputError, match=r"changed since: records\.csv"):
        inspect(converted_jpegs, n=1, output_dir=folder)
    assert read_objects(folder) == before


def test_a_folder_is_claimed_and_no_object_of_the_user_is_in_it(store):
    storage.write_bytes(f"{store[1]}/mine/model/graph", b"mine")
    with pytest.raises(OutputError, match="did not write"):
        ledger.claim(f"{store[1]}/mine", {"model/": ledger.ANY})
    with pytest.raises(OutputError, match="contains unrelated files: model"):
        ledger.check_alone(f"{store[1]}/mine", ["log.txt"], "Do this")
    assert read_objects(f"{store[1]}/mine") == {"model/graph": b"mine"}
    for _ in range(2):
        ledger.claim(f"{store[1]}/run", {"model/": ledger.ANY})
        storage.write_bytes(f"{store[1]}/run/model/graph", b"1")


def test_an_object_that_exists_is_replaced_only_with_overwrite(store, converted_jpegs):
    path = f"{store[1]}/list.parquet"
    storage.write_bytes(path, b"mine")
    with pytest.raises(OutputError, match="exists already"):
        find_duplicates(converted_jpegs, path)
    assert storage.read_bytes(path) == b"mine"
    find_duplicates(converted_jpegs, path, overwrite=True)
    assert storage.read_bytes(path).startswith(b"PAR1")
    storage.write_bytes(f"{store[1]}/folder.parquet/mine", b"mine")
    with pytest.raises(OutputError, match="is a folder"):
        find_duplicates(converted_jpegs, f"{store[1]}/folder.parquet", overwrite=True)
