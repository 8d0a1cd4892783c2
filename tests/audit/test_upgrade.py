"""`darkroom upgrade` makes of a dataset of format 1 what a conversion makes today."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.format_1 import make_format_1
from tests.pictures import write_label_folders

from darkroom import storage
from darkroom.audit.upgrade import upgrade
from darkroom.audit.verify import verify
from darkroom.cli import main
from darkroom.conversion.convert import convert
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.opening import open_dataset
from darkroom.errors import DataError, OutputError, StorageError


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The same dataset twice, with a reject: as a conversion makes it now, and in format 1."""
    folder = tmp_path_factory.mktemp("made")
    write_label_folders(folder / "src", 9)
    (folder / "src" / "dog" / "bad.jpg").write_text("not an image")
    convert(folder / "src", folder / "new", max_rejects=1)
    shutil.copytree(folder / "new", folder / "old")
    make_format_1(folder / "old")
    return folder


@pytest.fixture
def old(made, tmp_path) -> Path:
    return Path(shutil.copytree(made / "old", tmp_path / "data"))


def _read(root: Path) -> dict[str, bytes]:
    paths = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def test_a_dataset_of_format_1_is_read_and_verified_and_the_output_says_so(old, capsys):
    assert open_dataset(str(old)).format_version == 1
    assert main(["verify", str(old)]) == 0
    said = capsys.readouterr().out
    assert (
        "Format     1: some damage beside the shards cannot be found. Bring it to format 2 " in said
    )
    assert f"format 2 with darkroom upgrade {old}" in said
    assert verify(old).format_version == 1


def test_an_upgraded_dataset_is_that_of_a_conversion_today(made, old, capsys):
    (made / "src").rename(made / "away")  # no image of the source is read
    try:
        assert main(["upgrade", str(old), "--json"]) == 0
    finally:
        (made / "away").rename(made / "src")
    said = json.loads(capsys.readouterr().out)
    expected = read_dataset(str(made / "new")).fingerprint
    assert said == {
        "directory": str(old),
        "from_version": 1,
        "format_version": 2,
        "fingerprint": expected,
    }
    assert _read(old) == _read(made / "new")
    assert verify(old).is_sound
    before = _read(old)
    assert main(["upgrade", str(old)]) == 0
    assert capsys.readouterr().out == f"{old} already has format 2.\n"
    assert _read(old) == before


def test_an_upgrade_that_ends_anywhere_leaves_a_sound_dataset(made, old, tmp_path, monkeypatch):
    steps = ("write_bytes", "delete_file")
    real = {name: getattr(storage, name) for name in steps}
    for limit in range(10):
        root = Path(shutil.copytree(old, tmp_path / f"{limit}"))
        done = 0

        def end(*args, name, limit=limit, **options):
            nonlocal done
            if done == limit:
                raise InterruptedError
            done += 1
            return real[name](*args, **options)

        for name in steps:
            monkeypatch.setattr(
                storage, name, lambda *args, name=name, **options: end(*args, name=name, **options)
            )
        try:
            upgrade(root)
            break
        except StorageError:
            pass
        finally:
            monkeypatch.undo()
        assert verify(root).is_sound, verify(root).findings
        upgrade(root)
        assert _read(root) == _read(made / "new")
    assert limit == 3, "the list of hashes, the old hashes of the index, the commit"


def test_the_examples_of_a_pipeline_are_upgraded_without_index_and_rejects(old):
    shutil.rmtree(old / "index")
    for name in ("rejects.parquet", "rejects.jsonl"):
        (old / name).unlink()
    upgrade(old)
    result = verify(old)
    assert (result.is_sound, result.format_version) == (True, 2)
    assert (result.has_index, result.has_rejects) == (False, False)


def test_a_damaged_dataset_stays_as_it_is(old):
    path = next((old / "index").glob("index-*"))
    path.write_bytes(path.read_bytes()[:-1])
    before = _read(old)
    with pytest.raises(DataError, match=rf"is not sound, so it stays.*\n.*index/{path.name}"):
        upgrade(old)
    assert _read(old) == before


def test_a_list_of_hashes_of_the_user_stays(old):
    (old / "SHA256SUMS").write_text("mine")
    before = _read(old)
    with pytest.raises(OutputError, match="has a file SHA256SUMS that darkroom did not write"):
        upgrade(old)
    assert _read(old) == before


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_dataset_of_format_1_is_replaced_if_its_files_are_ours(made, old, is_damaged):
    if is_damaged:
        path = next((old / "index").glob("index-*"))
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(OutputError, match=f"1 file that .*: index/{path.name}"):
            convert(made / "src", old, max_rejects=1, overwrite=True)
        path.unlink()
    convert(made / "src", old, max_rejects=1, overwrite=True)
    assert _read(old) == _read(made / "new")
