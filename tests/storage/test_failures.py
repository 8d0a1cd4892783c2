import os
import socket
import traceback
from pathlib import Path

import pytest

from darkroom import storage
from darkroom.errors import DarkroomError, DeniedPathError, MissingPathError, StorageError
from darkroom.storage.failures import find_near


def test_the_nearest_name_in_the_nearest_folder_is_found(tmp_path: Path):
    (tmp_path / "photos" / "train").mkdir(parents=True)
    (tmp_path / "images.csv").touch()
    assert find_near(f"{tmp_path}/imags.csv") == f"{tmp_path}/images.csv"
    assert find_near(f"{tmp_path}/IMAGES.CSV") == f"{tmp_path}/images.csv"
    assert find_near(f"{tmp_path}/photo/train") == f"{tmp_path}/photos/train"
    assert find_near(f"{tmp_path}/photo/none") == f"{tmp_path}/photos"
    assert find_near(f"{tmp_path}/photos/trian") == f"{tmp_path}/photos/train"
    assert find_near(f"{tmp_path}/records") is None
    assert find_near("gs://bucket/images.csv") is None


@pytest.mark.parametrize(
    ("given", "there", "is_near"),
    [
        ("nope.toml", "pyproject.toml", False),
        ("a.parquet", "b.parquet", False),
        ("labels.parquet", "records.parquet", False),
        ("images.cvs", "images.csv", True),
        ("img.csv", "imgs.csv", True),
        ("images", "images.csv", True),
        (".dakroom", ".darkroom", True),
    ],
)
def test_an_ending_alone_does_not_make_two_names_similar(tmp_path: Path, given, there, is_near):
    (tmp_path / there).touch()
    assert find_near(f"{tmp_path}/{given}") == (f"{tmp_path}/{there}" if is_near else None)


def test_a_relative_path_starts_at_the_working_folder(tmp_path: Path, monkeypatch):
    (tmp_path / "records").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_near("recods") == f"{tmp_path}/records"


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (FileNotFoundError(2, "No such file", "/none/a"), MissingPathError, "/none/a does not exi"),
        (
            PermissionError(13, "Permission denied", "/a"),
            DeniedPathError,
            "/a cannot be read or wri",
        ),
        (storage.NotAFileError("/a is not a regular file"), StorageError, "Give a regular file"),
        (OSError(28, "No space left on device"), StorageError, "No space left on device."),
    ],
)
def test_an_error_of_the_system_is_one_of_ours_and_still_its_own_kind(error, kind, said):
    @storage.report_failures
    def fail() -> None:
        raise error

    with pytest.raises(DarkroomError, match=said) as caught:
        fail()
    assert type(caught.value) is kind
    assert not isinstance(error, FileNotFoundError) or isinstance(caught.value, FileNotFoundError)


def test_a_traceback_of_our_error_has_one_exception_and_begins_at_the_call():
    def read() -> None:
        try:
            (Path("/none") / "a").read_text()
        except OSError as error:
            raise StorageError("/none/a does not exist.", "Check the path.") from error

    @storage.report_failures
    def fail() -> None:
        read()

    with pytest.raises(StorageError) as caught:
        fail()
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.count("Error: ") == 1
    assert "in read" not in shown
    assert shown.endswith("StorageError: /none/a does not exist. Check the path.\n")
    assert isinstance(caught.value.__context__, FileNotFoundError)


def test_a_defect_keeps_its_traceback_and_its_cause():
    @storage.report_failures
    def fail() -> None:
        try:
            raise KeyError("a")
        except KeyError as error:
            raise DarkroomError("The plan has no a.") from error

    with pytest.raises(DarkroomError) as caught:
        fail()
    shown = "".join(traceback.format_exception(caught.value))
    assert "KeyError: 'a'" in shown
    assert "in fail" in shown


def test_pipes_sockets_and_devices_are_not_opened(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for path in (f"{tmp_path}/pipe", "/dev/zero"):
        with pytest.raises(storage.NotAFileError, match=f"{path} is not a regular file"):
            storage.open_read(path)
    with pytest.raises(OSError, match="No such device"):
        storage.open_write(f"{tmp_path}/pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{tmp_path}/socket")
        with pytest.raises(OSError, match="No such device"):
            storage.open_read(f"{tmp_path}/socket")
    with pytest.raises(IsADirectoryError):
        storage.open_read(str(tmp_path))


def test_a_folder_where_none_can_be_made_is_named():
    with pytest.raises(StorageError, match=r"/proc/none/a cannot be made.* Choose another place"):
        storage.make_folder("/proc/none/a")
