"""Finds, and deletes, what old runs on Kubeflow left in a store and nothing needs any more.

Kubeflow deletes no artifact. The first lines of each task's log, which the entrypoint writes, say
when the task started and which artifacts it read. So the logs tell what a dataset or a model was
made of, also when the tasks before it came from the cache of an earlier run; and a folder without
such a line was not written by darkroom.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from darkroom import storage
from darkroom.errors import StorageError, UsageError
from darkroom.options.pipeline import TASK_KEY
from darkroom.storage.uris import ENDPOINT_VARIABLES, find_remote

_LOG = "executor-logs"
_LOG_START_BYTES = 1 << 18  # TensorFlow and TFX print before us
# Artifacts of Pusher, of Trainer, and of train_classifier, whatever a pipeline calls the task.
_MODELS = ("pushed_model", "model", "trained_model")
_DEPTH = 4  # RUN/TASK/ID/ARTIFACT
_MAX_DAYS = 365_000  # there is no date before the year 1
_NUM_LISTED = 5
_SCHEMES = ("minio://", "s3://", "gs://")


@dataclass(frozen=True)
class TaskFolder:
    """What one task of one run left in the store.

    Attributes:
        uri: Its folder, as tasks name it.
        run: Id of the run.
        task: Name of the task.
        size_bytes: All files together.
        started: When its first attempt started; None when its log does not say so.
        inputs: URIs of the artifacts that it read.
        has_model: Whether there are files of a model in it.
    """

    uri: str
    run: str
    task: str
    size_bytes: int
    started: datetime | None
    inputs: tuple[str, ...] = ()
    has_model: bool = False


@dataclass(frozen=True)
class OldArtifacts:
    """What may be deleted, and what not.

    Attributes:
        removable: Folders of tasks that nothing needs.
        kept: All others that darkroom's tasks wrote.
        unknown: Folders whose log does not say that a task of darkroom wrote them.
        is_removed: Whether the removable ones were deleted.
    """

    removable: tuple[TaskFolder, ...]
    kept: tuple[TaskFolder, ...]
    unknown: tuple[TaskFolder, ...]
    is_removed: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Returns values that JSON knows."""
        return {
            "removable": [each.uri for each in self.removable],
            "kept": [each.uri for each in self.kept],
            "unknown": [each.uri for each in self.unknown],
            "removable_bytes": sum(each.size_bytes for each in self.removable),
            "removed": self.is_removed,
        }


def find_old_artifacts(
    root: str, name: str, before: datetime, keep_runs: Collection[str] = ()
) -> OldArtifacts:
    """Finds what no run since a time needs, nor the newest model of a task, nor a run to keep.

    Args:
        root: Pipeline root: minio://, s3:// or gs://.
        name: Name of the pipeline.
        before: Runs with a task that started since then are kept, with all that they read.
        keep_runs: Ids of runs to keep however old they are.

    Raises:
        UsageError: The root is not in a store, or a run to keep does not exist.
        StorageError: There is nothing of such a pipeline, or the address of its store is not known.
        OSError: The store does not answer.
    """
    _check_root(root)
    folder = f"{root.rstrip('/')}/{name}"
    folders = [*_list_folders(folder)]
    if not folders:
        raise StorageError(
            f"There is no artifact of a pipeline {name} in {root}.",
            "Give the pipeline root and the pipeline's name; Vertex keeps no logs there.",
        )
    _check_runs(folders, keep_runs, f"{name} in {root}")
    known = [each for each in folders if each.started is not None]
    needed = _find_needed(known, _choose_runs(known, before, keep_runs))
    return OldArtifacts(
        tuple(each for each in known if find_remote(each.uri) not in needed),
        tuple(each for each in known if find_remote(each.uri) in needed),
        tuple(each for each in folders if each.started is None),
    )


def remove_old_artifacts(found: OldArtifacts) -> OldArtifacts:
    """Deletes what may be deleted.

    Raises:
        OSError: The store does not answer, or does not allow it.
    """
    for each in found.removable:
        storage.delete(find_remote(each.uri))
    return OldArtifacts(found.removable, found.kept, found.unknown, is_removed=True)


def format_old_artifacts(found: OldArtifacts) -> str:
    """Returns the lines that the command prints."""
    lines = [f"{each.uri}  {each.started:%Y-%m-%d}" for each in found.removable]
    size = sum(each.size_bytes for each in found.removable) / 1e9
    done = "deleted" if found.is_removed else "can be deleted with --remove"
    lines.append(f"{len(found.removable)} folders of tasks, {size:.1f} GB, {done}.")
    lines.append(f"{len(found.kept)} are needed by a run, a dataset or a model that is kept.")
    if found.unknown:
        lines.append(
            f"{len(found.unknown)} are left alone: their logs do not say that a task of this "
            "version of darkroom wrote them."
        )
    return "\n".join(lines)


def _list_folders(folder: str) -> Iterator[TaskFolder]:
    """Yields the folders FOLDER/RUN/TASK/ID, with what their logs say."""
    files: dict[str, dict[str, int]] = {}
    for path, size_bytes in storage.list_everything(find_remote(folder)).items():
        parts = path.split("/")
        if len(parts) >= _DEPTH:
            task = "/".join(parts[: _DEPTH - 1])
            files.setdefault(task, {})["/".join(parts[_DEPTH - 1 :])] = size_bytes
    for path, inside in sorted(files.items()):
        run, task, _ = path.split("/")
        uri = f"{folder}/{path}"
        logs = sorted(each for each in inside if each.startswith(_LOG) and "/" not in each)
        started, inputs = next(
            filter(None, (_read_start(f"{uri}/{log}") for log in logs)), (None, ())
        )
        yield TaskFolder(
            uri,
            run,
            task,
            sum(inside.values()),
            started,
            inputs,
            any(each.partition("/")[0] in _MODELS and "/" in each for each in inside),
        )


def _read_start(log: str) -> tuple[datetime, tuple[str, ...]] | None:
    """Returns when a task started and what it read, as the entrypoint wrote it into a log.

    None when it did not: any program can write into a log.
    """
    with storage.open_read(find_remote(log)) as file:
        start = file.read(_LOG_START_BYTES).decode(errors="replace")
    for line in start.splitlines():
        if TASK_KEY in line:
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                said = json.loads(line)[TASK_KEY]
                started, inputs = datetime.fromisoformat(said["started"]), said["inputs"]
                is_known = isinstance(inputs, list) and all(isinstance(e, str) for e in inputs)
                if is_known and started.tzinfo is not None:
                    return started, tuple(inputs)
    return None


def _check_root(root: str) -> None:
    """Checks that the root can be asked, which takes a store of S3 that is not there 10 seconds.

    Raises:
        UsageError: It is not in a store. A mounted bucket will not do: the logs of the tasks name
            what they read by its place in the store.
        StorageError: The address of Kubeflow's own store is not known.
    """
    if not root.startswith(_SCHEMES):
        raise UsageError(
            f"ROOT is {root!r}, expected a folder in minio://, s3:// or gs://.",
            "Give the pipeline root of the runs, as minio://mlpipeline/v2/artifacts.",
        )
    if root.startswith(_SCHEMES[0]) and not any(map(os.environ.get, ENDPOINT_VARIABLES)):
        raise StorageError(
            f"{root} is in Kubeflow's own store, whose address is not known here.",
            f"Set {ENDPOINT_VARIABLES[1]} to the address of that store as seen from this machine, "
            "as http://localhost:9000.",
        )


def _check_runs(folders: Sequence[TaskFolder], keep_runs: Collection[str], where: str) -> None:
    """Checks that each run to keep exists: an id with a typing error would protect nothing.

    Raises:
        UsageError: It does not.
    """
    started = {each.run: "" for each in folders}
    for each in folders:
        started[each.run] = max(started[each.run], str(each.started or ""))
    if unknown := [each for each in keep_runs if each not in started]:
        runs = sorted(started, key=lambda run: started[run], reverse=True)
        more = f" and {len(runs) - _NUM_LISTED} more" if runs[_NUM_LISTED:] else ""
        raise UsageError(
            f"--keep-run is {unknown[0]!r}, which is not a run of the pipeline {where}.",
            "Give the whole id, as at the end of the URL of the run's page: "
            f"{', '.join(runs[:_NUM_LISTED])}{more}.",
        )


def _choose_runs(
    known: Iterable[TaskFolder], before: datetime, keep_runs: Collection[str]
) -> set[str]:
    """Returns the runs to keep: the young ones, those named, those of each task's newest model."""
    tasks = sorted(known, key=lambda each: each.started or before)
    chosen = {each.run for each in tasks if each.started and each.started >= before}
    newest = {each.task: each.run for each in tasks if each.has_model}
    return {*chosen, *keep_runs, *newest.values()}


def _find_needed(known: Collection[TaskFolder], runs: Collection[str]) -> set[str]:
    """Returns the folders of runs and of all that was read to make them.

    They are URIs of `find_remote`: a user may write s3:// for what the tasks call minio://.
    """
    places = {find_remote(each.uri): each for each in known}
    waiting = [uri for uri, each in places.items() if each.run in runs]
    needed: set[str] = set()
    while waiting:
        uri = waiting.pop()
        if uri not in needed:
            needed.add(uri)
            folders = {each for read in places[uri].inputs for each in _list_parents(read)}
            waiting += folders & places.keys()
    return needed


def _list_parents(uri: str) -> Iterator[str]:
    """Yields the folders that a URI is in: a task may read a file deep in an artifact."""
    path = find_remote(uri)
    while (parent := posixpath.dirname(path)) != path:
        yield parent
        path = parent


def count_back(days: int, now: datetime) -> datetime:
    """Returns the time so many days before another one.

    Raises:
        UsageError: It is not at least one day, or before all dates.
    """
    if not 1 <= days <= _MAX_DAYS:
        raise UsageError(f"--keep-days is {days}, expected a whole number from 1 to {_MAX_DAYS}.")
    return now - timedelta(days=days)
