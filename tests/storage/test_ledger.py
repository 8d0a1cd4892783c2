"""A folder's ledger: darkroom replaces what it wrote, and keeps what somebody else did."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from darkroom import storage
from darkroom.errors import OutputError
from darkroom.storage.ledger import (
    ANY,
    LEDGER_FILE,
    check_alone,
    claim,
    is_listed,
    write_files,
)


def read(folder: Path) -> dict[str, bytes]:
    found = storage.look_up_files(str(folder))
    return {name: (folder / name).read_bytes() for name in found if name != LEDGER_FILE}


def test_files_are_written_and_written_again(tmp_path: Path) -> None:
    folder = tmp_path / "new/inner"
    paths = write_files(str(folder), {"a.txt": b"1", "b.txt": b"2"})
    assert paths == [str(folder / "a.txt"), str(folder / "b.txt")]
    write_files(str(folder), {"a.txt": b"one", "c.txt": b"3"})
    assert read(folder) == {"a.txt": b"one", "b.txt": b"2", "c.txt": b"3"}


@pytest.mark.parametrize("name", ["a.txt", "b.txt"])
def test_a_file_of_the_user_stops_all_of_them(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"thesis")
    with pytest.raises(OutputError, match=f"holds 1 file that darkroom did not write.*: {name}"):
        write_files(str(tmp_path), {"a.txt": b"1", "b.txt": b"2"})
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == b"thesis"


def test_a_file_that_was_changed_is_the_users(tmp_path: Path) -> None:
    write_files(str(tmp_path), {"a.txt": b"1"})
    (tmp_path / "a.txt").write_bytes(b"corrected")
    with pytest.raises(OutputError, match=r"changed since: a\.txt\. Move it elsewhere"):
        write_files(str(tmp_path), {"a.txt": b"2"})
    assert read(tmp_path) == {"a.txt": b"corrected"}


@pytest.mark.parametrize("there", [b"1", b""])
def test_nothing_is_lost_with_the_same_bytes_or_none(tmp_path: Path, there: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(there)
    write_files(str(tmp_path), {"a.txt": b"1"})
    write_files(str(tmp_path), {"a.txt": b"2"})
    assert read(tmp_path) == {"a.txt": b"2"}


def test_a_link_is_never_ours(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_bytes(b"1")
    folder = tmp_path / "out"
    write_files(str(folder), {"a.txt": b"1"})
    (folder / "a.txt").unlink()
    (folder / "a.txt").symlink_to(tmp_path / "thesis.txt")
    with pytest.raises(OutputError, match="did not write"):
        write_files(str(folder), {"a.txt": b"1"})
    assert (folder / "a.txt").is_symlink()
    assert (tmp_path / "thesis.txt").read_bytes() == b"1"


@pytest.mark.parametrize("text", ["{}", "[1]", '{"darkroom_files": 2}', "not JSON"])
def test_another_file_with_the_name_of_a_ledger_stays(tmp_path: Path, text: str) -> None:
    (tmp_path / LEDGER_FILE).write_text(text)
    with pytest.raises(OutputError, match=LEDGER_FILE):
        write_files(str(tmp_path), {"a.txt": b"1"})
    assert os.listdir(tmp_path) == [LEDGER_FILE]
    assert (tmp_path / LEDGER_FILE).read_text() == text


def test_a_kill_between_ledger_and_file_leaves_what_can_be_replaced(tmp_path: Path) -> None:
    write_files(str(tmp_path), {"a.txt": b"1", "b.txt": b"1"})
    before = (tmp_path / "a.txt").read_bytes()
    write_files(str(tmp_path), {"a.txt": b"2", "b.txt": b"2"})
    (tmp_path / "a.txt").write_bytes(before)  # as if the kill came before its second version
    write_files(str(tmp_path), {"a.txt": b"3", "b.txt": b"3"})
    assert read(tmp_path) == {"a.txt": b"3", "b.txt": b"3"}


def test_a_folder_is_ours_when_it_was_claimed(tmp_path: Path) -> None:
    claim(str(tmp_path), {"model/": ANY, "log.txt": ANY})
    (tmp_path / "model").mkdir()
    (tmp_path / "model/graph").write_bytes(b"1")
    (tmp_path / "log.txt").write_bytes(b"1")
    claim(str(tmp_path), {"model/": ANY, "log.txt": ANY})
    with pytest.raises(OutputError, match="did not write"):
        claim(str(tmp_path / "model"), {"graph": ANY})


def test_a_folder_of_the_user_is_not(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    claim(str(tmp_path), {"model/": ANY})  # there is nothing in it
    other = tmp_path / "other"
    (tmp_path / "link").mkdir()
    (tmp_path / "link/model").symlink_to(tmp_path / "model")
    with pytest.raises(OutputError, match="did not write"):
        claim(str(tmp_path / "link"), {"model/": ANY})
    (other / "model").mkdir(parents=True)
    (other / "model/mine").write_bytes(b"1")
    with pytest.raises(OutputError, match=r"did not write.*: model\. Do this"):
        claim(str(other), {"model/": ANY}, hint="Do this")
    assert not is_listed(str(other), "model/")


def test_a_folder_alone_has_nothing_else(tmp_path: Path) -> None:
    folder = str(tmp_path / "new")
    check_alone(folder, {"model/"}, "Do this")
    (tmp_path / "new/model").mkdir(parents=True)
    (tmp_path / "new/.hidden").touch()
    check_alone(folder, {"model/"}, "Do this")
    (tmp_path / "new/thesis.txt").touch()
    with pytest.raises(OutputError, match=r"contains unrelated files: thesis.txt. Do this"):
        check_alone(folder, {"model/"}, "Do this")
    with pytest.raises(OutputError, match="is a file"):
        check_alone(f"{folder}/thesis.txt", {"model/"}, "Do this")


def test_no_link_is_followed_when_a_file_is_opened(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_bytes(b"1")
    (tmp_path / "out.txt").symlink_to(tmp_path / "thesis.txt")
    with pytest.raises(OSError, match=r"out\.txt"):
        storage.open_write(str(tmp_path / "out.txt"))
    assert (tmp_path / "thesis.txt").read_bytes() == b"1"


def test_a_replaced_file_is_complete(tmp_path: Path) -> None:
    (tmp_path / "new").write_bytes(b"2" * (3 << 20))
    (tmp_path / "thesis.txt").write_bytes(b"1")
    (tmp_path / "out").symlink_to(tmp_path / "thesis.txt")
    storage.replace_file(str(tmp_path / "new"), str(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == b"2" * (3 << 20)
    assert (tmp_path / "thesis.txt").read_bytes() == b"1"
    assert sorted(os.listdir(tmp_path)) == ["new", "out", "thesis.txt"]
