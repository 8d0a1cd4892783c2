"""Copies of folders: all files, or an error and no files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from darkroom import storage
from darkroom.errors import OutputError, StorageError
from darkroom.storage import copies

from ..trees import read_files

CONTENT = {
    "saved_model.pb": b"graph" * 100_000,
    "assets/.hidden": b"h",
    "assets/empty.txt": b"",
    "variables/variables.index": b"index",
}
LAST = "saved_model.pb"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "source", CONTENT)


def write(folder: Path, content: dict[str, bytes]) -> Path:
    for name, data in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def after_copy(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[Path], object]) -> None:
    """Calls `act` with the copy of a file right after it was made."""
    plain = copies.copy_hashed

    def copy(source: str, destination: str) -> object:
        made = plain(source, destination)
        if destination.endswith(name):
            act(Path(destination))
        return made

    monkeypatch.setattr(copies, "copy_hashed", copy)


def test_every_file_is_copied_including_hidden_and_empty_ones(source: Path, tmp_path: Path):
    copies.copy_folder(str(source), str(tmp_path / "made/copy"))
    assert read_files(tmp_path / "made/copy") == CONTENT
    assert read_files(source) == CONTENT


def test_the_last_file_is_copied_after_all_others_were_read_back(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    done: list[str] = []
    for name in ("copy_hashed", "_check_copy"):
        plain = getattr(copies, name)

        def note(*given: object, name=name, plain=plain) -> object:
            path = str(given[1] if name == "copy_hashed" else given[0])
            done.append(f"{name} {path.rpartition('/')[2]}")
            return plain(*given)

        monkeypatch.setattr(copies, name, note)
    copies.copy_folder(str(source), str(tmp_path / "copy"), last=LAST)
    assert done[-2:] == [f"copy_hashed {LAST}", f"_check_copy {LAST}"]
    assert sorted(done[3:-2]) == [
        "_check_copy .hidden",
        "_check_copy empty.txt",
        "_check_copy variables.index",
    ]


@pytest.mark.parametrize(("name", "last"), [("variables.index", ""), (LAST, LAST)])
@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (os.unlink, "does not exist after it was written"),
        (lambda path: os.truncate(path, 0), "differs from the written bytes: it has 0 bytes"),
        (lambda path: path.write_bytes(path.read_bytes()[::-1]), "differs from the written bytes"),
    ],
    ids=["lost", "emptied", "changed"],
)
def test_a_copy_that_differs_from_what_was_written_is_an_error_and_leaves_no_files(
    source: Path, tmp_path: Path, monkeypatch, name: str, damage, expected: str, last: str
):
    target = write(tmp_path / "copy", {"assets/of another": b"kept"})
    after_copy(monkeypatch, name, damage)
    with pytest.raises(StorageError, match=rf"copy/.*{name} {expected}") as caught:
        copies.copy_folder(str(source), str(target), last=last)
    assert "run again" in caught.value.hint
    assert read_files(target) == {"assets/of another": b"kept"}
    assert sorted(path.name for path in target.iterdir()) == ["assets"]
    with pytest.raises(StorageError):
        copies.copy_folder(str(source), str(tmp_path / "new/copy"))
    assert not (tmp_path / "new/copy").exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda source: (source / "saved_model.pb").write_bytes(b"longer" * 200_000),
        lambda source: (source / "assets/empty.txt").unlink(),
        lambda source: (source / "variables/new").write_bytes(b"new"),
    ],
    ids=["size", "removed", "added"],
)
@pytest.mark.parametrize("last", ["", LAST])
def test_a_source_that_changes_is_an_error_and_leaves_no_files(
    source: Path, tmp_path: Path, monkeypatch, change, last: str
):
    after_copy(monkeypatch, "variables.index", lambda _: change(source))
    with pytest.raises(StorageError, match=f"{source} changed while it was copied"):
        copies.copy_folder(str(source), str(tmp_path / "copy"), last=last)
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("kind", ["absent", "empty", "empty folders", "a file"])
def test_a_source_without_files_is_an_error(tmp_path: Path, kind: str):
    source = tmp_path / "source"
    if kind.startswith("empty"):
        (source / "variables" if kind == "empty folders" else source).mkdir(parents=True)
    elif kind == "a file":
        source.write_bytes(b"x")
    with pytest.raises(StorageError, match=f"{source} has no files"):
        copies.copy_folder(str(source), str(tmp_path / "copy"))
    with pytest.raises(StorageError, match=f"{source} has no files"):
        copies.move_folder(str(source), str(tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()
    assert source.exists() == (kind != "absent")


def test_a_moved_folder_is_deleted_only_when_its_copy_is_complete(
    source: Path, tmp_path: Path, monkeypatch
):
    with monkeypatch.context() as patch:
        after_copy(patch, "variables.index", os.unlink)
        with pytest.raises(StorageError):
            copies.move_folder(str(source), str(tmp_path / "moved"))
    assert read_files(source) == CONTENT
    copies.move_folder(str(source), str(tmp_path / "moved"))
    assert not source.exists()
    assert read_files(tmp_path / "moved") == CONTENT


def test_no_file_is_replaced_by_a_copy(source: Path, tmp_path: Path):
    taken = write(tmp_path / "taken", {"assets/empty.txt": b"mine", "other": b"mine"})
    with pytest.raises(OutputError, match=r"would be replaced: assets/empty\.txt\. Move them"):
        copies.copy_folder(str(source), str(taken))
    assert read_files(taken) == {"assets/empty.txt": b"mine", "other": b"mine"}
    assert read_files(source) == CONTENT


def test_a_file_that_comes_while_a_folder_is_moved_stays(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plain = copies.copy_folder

    def copy(*given: str) -> None:
        plain(*given)
        (source / "thesis.txt").write_bytes(b"mine")

    monkeypatch.setattr(copies, "copy_folder", copy)
    copies.move_folder(str(source), str(tmp_path / "moved"))
    assert read_files(tmp_path / "moved") == CONTENT
    assert read_files(source) == {"thesis.txt": b"mine"}


@pytest.mark.parametrize("name", ["run[1]", "a*.weights.h5", "b?", "c.[x"])
def test_a_name_that_is_a_pattern_gets_a_plain_one(tmp_path: Path, name: str):
    given = tmp_path / name
    given.write_bytes(b"weights")
    with copies.use_local_copy(str(given)) as path:
        assert Path(path).read_bytes() == b"weights"
        assert not storage.has_wildcard(path)
        assert path.endswith(".weights.h5") == name.endswith(".weights.h5")
    assert not os.path.lexists(path)
    assert given.read_bytes() == b"weights"
