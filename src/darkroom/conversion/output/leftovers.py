"""Attempts and locks of unfinished or running conversions in an output."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from darkroom import storage
from darkroom.conversion.output import exchange, ownership
from darkroom.conversion.output.attempts import (
    RECORD_FILE,
    Record,
    new_token,
    read_record,
    read_version,
    take,
)
from darkroom.conversion.shards.shard import REPORT_SUFFIX
from darkroom.dataset import journal
from darkroom.dataset.commit import is_commit
from darkroom.dataset.layout import DATA_FOLDER, DATASET_FILE, Folders
from darkroom.dataset.pointer import find_data
from darkroom.errors import UsageError
from darkroom.runtime import progress
from darkroom.runtime.result import Outcome, Result
from darkroom.runtime.text import format_count
from darkroom.storage.locks import FolderLock, describe_lock


class State(str, Enum):
    """The state of an attempt: whether it can still write or commit."""

    RUNNING = "running"
    ENDED = "ended"
    SUPERSEDED = "superseded"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Leftover:
    """An attempt that has files in an output.

    Attributes:
        token: Its name.
        folder: The folder of its files: the output, or on a store mostly one in it.
        state: Whether it runs.
        why: How that is known.
        shards: Shards that it has finished.
        job_name: Name of its job, where a runner of Beam does the work elsewhere; else empty.
        resumes: Whether the same command resumes after its finished shards.
    """

    token: str
    folder: str
    state: State
    why: str
    shards: int = 0
    job_name: str = ""
    resumes: bool = False

    @property
    def can_be_removed(self) -> bool:
        """Whether it has ended, or can never commit any more."""
        return self.state in (State.ENDED, State.SUPERSEDED)


@dataclass(frozen=True)
class Leftovers(Result):
    """The leftovers of runs in an output.

    Attributes:
        output_dir: The output.
        attempts: Attempts that have files there.
        locks: Locks, each as a sentence.
        removed: Whether the files of those that have ended were deleted.
    """

    output_dir: str
    attempts: tuple[Leftover, ...]
    locks: tuple[str, ...]
    removed: bool

    def describe(self) -> Outcome:
        """Returns the attempts, and what to do about them."""
        lines = [
            f"{each.token:8}  {each.state.value:10}  "
            f"{format_count(each.shards, 'finished shard')}; {each.why}"
            for each in self.attempts
        ]
        kept = sum(each.shards for each in self.attempts if each.resumes)
        if kept and not self.removed:
            verb = "is" if kept == 1 else "are"
            shards = format_count(kept, "finished shard")
            lines.append(f"To resume, run the same command again: {shards} {verb} kept.")
        lines += self.locks
        if not lines:
            return Outcome("Attempts", [f"No run has left anything in {self.output_dir}."])
        ended = sum(each.can_be_removed for each in self.attempts)
        if self.removed:
            why = "" if ended else ", because none is known to have ended"
            lines.append(f"Removed: {format_count(ended, 'attempt')}{why}.")
        elif ended:
            start = "Or delete" if kept else "Delete"
            lines.append(f"{start} ended attempts: darkroom attempts {self.output_dir} --remove")
        return Outcome("Attempts", lines)


@progress.shown
def find_leftovers(directory: str | os.PathLike[str], *, remove: bool = False) -> Leftovers:
    """Finds the attempts at an output that left files, or still write there.

    Args:
        directory: The output of a conversion.
        remove: Whether to delete the files of attempts that have ended, or can never commit.

    Returns:
        The attempts before anything was deleted.

    Raises:
        UsageError: There is no such folder.
        OutputError: A run uses the output, so nothing is deleted.
    """
    output = storage.absolute(directory)
    if not storage.is_folder(output):
        raise UsageError(f"There is no folder {output}.", "Give the output of a conversion.")
    places = [output]
    if not storage.is_remote(output):
        beside = exchange.folder_beside(output)
        places += [beside] if storage.is_folder(beside) else []
    found = tuple(each for place in places for each in _find(place))
    locks = tuple(text for place in places if (text := describe_lock(place)))
    if remove:
        for place in places:
            # On a disk this waits for nobody: a run that is in its way is an error.
            with FolderLock(place):
                for each in found:
                    if each.can_be_removed and f"{each.folder}/".startswith(f"{place}/"):
                        _remove(each.folder, place)
    return Leftovers(output, found, locks, remove)


def note_running_jobs(output: str) -> None:
    """Says which runs still write into an output, as far as that can be known."""
    own = Record("").client
    for each in _find(output):
        # On a disk the lock of the output proves more than a running process.
        is_client = storage.is_remote(output) and own not in each.why
        if each.state is State.RUNNING and is_client:
            what = "job" if each.job_name else "run"
            progress.note(
                f"Warning: {each.why}. This run takes {output} from that {what}, which will fail."
            )


def _find(output: str) -> Iterator[Leftover]:
    data = find_data(output)
    yield from _find_in(output, output, is_dataset=data == output)
    for name in storage.list_folder(output):
        folder = storage.join(output, name)
        if DATA_FOLDER.fullmatch(name):
            yield from _find_in(folder, output, is_dataset=folder == data)


def _find_in(folder: str, output: str, *, is_dataset: bool) -> Iterator[Leftover]:
    owner = Folders.of_dataset(folder)
    is_committed = is_dataset and is_commit(storage.join(output, DATASET_FILE))
    tokens = journal.list_attempts(owner)
    for token in tokens:
        folders = replace(owner, token=token)
        record = read_record(storage.join(folders.work, RECORD_FILE))
        state, why = _judge(output, record)
        if is_committed:
            state, why = State.ENDED, "its dataset is that of the output"
        names = storage.list_everything(folders.work)
        reports = [name for name in names if "/shard-" in name and name.endswith(REPORT_SUFFIX)]
        yield Leftover(
            token,
            folder,
            state,
            why,
            len(reports),
            record.job if record else "",
            resumes=bool(reports) and state is State.ENDED and not is_committed,
        )
    if folder != output and not tokens and not is_dataset:
        state, why = State.SUPERSEDED, "another dataset has replaced it"
        if not storage.exists(storage.join(output, DATASET_FILE)):
            state, why = State.UNKNOWN, f"{output} has lost its {DATASET_FILE}, which named it"
        yield Leftover(folder.rpartition("-")[2], folder, state, why)


def _judge(output: str, record: Record | None) -> tuple[State, str]:
    """Returns the state of an attempt, and how that is known."""
    if record is None:
        return State.UNKNOWN, "it has no record of its client"
    if storage.is_remote(output) and record.replaces != read_version(output):
        return State.SUPERSEDED, "another run has written the dataset of the output since"
    if record.job:
        what = f"job {record.job} on {record.runner}"
        # This process itself may live on after its run, as one of a notebook does.
        if record.is_here and record.process != os.getpid() and _is_alive(record.process):
            return State.RUNNING, f"{what} has a client that is running: {record.client}"
        return State.UNKNOWN, f"{what} may outlive its client"
    if not record.is_here:
        return State.UNKNOWN, f"{record.client} cannot be seen from here"
    if _is_alive(record.process):
        return State.RUNNING, f"{record.client} is there"
    return State.ENDED, f"{record.client} has ended"


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _remove(folder: str, output: str) -> None:
    """Deletes the files of an attempt that are proven to be darkroom's."""
    folders = Folders.of_dataset(folder)
    is_dataset = folder == find_data(output) and is_commit(storage.join(output, DATASET_FILE))
    if is_dataset:
        ownership.end_attempt(folders, committed=True)
        return
    take(replace(folders, token=new_token()))
    found = ownership.survey(folders, whole=folder != output)
    inside = f"{folder}/data-" if folder == output else ""
    ours = [path for path in found.ours if not inside or not path.startswith(inside)]
    storage.delete_files(ours)
    ownership.remove_empty_folders(folder)
    if folder != output:
        storage.remove_empty_folders(folder)
