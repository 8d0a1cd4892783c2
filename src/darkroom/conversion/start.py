"""Starts an attempt at an output: takes it, plans the shards, and returns their writer."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from darkroom import storage
from darkroom.conversion.beam.runners import LOCAL_RUNNER, find_engine
from darkroom.conversion.commit import Commit
from darkroom.conversion.leftovers import note_running_jobs
from darkroom.conversion.output.attempts import Attempt, new_token
from darkroom.conversion.output.folders import begin_attempt, find_earlier, prepare_output
from darkroom.conversion.output.publication import Publication
from darkroom.conversion.plan import plan_tasks
from darkroom.dataset.layout import Folders
from darkroom.dataset.pointer import data_folder
from darkroom.images.access import PROBED_IMAGES
from darkroom.manifest.table import read_manifest_rows
from darkroom.options.conversion import RecordOptions

if TYPE_CHECKING:
    from darkroom.conversion.beam.shard import ShardTask
    from darkroom.conversion.beam.transforms import WriteDataset


def name_attempt(runner: str, beam_options: Mapping[str, Any]) -> Attempt:
    """Returns a new attempt; on an engine, its job gets a name by which it can be found."""
    token = new_token()
    if runner == LOCAL_RUNNER:
        return Attempt(token, runner=runner)
    engine = find_engine(runner)
    address = engine.find_address(beam_options) if engine else ""
    return Attempt(token, runner=runner, job=f"darkroom-{token}", engine=address)


def start_attempt(
    folders: Folders,
    attempt: Attempt,
    options: RecordOptions,
    max_rejects: float | None = None,
    *,
    in_place: bool = False,
    check_free: Callable[[], None] = lambda: None,
) -> WriteDataset:
    """Makes an output ready for an attempt.

    Args:
        folders: The manifest, and the folders of the output.
        attempt: The public facts about the attempt.
        options: How records are made.
        max_rejects: Share of rejected rows over which nothing is committed; None for any.
        in_place: Whether the files go into the output itself on a store, too, because nobody else
            uses that output.
        check_free: Checks that the output may be written, once no other attempt can write there.

    Returns:
        The transform that writes the dataset.

    Raises:
        OutputError: The output holds files that darkroom did not write.
        DataError: The manifest has no rows.
    """
    from darkroom.conversion.beam.transforms import WriteDataset

    output, publication = folders.examples, None
    folders = replace(folders, token=attempt.token)
    if storage.is_remote(output) and not in_place:
        publication = Publication.begin(output)
        attempt = replace(attempt, replaces=publication.version)
        data = data_folder(output, attempt.token)
        folders = Folders.of_dataset(data, folders.manifest, attempt.token)
    is_elsewhere = attempt.runner != LOCAL_RUNNER and not in_place
    note_running_jobs(output)
    folders = begin_attempt(folders, output, attempt, share_manifest=is_elsewhere)
    check_free()
    tasks = plan_tasks(folders, options)
    earlier = find_earlier(folders, output, tasks[0].plan)
    tasks = [replace(task, output=output, earlier=earlier) for task in tasks]
    prepare_output(folders, tasks)
    seen = [] if attempt.runner == LOCAL_RUNNER else _list_seen(tasks[0])
    return WriteDataset(tasks, Commit(folders, options, max_rejects, publication), seen)


def _list_seen(task: ShardTask) -> list[str]:
    """Returns some images that are on this machine's disk."""
    if not task.has_images:
        return []
    rows = read_manifest_rows(task.folders.manifest, 0, PROBED_IMAGES)
    local = [row.uri for row in rows if row.uri and not storage.is_remote(row.uri)]
    return [path for path in map(storage.local_path, local) if os.path.exists(path)]
