from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from darkroom import storage
from darkroom.errors import MissingExtraError, UsageError, describe_os_error
from darkroom.storage import FileTooLargeError


def test_a_path_has_files_if_it_is_a_file_or_has_one_below(tmp_path):
    (tmp_path / "empty/inside").mkdir(parents=True)
    (tmp_path / "full/inside").mkdir(parents=True)
    (tmp_path / "full/inside/file").touch()
    places = ("empty", "empty/inside", "full", "full/inside", "full/inside/file", "none")
    assert [place for place in places if storage.has_files(str(tmp_path / place))] == [
        "full",
        "full/inside",
        "full/inside/file",
    ]


def test_all_files_are_looked_up_including_hidden_ones(tmp_path):
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden/.a").write_bytes(b"12")
    (tmp_path / "b").touch()
    found = storage.look_up_files(str(tmp_path))
    assert {name: info.size_bytes for name, info in found.items()} == {".hidden/.a": 2, "b": 0}
    assert storage.look_up_files(str(tmp_path / "none")) == {}
    assert list(storage.walk_files(str(tmp_path))) == ["b"]


def test_a_regular_file_is_read(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"abc")
    assert storage.read_bytes(f"{tmp_path}/a") == b"abc"
    assert storage.read_bytes(f"file://{tmp_path}/a", 3) == b"abc"
    with pytest.raises(FileTooLargeError, match="more than 2 bytes"):
        storage.read_bytes(f"{tmp_path}/a", 2)


def test_broken_links_are_errors(tmp_path: Path):
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(FileNotFoundError):
        storage.read_bytes(str(tmp_path / "dangling"))
    with pytest.raises(OSError, match="symbolic links"):
        storage.read_bytes(str(tmp_path / "loop"))


def test_a_file_is_written_completely_or_not_at_all(tmp_path: Path, monkeypatch):
    path = tmp_path / "a"
    storage.write_bytes(str(path), b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        storage.write_bytes(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_written_file_has_the_permissions_of_the_umask(tmp_path: Path):
    before = os.umask(0o027)
    try:
        storage.write_bytes(f"{tmp_path}/a", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(tmp_path / "a").st_mode) == 0o640


def test_what_exists_is_not_a_pattern_and_neither_is_the_beginning_of_one(tmp_path: Path):
    for name in ("d[1]/a*", "d[1]/ab", "d1/a", "x?/y"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    whole = f"{tmp_path}/d[1]/a*"
    assert not storage.is_pattern(whole)
    assert storage.match_pattern(whole) == [whole]
    assert storage.match_pattern(f"{tmp_path}/d[1]/*") == [whole, f"{tmp_path}/d[1]/ab"]
    assert storage.match_pattern(f"{tmp_path}/x?/[y]") == [f"{tmp_path}/x?/y"]
    assert storage.is_pattern(f"{tmp_path}/d?")
    assert storage.match_pattern(f"{tmp_path}/d[12]/*") == [f"{tmp_path}/d1/a"]
    assert storage.match_pattern(f"{tmp_path}/d[1]/none") == []
    assert storage.match_pattern(f"file://{tmp_path}/d[1]/ab") == [f"{tmp_path}/d[1]/ab"]


def test_folders_are_listed_and_deleted(tmp_path: Path):
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    assert storage.list_folder(str(tmp_path)) == ["folder", "link"]
    storage.delete(str(tmp_path / "link"))
    assert (tmp_path / "folder").exists()
    storage.delete(str(tmp_path / "folder"))
    storage.delete(str(tmp_path / "folder"))
    assert storage.list_folder(str(tmp_path)) == []
    assert storage.list_folder(str(tmp_path / "none")) == []


def test_size_and_version_change_with_the_file(tmp_path: Path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    first = storage.stat_file(str(path))
    os.utime(path, ns=(1, 1))
    assert storage.stat_file(str(path)) == (3, "1")
    assert first.version != "1"


def test_linked_folders_are_followed_once(tmp_path: Path):
    (tmp_path / "images" / "cat").mkdir(parents=True)
    (tmp_path / "images" / "cat" / "1.png").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "2.png").touch()
    (tmp_path / "images" / "dog").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "images" / "cat" / "loop").symlink_to(tmp_path / "images")
    assert list(storage.walk_files(f"{tmp_path}/images")) == ["cat/1.png", "dog/2.png"]


def test_a_folder_that_cannot_be_read_is_not_skipped(tmp_path: Path, monkeypatch):
    (tmp_path / "cat").mkdir()
    real = os.scandir

    def scan(path: str):
        if str(path).endswith("cat"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scan)
    with pytest.raises(PermissionError, match="cat"):
        list(storage.walk_files(str(tmp_path)))


@pytest.mark.parametrize("path", ["", "a\0b", 5, None])
def test_an_invalid_path_is_an_error_and_not_the_working_folder(path):
    with pytest.raises(UsageError, match="is not a path"):
        storage.absolute(path)


def test_s3_without_its_extra_names_the_extra(monkeypatch):
    monkeypatch.setattr("darkroom.runtime.lazy_names.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"'darkroom-data\[aws\]'"):
        storage.exists("s3://bucket/a")


@pytest.mark.parametrize(
    ("call", "number"), [("tempfile.mkstemp", errno.EACCES), ("os.replace", errno.EISDIR)]
)
def test_an_error_names_the_file_that_cannot_be_written_and_not_its_part(
    tmp_path: Path, monkeypatch, call: str, number: int
):
    def refuse(*_: object, **__: object) -> None:  # root may do everything
        raise OSError(number, os.strerror(number), f"{tmp_path}/.part-0twiplxo")

    monkeypatch.setattr(f"darkroom.storage.local.{call}", refuse)
    with pytest.raises(OSError, match=os.strerror(number)) as error:
        storage.write_bytes(f"{tmp_path}/a.csv", b"a")
    assert describe_os_error(error.value) == (
        f"{tmp_path}/a.csv cannot be read or written: {os.strerror(number)}."
    )
    assert os.listdir(tmp_path) == []


def test_every_error_of_the_system_becomes_a_sentence():
    for error, text in [
        (OSError(28, "No space left on device"), "No space left on device."),
        (OSError("a is not a regular file"), "a is not a regular file."),
        (OSError(), "OSError."),
        (OSError(18, "Cross-device link", "a", None, "b"), "b cannot be read or written: Cross-d"),
        (MissingExtraError("No extra.", "Install it."), "No extra. Install it."),
    ]:
        assert describe_os_error(error).startswith(text)


def test_everything_is_listed_and_no_link_is_followed(tmp_path: Path):
    root = tmp_path / "a"
    (root / "b" / ".c").mkdir(parents=True)
    (root / "b" / ".c" / "d").write_bytes(b"123")
    (root / ".e").write_bytes(b"")
    (root / "link").symlink_to(tmp_path)
    os.mkfifo(root / "fifo")
    unusual = storage.NOT_REGULAR
    found = {".e": 0, "b/.c/d": 3, "fifo": unusual, "link": unusual}
    assert storage.list_everything(str(root)) == found
    assert storage.list_everything(f"file://{root}/b/.c/d") == {"": 3}
    assert storage.list_everything(str(root / "link")) == {"": unusual}
    assert storage.list_everything(str(root / "none")) == {}


def test_only_files_and_empty_folders_are_removed(tmp_path: Path):
    for name in ("a/b/1", "a/b/2", "a/c/3", "beyond/d/e"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "beyond" / "empty").mkdir()
    (tmp_path / "a" / "link").symlink_to(tmp_path / "beyond")
    storage.delete_files([f"{tmp_path}/a/{name}" for name in ("b/1", "b/2", "link", "none")])
    storage.remove_empty_folders(f"{tmp_path}/a")
    assert sorted(path.name for path in (tmp_path / "a").rglob("*")) == ["3", "c"]
    assert (tmp_path / "beyond" / "d" / "e").exists()
    (tmp_path / "a" / "link").symlink_to(tmp_path / "beyond")
    storage.remove_empty_folders(f"{tmp_path}/a/link")
    assert (tmp_path / "beyond" / "empty").is_dir()
    with pytest.raises(IsADirectoryError):
        storage.delete_file(f"{tmp_path}/a")


def test_a_part_with_a_known_name_does_not_remain_and_is_never_a_link(tmp_path: Path):
    path = tmp_path / "a.txt"
    storage.write_bytes(str(path), b"1", storage.find_part(str(path)))
    assert path.read_bytes() == b"1"
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]
    (tmp_path / "mine").write_bytes(b"mine")
    Path(storage.find_part(str(path))).symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="symbolic links"):
        storage.write_bytes(str(path), b"2", storage.find_part(str(path)))
    assert (tmp_path / "mine").read_bytes() == b"mine"


def test_marked_folders_can_be_left_out(tmp_path: Path):
    for name in ("x.json", "a/1", "a/b/2", "c/x.json", "c/d/3", "e/.f/4", "e/5"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    asked = []

    def is_left_out(folder: str, name: str) -> bool:
        asked.append((folder, name))
        return name in ("x.json", "d")

    found = list(storage.walk_files(str(tmp_path), ("x.json", ".f"), is_left_out))
    assert found == ["x.json", "a/1", "a/b/2", "e/5"]
    assert sorted(asked) == [("c", "d"), ("c", "x.json"), ("e", ".f"), ("e", "5")]
