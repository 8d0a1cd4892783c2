"""Prepares the folders that a conversion writes to, whether new, interrupted or used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from darkroom import storage
from darkroom.conversion.beam.shard import REPORT_SUFFIX, ShardTask, find_report
from darkroom.conversion.output import attempts, ownership
from darkroom.dataset import journal, layout
from darkroom.dataset.layout import Folders
from darkroom.runtime import progress
from darkroom.runtime.text import format_count

_MANIFEST_FOLDER = "manifest"


def begin_attempt(
    folders: Folders, output: str, attempt: attempts.Attempt, *, share_manifest: bool = False
) -> Folders:
    """Takes an output for an attempt, so that no earlier one can write into it any more.

    Args:
        folders: The folders of the attempt.
        output: The output, which on a store may be the folder above.
        attempt: The public facts about it.
        share_manifest: Whether to copy the manifest to where remote workers can read it.

    Returns:
        The folders, with the copy of the manifest if there is one.

    Raises:
        OutputError: The output holds files that darkroom did not write.
    """
    ownership.survey(folders).check()
    attempts.take(folders)
    found = ownership.survey(folders)
    found.check()
    shared = storage.join(folders.work, _MANIFEST_FOLDER)
    names = storage.list_folder(folders.manifest) if share_manifest else ()
    planned = [storage.join(folders.work, attempts.RECORD_FILE)]
    planned += [storage.join(shared, name) for name in names]
    # Of the other files only those in the journal: the commit still proves those that it names.
    inside = (path for path in found.ours if path.startswith(f"{folders.attempts}/"))
    named = journal.find_named(folders, dict.fromkeys(found.ours, 0))
    journal.write_journal(folders, {*inside, *named, *_with_parts(folders, planned)})
    attempts.write_record(folders, output, attempt)
    if not share_manifest:
        return folders
    storage.make_folder(shared)
    for name in names:
        storage.copy_file(storage.join(folders.manifest, name), storage.join(shared, name))
    return replace(folders, manifest=shared, manifest_rejects=shared)


def find_earlier(folders: Folders, output: str, plan: str) -> tuple[Folders, ...]:
    """Returns the folders of earlier attempts at an output on a store that had the same plan.

    On a disk there are none: an attempt takes the folder of the earlier one.
    """
    if not storage.is_remote(output):
        return ()
    beside = (replace(folders, token=token) for token in journal.list_attempts(folders))
    names = filter(layout.DATA_FOLDER.fullmatch, storage.list_folder(output))
    others = (
        Folders.of_dataset(storage.join(output, name), token=name.rpartition("-")[2])
        for name in names
    )
    return tuple(
        each
        for each in (*beside, *others)
        if each.token != folders.token and storage.is_folder(storage.join(each.work, plan))
    )


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
    _note_given_up(folders, found.ours, tasks[0].plan)
    ownership.delete_ours(found, kept=kept)
    splits = {layout.split_folder(task.range.split) for task in tasks}
    inside = [storage.join(folders.examples, name) for name in sorted(splits)]
    for folder in (*inside, folders.index, folders.rejects, tasks[0].work):
        storage.make_folder(folder)


def _note_given_up(folders: Folders, ours: Iterable[str], plan: str) -> None:
    """Says how many finished shards of another conversion are deleted: it may be hours of work.

    Those of the same plan are not meant: where images were rejected they are written again.
    """
    work = f"{folders.attempts}/"
    reports = [path for path in ours if path.startswith(work) and path.endswith(REPORT_SUFFIX)]
    if count := sum("/shard-" in path and f"/{plan}/" not in path for path in reports):
        progress.note(
            f"{folders.examples} has {format_count(count, 'finished shard')} of another source, or "
            "of other options, which never became a dataset. They are deleted."
        )


def _list_planned(folders: Folders, tasks: Sequence[ShardTask]) -> Iterator[str]:
    """Yields the paths of all files that a conversion may write, unfinished ones included."""
    for task in tasks:
        yield from task.files
    finished = [
        storage.join(folders.rejects, layout.REJECTS_FILE),
        storage.join(folders.rejects, layout.REJECTS_LIST_FILE),
        storage.join(folders.examples, layout.LABELS_FILE),
        storage.join(folders.examples, layout.DATASET_FILE),
        # Index and rejects have separate lists where they are not in the dataset.
        storage.join(folders.examples, layout.SUMS_FILE),
        storage.join(folders.index, layout.SUMS_FILE),
        storage.join(folders.rejects, layout.SUMS_FILE),
    ]
    yield from _with_parts(folders, finished)


def _with_parts(folders: Folders, finished: Iterable[str]) -> Iterator[str]:
    for path in finished:
        yield from (path, folders.find_part(path))


def _find_kept(folders: Folders, tasks: Sequence[ShardTask]) -> Iterator[str]:
    """Yields the journal, the record, the manifest, and the files of shards that are finished."""
    yield journal.journal_path(folders)
    yield storage.join(folders.work, attempts.RECORD_FILE)
    yield storage.join(folders.attempts, attempts.CURRENT_FILE)
    # For remote workers the manifest has just been copied to here.
    if folders.manifest.startswith(f"{folders.work}/"):
        for name in storage.list_folder(folders.manifest):
            yield storage.join(folders.manifest, name)
    for owner in (folders, *tasks[0].earlier):
        work = storage.join(owner.work, tasks[0].plan)
        reported = {storage.join(work, name) for name in storage.list_folder(work)}
        for task in tasks:
            each = replace(task, folders=owner)
            report = each.work_file(REPORT_SUFFIX)
            if report in reported and find_report(each):
                yield from (report, *each.results)
