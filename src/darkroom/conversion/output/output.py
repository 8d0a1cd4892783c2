"""The output of a conversion: found finished, checked, taken by an attempt, replaced."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from darkroom import storage
from darkroom.conversion.output import exchange, ownership
from darkroom.conversion.output.attempts import (
    RECORD_FILE,
    Attempt,
    Record,
    current_path,
    new_token,
    read_attempt_records,
    read_version,
    take,
)
from darkroom.conversion.output.commit import describe_options
from darkroom.conversion.shards.shard import REPORT_SUFFIX, ShardTask, find_report
from darkroom.dataset import journal, layout
from darkroom.dataset.checksums import list_summed_sidecars
from darkroom.dataset.commit import Dataset, read_dataset, read_output
from darkroom.dataset.index import read_source_fingerprint
from darkroom.dataset.layout import Folders
from darkroom.dataset.manifest import Manifest
from darkroom.dataset.opening import check_listed, check_shard_files
from darkroom.dataset.pointer import data_folder, find_data
from darkroom.dataset.sources import AnySource
from darkroom.errors import DataError, OutputError, UsageError
from darkroom.options.conversion import RecordOptions
from darkroom.options.runners import LOCAL_RUNNER
from darkroom.runtime import by_name, progress
from darkroom.runtime.text import format_count, list_first
from darkroom.storage.locks import LOCK_FILE, FolderLock


class Output:
    """A folder that conversions write a dataset into.

    A conversion looks for a finished dataset first. Then it holds the folder (`hold`), checks it
    (`check`), and gets the place to write to (`open`). There it makes an attempt and begins it.
    The workers know the attempt alone; the last of them commits.

    Args:
        folders: The folder, with those of index and rejects, and the manifest.
        overwrite: Whether another dataset may be replaced, and files of others be beside the new
            one.
        describe: The readers whose sidecars are written with the dataset.

    Attributes:
        folders: As given.
        folder: The folder.
    """

    def __init__(
        self, folders: Folders, *, overwrite: bool = False, describe: Sequence[str] = ()
    ) -> None:
        self.folders, self.folder = folders, folders.examples
        self._describe = tuple(describe)
        self._overwrite = overwrite
        self._lock = FolderLock(self.folder)

    def check_source(self, source: AnySource) -> None:
        """Checks that a dataset can be here, and would not replace its source.

        Raises:
            OutputError: There is a file, a link, or the whole file system.
            UsageError: It would replace it; links are followed.
        """
        if storage.is_link(self.folder):
            raise OutputError(
                f"The output {self.folder} is a link, and nothing is written through a link.",
                f"Name the folder itself, {storage.resolve_links(self.folder)}, or another one.",
            )
        if storage.exists(self.folder) and not storage.is_folder(self.folder):
            raise OutputError(f"{self.folder} is a file.", "Choose a folder for the output.")
        if self.folder == "/":
            raise OutputError(
                "The output is the root of the file system.", "Choose a folder in it."
            )
        if not isinstance(source, str | os.PathLike):
            return
        path = storage.absolute(source)
        real, own = storage.resolve_links(path), storage.resolve_links(self.folder)
        folder, _, name = real.rpartition("/")
        if layout.is_reserved(name) and folder == own:
            raise UsageError(
                f"The source {source} would be replaced: it is in the output {self.folder}.",
                "Choose another output folder.",
            )
        if storage.is_folder(path) and real == own:
            records = storage.join(self.folder, "records")
            raise UsageError(
                f"The output {self.folder} is the source itself.",
                f"Choose another output folder, such as {records}: a later run leaves it out of "
                "the source.",
            )

    def find_finished(
        self, manifest: Manifest, options: RecordOptions, *, with_shards: bool = False
    ) -> tuple[str, Dataset] | None:
        """Returns the dataset that is here, and the folder of its files, if it is the wanted one.

        Args:
            manifest: The rows to convert.
            options: How.
            with_shards: Whether the hashes of the shards are checked, too; this reads them all.

        Raises:
            DataError: It is, but files are missing or damaged.
        """
        if not storage.exists(storage.join(self.folder, layout.DATASET_FILE)):
            return None
        try:
            data, dataset = read_output(self.folder)
        except DataError:
            return None
        is_same = dataset.options == describe_options(manifest, options)
        if not is_same or list(dataset.labels) != manifest.labels:
            return None
        check_shard_files(data, dataset)
        check_listed(data, dataset, with_shards=with_shards)
        made_from = read_source_fingerprint(storage.join(data, layout.INDEX_FOLDER))
        return (data, dataset) if made_from and made_from == manifest.fingerprint else None

    def remove_leftovers(self) -> None:
        """Removes the files of a run that was killed after its commit."""
        work = storage.join(self.folder, layout.WORK_FOLDER)
        lock = storage.join(self.folder, LOCK_FILE)
        if any(map(storage.exists, (work, lock, exchange.folder_beside(self.folder)))):
            # They may stay where nothing can be written, or while another run holds the output.
            with suppress(OSError, OutputError), self._lock:
                folders = Folders.of_dataset(find_data(self.folder))
                ownership.end_attempt(folders, committed=True)
                exchange.remove_beside(self.folder)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keeps other runs on this machine out.

        Raises:
            OutputError: One is in.
        """
        storage.make_folder(self.folder)
        with self._lock:
            yield

    def check(self) -> None:
        """Checks that the dataset may be put here.

        Raises:
            OutputError: The folder holds files that are not ours, or it holds another dataset or
                other files and overwriting was not asked for.
        """
        # Even when overwriting was asked for: files that are not ours are never deleted.
        # On a store, sidecars go into a folder of the attempt.
        coming = () if storage.is_remote(self.folder) else self._list_sidecars(())
        ownership.survey(self.folders, coming=coming).check()
        exchange.check_beside(self.folder)
        self._check_free()

    def _list_sidecars(self, shards: Sequence[str]) -> list[str]:
        found = layout.list_manifest_sidecars(self.folders.manifest)
        if self._describe:
            found += by_name.find("list_sidecars")(self._describe, shards)
        return found

    def _check_free(self) -> None:
        if self._overwrite:
            return
        names = [name for name in storage.list_folder(self.folder) if name != LOCK_FILE]
        if layout.DATASET_FILE in names:
            try:
                read_dataset(self.folder)
                what = "another dataset"
            except DataError:
                what = "a dataset whose dataset.json is damaged"
            raise OutputError(
                f"{self.folder} holds {what}.",
                "The source, its images (or their times) or the options have changed since. "
                "Convert what changed with update (--update), or all again with overwrite "
                "(--overwrite), or choose another output folder.",
            )
        others = [name for name in names if not layout.is_reserved(name)]
        if others and not journal.is_output(self.folder):  # a run that was begun is resumed
            raise OutputError(
                f"{self.folder} holds other files: {list_first(others)}.",
                "Choose another output folder, or write beside them with overwrite (--overwrite).",
            )

    @contextmanager
    def open(self) -> Iterator[Output]:
        """Yields the output to write to: this one, or one beside it, while this one is held.

        A local dataset stays until the new one is complete; when the block ends, the two change
        places.
        """
        names = [name for name in storage.list_folder(self.folder) if name != LOCK_FILE]
        others = [name for name in names if not layout.is_reserved(name)]
        is_dataset = layout.DATASET_FILE in names
        is_dataset = is_dataset and list_summed_sidecars(self.folder).issuperset(others)
        if not is_dataset or not exchange.can_replace(self.folder):
            exchange.remove_beside(self.folder)
            yield self
            return
        folders = Folders.of_dataset(exchange.folder_beside(self.folder), self.folders.manifest)
        beside = Output(folders, overwrite=True, describe=self._describe)
        with beside.hold():
            yield beside
            # A run that was killed between its commit and the exchange left work files.
            ownership.end_attempt(folders, committed=True)
            exchange.replace_dataset(beside._lock, self._lock)

    def make_attempt(self, runner: str, *, in_place: bool = False) -> Attempt:
        """Returns a new attempt, which has written nothing.

        Args:
            runner: Beam's name of the runner. A job elsewhere gets a name by which it can be found.
            in_place: Whether workers read the manifest where it is, and the files go into the
                output itself on a store, too, because nobody else uses that output.
        """
        record = Record(new_token(), runner=runner)
        folders, earlier = replace(self.folders, token=record.token), []
        if storage.is_remote(self.folder):
            earlier += journal.list_attempts(folders)
            for name in filter(layout.DATA_FOLDER.fullmatch, storage.list_folder(self.folder)):
                data, token = storage.join(self.folder, name), name.rpartition("-")[2]
                earlier.append(Folders.of_dataset(data, token=token))
            if not in_place:
                record = replace(record, replaces=read_version(self.folder))
                data = data_folder(self.folder, record.token)
                folders = Folders.of_dataset(data, folders.manifest, record.token)
        if not in_place and runner != LOCAL_RUNNER:
            record = replace(record, job=f"darkroom-{record.token}")
            shared = storage.join(folders.work, "manifest")
            folders = replace(folders, manifest=shared, manifest_rejects=shared)
        return Attempt(folders, self.folder, record, tuple(earlier), self._describe)

    def begin(self, attempt: Attempt, tasks: Sequence[ShardTask]) -> None:
        """Takes the output for an attempt, and removes the files of an earlier conversion.

        No earlier attempt can write here any more. If it had the same plan, the shards that it
        finished stay. Before anything is deleted, the journal names old and new files, so this can
        be interrupted at any moment.

        Raises:
            OutputError: The output holds files that darkroom did not write.
        """
        folders = attempt.folders
        _note_earlier(attempt)
        take(folders)
        sidecars = self._list_sidecars([task.file for task in tasks])
        found = ownership.survey(folders, coming=sidecars)
        found.check()
        # An earlier attempt may have committed until it was taken.
        self._check_free()
        copies: dict[str, str] = {}
        if folders.manifest != self.folders.manifest:
            names = storage.list_folder(self.folders.manifest)
            copies = {
                storage.join(self.folders.manifest, name): storage.join(folders.manifest, name)
                for name in names
            }
        record = storage.join(folders.work, RECORD_FILE)
        planned = [*(path for task in tasks for path in task.files), record, *copies.values()]
        planned += _list_committed(folders)
        planned += [storage.join(folders.examples, name) for name in sidecars]
        parts = map(folders.find_part, planned)
        journal.write_journal(folders, {*found.ours, *planned, *parts})
        attempt.write_record()
        if copies:
            storage.make_folder(folders.manifest)
        for source, copy in copies.items():
            storage.copy_file(source, copy)
        # From here on no reader mistakes the other files for a dataset.
        storage.delete_file(storage.join(folders.examples, layout.DATASET_FILE))
        storage.sync_folder(folders.examples)
        _note_given_up(folders, found.ours, tasks[0].plan)
        kept = {journal.journal_path(folders), record, current_path(self.folder), *copies.values()}
        ownership.delete_ours(found, kept.union(_find_kept(attempt, tasks)))
        splits = {layout.split_folder(task.range.split) for task in tasks}
        inside = [storage.join(folders.examples, name) for name in sorted(splits)]
        for folder in (*inside, folders.index, folders.rejects, tasks[0].work):
            storage.make_folder(folder)


def _note_earlier(attempt: Attempt) -> None:
    """Says which earlier attempts may still write into an output, and so which job to stop."""
    is_remote = storage.is_remote(attempt.output)
    records = read_attempt_records(
        attempt.earlier if is_remote else journal.list_attempts(attempt.folders)
    )
    version = read_version(attempt.output) if is_remote and records else ""
    for record in records:
        # On a store, one that began before the dataset of now can never commit. On a disk a client
        # holds the lock of the output while it runs, so that only its job can be left.
        can_commit = record.replaces == version if is_remote else record.job
        if record.may_run and can_commit:
            progress.note(
                f"Warning: this run takes {attempt.output} from {record}, which fails if it is "
                "still running."
            )


def _list_committed(folders: Folders) -> list[str]:
    """Returns the paths of all files that a commit may write."""
    return [
        storage.join(folders.rejects, layout.REJECTS_FILE),
        storage.join(folders.rejects, layout.REJECTS_LIST_FILE),
        storage.join(folders.examples, layout.LABELS_FILE),
        storage.join(folders.examples, layout.DATASET_FILE),
        # Index and rejects have separate lists where they are not in the dataset.
        storage.join(folders.examples, layout.SUMS_FILE),
        storage.join(folders.index, layout.SUMS_FILE),
        storage.join(folders.rejects, layout.SUMS_FILE),
    ]


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


def _find_kept(attempt: Attempt, tasks: Sequence[ShardTask]) -> Iterator[str]:
    """Yields the files of shards that are finished."""
    for folders in (attempt.folders, *tasks[0].earlier):
        work = storage.join(folders.work, tasks[0].plan)
        reported = {storage.join(work, name) for name in storage.list_folder(work)}
        for task in tasks:
            each = task.find_in(folders)
            report = each.work_file(REPORT_SUFFIX)
            if report in reported and find_report(each):
                yield from (report, *each.results)
