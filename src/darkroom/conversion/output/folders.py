"""Prepares the folders that a conversion writes to, whether new, interrupted or used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace

from darkroom import storage
from darkroom.conversion.output import ownership
from darkroom.conversion.shard import REPORT_SUFFIX, ShardTask, find_report
from darkroom.dataset import journal, layout
from darkroom.dataset.layout import Folders
from darkroom.runtime import progress
from darkroom.runtime.text import format_count

_MANIFEST_FOLDER = "manifest"


def share_manifest(folders: Folders) -> Folders:
    """Copies the manifest into the output, where remote workers can read it.

    Returns:
        The folders with the copy instead.

    Raises:
        OutputError: The output holds files that darkroom did not write.
    """
    shared = storage.join(folders.work, _MANIFEST_FOLDER)
    copies = {
        storage.join(folders.manifest, name): storage.join(shared, name)
        for name in storage.list_folder(folders.manifest)
    }
    found = ownership.survey(folders)
    found.check()
    # Of the other files only those in the journal: the commit still proves those that it names.
    attempt = (path for path in found.ours if path.startswith(f"{folders.work}/"))
    named = journal.find_named(folders, dict.fromkeys(found.ours, 0))
    journal.write_journal(folders, {*attempt, *named, *copies.values()})
    storage.make_folder(shared)
    for source, copy in copies.items():
        storage.copy_file(source, copy)
    return replace(folders, manifest=shared, manifest_rejects=shared)


def prepare_output(folders: Folders, tasks: Sequence[ShardTask]) -> None:
    """Creates the folders that tasks write to, and removes the files of an earlier conversion.

    If that one had the same plan and was killed, the shards that it finished stay. Before anything
    is deleted, the journal names old and new files, so this can be interrupted at any moment.

    Raises:
        OutputError: The folders hold files that darkroom did not write; nothing was changed.
    """
    found = ownership.survey(folders)
    found.check()
    journal.write_journal(folders, {*found.ours, *_list_planned(folders, tasks)})
    # From here on no reader mistakes the other files for a dataset.
    storage.delete_file(storage.join(folders.examples, layout.DATASET_FILE))
    storage.sync_folder(folders.examples)
    kept = set(_find_kept(folders, tasks))
    _note_given_up(folders, found.ours, kept)
    ownership.delete_ours(found, kept=kept)
    splits = {layout.split_folder(task.range.split) for task in tasks}
    inside = [storage.join(folders.examples, name) for name in sorted(splits)]
    for folder in (*inside, folders.index, folders.rejects, tasks[0].work):
        storage.make_folder(folder)


def _note_given_up(folders: Folders, ours: Iterable[str], kept: Set[str]) -> None:
    """Says how many finished shards of another conversion are deleted: it may be hours of work."""
    work = f"{folders.work}/"
    reports = [path for path in ours if path.startswith(work) and path.endswith(REPORT_SUFFIX)]
    if count := sum("/shard-" in path and path not in kept for path in reports):
        progress.note(
            f"{folders.examples} has {format_count(count, 'finished shard')} of another source, or "
            "of other options, which never became a dataset. They are deleted."
        )


def _list_planned(folders: Folders, tasks: Sequence[ShardTask]) -> Iterator[str]:
    """Yields the paths of all files that a conversion may write, unfinished ones included."""
    for task in tasks:
        yield from task.files
    for name in (layout.REJECTS_FILE, layout.REJECTS_LIST_FILE):
        yield storage.join(folders.rejects, name)
    for folder, name in (
        (folders.examples, layout.LABELS_FILE),
        (folders.examples, layout.DATASET_FILE),
        # Index and rejects have lists of their own where they are not in the dataset.
        (folders.examples, layout.SUMS_FILE),
        (folders.index, layout.SUMS_FILE),
        (folders.rejects, layout.SUMS_FILE),
    ):
        path = storage.join(folder, name)
        yield from (path, storage.find_part(path))


def _find_kept(folders: Folders, tasks: Sequence[ShardTask]) -> Iterator[str]:
    """Yields the journal, the manifest, and the files of shards that a killed run has finished."""
    yield journal.journal_path(folders)
    # For remote workers the manifest has just been copied to here.
    if folders.manifest.startswith(f"{folders.work}/"):
        for name in storage.list_folder(folders.manifest):
            yield storage.join(folders.manifest, name)
    work = tasks[0].work
    reported = {storage.join(work, name) for name in storage.list_folder(work)}
    for task in tasks:
        report = task.work_file(REPORT_SUFFIX)
        if report in reported and find_report(task):
            yield from (report, task.index_file, storage.join(task.examples, task.file))
