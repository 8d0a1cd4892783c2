"""A conversion, from reading the source to the commit; data that is in the output stays safe."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from darkroom import storage
from darkroom.conversion.beam.run import run_job
from darkroom.conversion.beam.runners import LOCAL_RUNNER, build_options, find_engine
from darkroom.conversion.finished import can_read_more, describe_finished
from darkroom.conversion.output import exchange, overlap, ownership
from darkroom.conversion.output.attempts import Attempt
from darkroom.conversion.result import ConversionResult, TooManyRejectsError, describe_dataset
from darkroom.conversion.start import name_attempt, start_attempt
from darkroom.dataset import layout, rejects
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.journal import is_output
from darkroom.dataset.labels import describe_lookalikes
from darkroom.dataset.layout import Folders, is_reserved
from darkroom.dataset.pointer import find_data
from darkroom.dataset.rejects import count_rejects, format_hint
from darkroom.errors import DataError, OutputError, UsageError
from darkroom.images.access import PROBED_IMAGES, check_access, check_not_all_denied
from darkroom.manifest import writer
from darkroom.manifest.sources import AnySource
from darkroom.manifest.table import Manifest, read_manifest_rows
from darkroom.options.conversion import RecordOptions
from darkroom.options.image import DEFAULT_JPEG_QUALITY
from darkroom.options.manifest import ManifestOptions
from darkroom.options.validation import DEFAULT_MAX_REJECTS
from darkroom.runtime import progress
from darkroom.runtime.text import format_count, list_first
from darkroom.storage.locks import LOCK_FILE, FolderLock

if TYPE_CHECKING:
    from darkroom.conversion.beam.dataflow import DataflowJob
    from darkroom.conversion.beam.transforms import WriteDataset


@dataclass(frozen=True)
class ConversionJob:
    """A conversion with its arguments checked."""

    source: AnySource
    output_dir: str
    manifest: ManifestOptions
    conversion: RecordOptions
    max_rejects: float | None
    overwrite: bool
    runner: str = LOCAL_RUNNER
    beam_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks the rest, which the options cannot check for themselves.

        Raises:
            UsageError: A value is out of its range, or does not fit another one.
        """
        if not isinstance(self._limit, int | float) or not 0 <= self._limit <= 1:
            raise UsageError(f"max_rejects is a share from 0 to 1, got {self.max_rejects!r}.")
        image = self.conversion.image
        is_reduced = image.resize_short_side is not None and not image.is_raw
        if image.jpeg_quality != DEFAULT_JPEG_QUALITY and not is_reduced:
            raise UsageError(
                f"jpeg_quality is {image.jpeg_quality}, but no image is stored as a reduced JPEG.",
                "Give resize_short_side without encoding raw, or leave jpeg_quality out.",
            )
        exclude = self.manifest.exclude
        if exclude is not None and exclude.startswith(f"{self.output_dir}/"):
            raise UsageError(
                f"The list {exclude} is in the output folder, which gets the dataset alone.",
                "Move it elsewhere.",
            )

    @property
    def _limit(self) -> float:
        return DEFAULT_MAX_REJECTS if self.max_rejects is None else self.max_rejects

    def run(self) -> ConversionResult:
        """Converts and waits for the end."""
        engine = find_engine(self.runner)
        if self.beam_options or engine:
            # Reports a wrong one before any work.
            options = build_options(self.runner, self.beam_options)
            if engine:
                engine.check(options)
        if storage.exists(self.output_dir) and not storage.is_folder(self.output_dir):
            raise OutputError(f"{self.output_dir} is a file.", "Choose a folder for the output.")
        if self.output_dir == "/":
            raise OutputError(
                "The output is the root of the file system.", "Choose a folder in it."
            )
        self._check_source()
        with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
            folders = Folders.of_dataset(self.output_dir, os.path.join(scratch, "manifest"))
            manifest = self._write_manifest(folders)
            # Before the lock, too: a finished dataset may be on a disk that is read-only.
            if done := self._find_finished(manifest):
                if can_read_more(done):
                    progress.note("Images that were rejected can be read now: converting again.")
                    return replace(self, overwrite=True).run()
                self._remove_leftovers()
                return self._judge(done)
            first = read_manifest_rows(folders.manifest, 0, PROBED_IMAGES)
            check_access([row.uri for row in first if row.uri])
            storage.make_folder(self.output_dir)
            with FolderLock(self.output_dir) as held:
                if done := self._find_finished(manifest):
                    return self._judge(done)
                self._check_output(folders)
                names = [name for name in storage.list_folder(self.output_dir) if name != LOCK_FILE]
                is_dataset = layout.DATASET_FILE in names and all(map(is_reserved, names))
                if is_dataset and exchange.can_replace(self.output_dir):
                    return self._replace(held, manifest, folders)
                exchange.remove_beside(self.output_dir)
                return self._convert(manifest, folders)

    def _convert(self, manifest: Manifest, folders: Folders) -> ConversionResult:
        attempt = name_attempt(self.runner, self.beam_options)
        write = self._start(folders, attempt)
        with progress.step("Converting"):
            try:
                run_job(write, self.runner, self.beam_options, attempt.job)
            except OutputError:
                # An engine that restarts a job may run its last step again.
                if not self._is_committed(manifest, write):
                    raise
        return self._collect(manifest, write.tasks[0].folders.examples)

    def _is_committed(self, manifest: Manifest, write: WriteDataset) -> bool:
        """Tells whether the dataset of an attempt is that of the output."""
        task = write.tasks[0]
        if find_data(task.output) != task.folders.examples:
            return False
        with suppress(DataError):
            return describe_finished(manifest, self.conversion, task.folders.examples) is not None
        return False

    def _start(self, folders: Folders, attempt: Attempt) -> WriteDataset:
        # An earlier attempt may have committed until it was taken.
        is_output = folders.examples == self.output_dir
        check_free = self._check_free if is_output else lambda: None
        return start_attempt(folders, attempt, self.conversion, self._limit, check_free=check_free)

    def _replace(self, held: FolderLock, manifest: Manifest, folders: Folders) -> ConversionResult:
        """Converts beside the output, and puts the result in its place once it is complete."""
        beside = exchange.folder_beside(self.output_dir)
        storage.make_folder(beside)
        folders = Folders.of_dataset(beside, folders.manifest)
        with FolderLock(beside) as new:
            if result := self._find_beside(manifest, beside):
                # A run that was killed between its commit and the exchange left it complete.
                ownership.end_attempt(folders, committed=True)
            else:
                result = self._convert(manifest, folders)
            exchange.replace_dataset(new, held)
        return replace(
            result, output_dir=self.output_dir, data_dir=self.output_dir, already_complete=False
        )

    def _remove_leftovers(self) -> None:
        """Removes the files of a run that was killed after its commit."""
        work = storage.join(self.output_dir, layout.WORK_FOLDER)
        beside = exchange.folder_beside(self.output_dir)
        lock = storage.join(self.output_dir, LOCK_FILE)
        if any(storage.exists(path) for path in (work, beside, lock)):
            # They may stay where nothing can be written, or while another run holds the output.
            with suppress(OSError, OutputError), FolderLock(self.output_dir):
                folders = Folders.of_dataset(find_data(self.output_dir))
                ownership.end_attempt(folders, committed=True)
                exchange.remove_beside(self.output_dir)

    def submit(self, dataflow: DataflowJob, wait: bool) -> ConversionResult:
        """Starts a Dataflow job, and waits for its end if asked to."""
        self._check_source()
        with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
            local = Folders.of_dataset(self.output_dir, os.path.join(scratch, "manifest"))
            manifest = self._write_manifest(local)
            dataflow.check_images(storage.join(local.manifest, "manifest.parquet"))
            if done := self._find_finished(manifest):
                return self._judge(done)
            self._check_output(local)
            write = self._start(local, name_attempt(self.runner, self.beam_options))
            job_id = dataflow.submit(write, scratch, wait)
        if not wait:
            return ConversionResult(self.output_dir, manifest.rows, job_id=job_id)
        return self._collect(manifest, write.tasks[0].folders.examples)

    def _write_manifest(self, folders: Folders) -> Manifest:
        with progress.step("Reading the source"):
            manifest = writer.write_manifest(
                self.source, folders.manifest, folders.manifest_rejects, self.manifest
            )
        if self.manifest.exclude is not None:
            rows = format_count(manifest.excluded, "row")
            them = "it" if manifest.excluded == 1 else "them"
            progress.note(f"{rows} left out, because {self.manifest.exclude} lists {them}.")
        for line in describe_lookalikes(manifest.labels):
            progress.note(f"Warning: {line}")
        return manifest

    def _find_finished(self, manifest: Manifest) -> ConversionResult | None:
        """Returns the result of an earlier run that did the same, unless it is to be replaced.

        Raises:
            DataError: It did, but its files are damaged.
        """
        if self.overwrite:
            return None
        done = describe_finished(manifest, self.conversion, find_data(self.output_dir))
        return done and self._name_output(done)

    def _find_beside(self, manifest: Manifest, beside: str) -> ConversionResult | None:
        """Returns the result of a run that was killed after its commit, if nothing was lost."""
        with suppress(DataError):
            done = describe_finished(manifest, self.conversion, beside, with_shards=True)
            return done and self._judge(done)
        return None

    def _check_source(self) -> None:
        """Checks that the output is not the source.

        Raises:
            OutputError: Files that darkroom did not write are in the way, too.
            UsageError: It is the source.
        """
        try:
            overlap.check_source(self.source, self.output_dir)
        except UsageError:
            ownership.survey(Folders.of_dataset(self.output_dir)).check()
            raise

    def _check_output(self, folders: Folders) -> None:
        """Checks that the dataset may be put into the output.

        Raises:
            OutputError: The folder holds files that are not ours, or it holds another dataset or
                other files and overwriting was not asked for.
            UsageError: An image of the source is where the dataset goes.
        """
        # Even when overwriting was asked for: files that are not ours are never deleted.
        ownership.survey(folders).check()
        exchange.check_beside(self.output_dir)
        overlap.check_images_outside(folders)
        self._check_free()

    def _check_free(self) -> None:
        """Checks that the output holds nothing, or that it may be overwritten."""
        if self.overwrite:
            return
        names = [name for name in storage.list_folder(self.output_dir) if name != LOCK_FILE]
        if layout.DATASET_FILE in names:
            try:
                read_dataset(self.output_dir)
                what = "another dataset"
            except DataError:
                what = "a dataset whose dataset.json is damaged"
            raise OutputError(
                f"{self.output_dir} holds {what}.",
                "The source, its images (or their times) or the options have changed since. Choose "
                "another output folder, or replace it with overwrite (--overwrite).",
            )
        others = [name for name in names if not is_reserved(name)]
        if others and not is_output(self.output_dir):  # a run that was begun is resumed
            raise OutputError(
                f"{self.output_dir} holds other files: {list_first(others)}.",
                "Choose another output folder, or write beside them with overwrite (--overwrite).",
            )

    def _name_output(self, result: ConversionResult) -> ConversionResult:
        """Names the output as the user did, also where its files are in a folder in it."""
        return replace(result, output_dir=self.output_dir, data_dir=result.output_dir)

    def _collect(self, manifest: Manifest, folder: str) -> ConversionResult:
        """Returns the result of a run that has ended.

        Raises:
            DataError: Too many rows were rejected, so nothing was committed.
            StorageError: All were, because no image may be read.
        """
        if storage.exists(storage.join(folder, layout.DATASET_FILE)):
            done = describe_dataset(folder, read_dataset(folder), manifest)
            return self._name_output(done)
        result = ConversionResult(
            folder,
            manifest.rows,
            rejected=count_rejects(folder),
            deduplicated=manifest.deduplicated,
            excluded=manifest.excluded,
            merged=manifest.merged,
            labels=tuple(manifest.labels),
        )
        if result.num_rejected + result.deduplicated == result.rows:
            check_not_all_denied(result.rejected, rejects.list_rejects(folder))
        return self._judge(self._name_output(result))

    def _judge(self, result: ConversionResult) -> ConversionResult:
        """Returns a result, unless too many rows were rejected.

        The share that an earlier run allowed and committed counts, unless another one is given.

        Raises:
            DataError: Too many rows were rejected, or all.
        """
        is_over = result.num_rejected > self._limit * result.rows
        if result.written and (self.max_rejects is None or not is_over):
            return result
        limit = f"more than the {self._limit:.2%} allowed" if is_over else "so none is left"
        raise TooManyRejectsError(
            f"{result.num_rejected} of {result.rows} rows were rejected, {limit}. "
            f"{rejects.list_rejects(result.data_dir)}",
            f"All are listed in {result.rejects_path}. Fix them, or allow more with "
            f"{rejects.LIMIT_OPTION}.\n{format_hint(result.rejected)}".rstrip(),
            result,
        )
