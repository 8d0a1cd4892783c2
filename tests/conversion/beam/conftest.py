"""What tests of jobs share: a job that nothing runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from darkroom.conversion.output.attempts import Attempt, Record
from darkroom.conversion.shards.shard import ShardRange, ShardTask
from darkroom.conversion.shards.writing import WriteJob
from darkroom.dataset.layout import Folders
from darkroom.options.image import ImageOptions

ROWS = (10, 20, 30)


@pytest.fixture
def write(tmp_path: Path) -> WriteJob:
    """A job of three shards, whose work folder is empty."""
    work = tmp_path / ".attempt/0123abcd/plan"
    work.mkdir(parents=True)
    folders = Folders.of_dataset(str(tmp_path), token="0123abcd")
    attempt = Attempt(folders, str(tmp_path), Record("0123abcd"))
    tasks = [
        ShardTask(
            range=ShardRange("train", number, 3, number, 3, sum(ROWS[:number]), num_rows),
            folders=folders,
            check_current=attempt.check_current,
            plan="plan",
            inputs={},
            has_images=False,
            kind="label",
            image=ImageOptions(),
            compressed=False,
            total=sum(ROWS),
            source="",
        )
        for number, num_rows in enumerate(ROWS)
    ]
    return WriteJob(tasks, lambda reports: None)
