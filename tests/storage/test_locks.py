from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from darkroom.errors import OutputError
from darkroom.storage.locks import LOCK_FILE, FolderLock


def test_a_locked_folder_is_closed_to_others_until_it_is_released(tmp_path: Path):
    with FolderLock(str(tmp_path)):
        with (
            pytest.raises(OutputError, match=f"process {os.getpid()} on"),
            FolderLock(str(tmp_path)),
        ):
            pass
        assert (tmp_path / LOCK_FILE).exists()
    assert os.listdir(tmp_path) == []
    with FolderLock(str(tmp_path)):
        pass


def test_a_killed_process_leaves_no_lock(tmp_path: Path):
    program = f"""
import os
from darkroom.storage.locks import FolderLock
with FolderLock({str(tmp_path)!r}):
    os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", program], check=False)
    assert os.listdir(tmp_path) == [LOCK_FILE]
    with FolderLock(str(tmp_path)):
        pass
    assert os.listdir(tmp_path) == []


def test_a_remote_folder_is_not_locked_and_not_touched():
    with FolderLock("gs://bucket/folder"):
        pass
