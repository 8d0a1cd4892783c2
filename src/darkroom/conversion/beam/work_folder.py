"""How far a job that runs elsewhere is, as the work folder of its output tells.

Engines count in their own ways, and some only at the end. There all of them leave the same: each
finished shard has its report, and a worker that begins leaves a sign.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from darkroom import storage
from darkroom.conversion.shard import (
    MAX_REPORT_BYTES,
    REFUSAL_FILE,
    REPORT_SUFFIX,
    SIGN_SUFFIX,
)
from darkroom.errors import StorageError
from darkroom.runtime.text import format_count

if TYPE_CHECKING:
    from darkroom.conversion.beam.transforms import WriteDataset


class WorkFolder:
    """The work folder of a job, as it was when it was last read.

    Args:
        write: The job.

    Attributes:
        total: Rows of all shards together.
        refuses: Whether a worker has left a refusal; see `read_refusal`.
    """

    def __init__(self, write: WriteDataset) -> None:
        self._write = write
        self._rows = {
            task.work_file(REPORT_SUFFIX).rpartition("/")[2]: task.range.num_rows
            for task in write.tasks
        }
        self.total = sum(self._rows.values())
        self.refuses = False
        self._done = self._before = self._list() & self._rows.keys()
        self._begun: set[str] = set()

    @property
    def has_gone_on(self) -> bool:
        """Whether a worker has begun a shard, or finished one."""
        return bool(self._begun) or self._done != self._before

    @property
    def num_done(self) -> int:
        """How many shards are finished."""
        return len(self._done)

    @property
    def shards(self) -> str:
        """How many shards are finished, and how many there are."""
        return f"{self.num_done:,} of {format_count(len(self._rows), 'shard')}"

    def read(self) -> bool:
        """Reads the folder again; tells whether a shard was begun or finished since."""
        names = self._list()
        self.refuses = REFUSAL_FILE in names
        # The commit removes all of them, at the end.
        done = self._done | names & self._rows.keys()
        begun = self._begun | {name for name in names if name.endswith(SIGN_SUFFIX)}
        is_new = (len(done), len(begun)) != (len(self._done), len(self._begun))
        self._done, self._begun = done, begun
        return is_new

    def finish(self) -> None:
        """Takes all shards for finished."""
        self._done = set(self._rows)

    def count_rows(self) -> int:
        """Returns the rows of all finished shards."""
        return self._count(self._done)

    def count_rows_before(self) -> int:
        """Returns the rows of the shards that were finished when the job began."""
        return self._count(self._before)

    def describe_kept(self) -> str:
        """Returns how many shards earlier runs have finished; empty if they have none."""
        kept = self._before.union(*map(self._list, self._find_earlier())) & self._rows.keys()
        shards = format_count(len(self._rows), "shard")
        said = f"An earlier run has finished {len(kept):,} of {shards}: they are kept."
        return said if kept else ""

    def read_refusal(self) -> StorageError | None:
        """Returns why a worker does not work for this client; None if it said so to another one."""
        with suppress(OSError, ValueError, KeyError, TypeError, storage.FileTooLargeError):
            path = storage.join(self._write.tasks[0].work, REFUSAL_FILE)
            said = json.loads(storage.read_bytes(path, MAX_REPORT_BYTES))
            if said["run"] == self._write.run:
                return StorageError(str(said["message"]), str(said["hint"]))
        return None

    def _list(self, folder: str = "") -> set[str]:
        # Nothing that goes wrong here may stop the job: stores raise errors of many kinds.
        with suppress(Exception):
            return set(storage.list_folder(folder or self._write.tasks[0].work))
        return set()

    def _find_earlier(self) -> Iterator[str]:
        """Yields the work folders of earlier attempts, on a store."""
        task = self._write.tasks[0]
        return (replace(task, folders=folders).work for folders in task.earlier)

    def _count(self, names: Iterable[str]) -> int:
        return sum(self._rows[name] for name in names)
