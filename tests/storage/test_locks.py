from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from darkroom.errors import OutputError
from darkroom.storage.locks import LOCK_FILE, FolderLock


def test_a_held_folder_is_refused_to_others_and_free_again_after(tmp_path: Path):
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


def test_a_killed_process_blocks_nobody(tmp_path: Path):
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


def test_a_remote_folder_cannot_be_held_and_is_not_touched():
    with FolderLock("gs://bucket/folder"):
        pass
