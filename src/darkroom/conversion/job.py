"""A conversion, from reading the source to the commit; data that is in the output stays safe."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from darkroom import storage
from darkroom.conversion.base import find_known_rows, open_base, open_old_dataset
from darkroom.conversion.output.output import Output
from darkroom.conversion.plan import plan_job
from darkroom.conversion.result import ConversionResult, TooManyRejectsError, describe_dataset
from darkroom.conversion.shards.old_records import OldDataset
from darkroom.conversion.shards.writer_process import WriterProcesses
from darkroom.dataset import layout, rejects
from darkroom.dataset.commit import Dataset, read_dataset
from darkroom.dataset.example import IMAGE_ENCODED
from darkroom.dataset.index import find_index_files, read_code, read_index_batches
from darkroom.dataset.layout import Folders
from darkroom.dataset.manifest import MANIFEST_FILE, Manifest, read_manifest_rows
from darkroom.dataset.named import find_base, find_named_data
from darkroom.dataset.objects import ObjectCounts
from darkroom.dataset.opening import find_damaged
from darkroom.dataset.read_as import explain_reading
from darkroom.dataset.rejects import (
    CONVERT_STAGE,
    count_rejected_objects,
    count_rejects,
    format_hint,
    read_rejects,
)
from darkroom.dataset.sources import AnySource
from darkroom.errors import DataError, OutputError, UsageError
from darkroom.images.access import (
    PROBED_IMAGES,
    check_access,
    check_not_all_denied,
    is_readable_now,
)
from darkroom.manifest import writer
from darkroom.options.checks import DEFAULT_MAX_REJECTS
from darkroom.options.conversion import RecordOptions, UpdateOptions
from darkroom.options.image import DEFAULT_JPEG_QUALITY
from darkroom.options.manifest import ManifestOptions
from darkroom.options.runners import LOCAL_RUNNER
from darkroom.runtime import by_name, progress
from darkroom.runtime.text import format_count
from darkroom.storage.parquet import BATCH_ROWS
from darkroom.targets.kind import find_kind
from darkroom.version import hash_code

if TYPE_CHECKING:
    from darkroom.conversion.beam.dataflow import DataflowJob
    from darkroom.conversion.output.attempts import Attempt
    from darkroom.conversion.shards.writing import WriteJob


@dataclass(frozen=True)
class ConversionJob:
    """A conversion with its arguments checked."""

    source: AnySource
    output_dir: str
    manifest: ManifestOptions
    conversion: RecordOptions
    max_rejects: float | None
    overwrite: bool
    updates: UpdateOptions = field(default_factory=UpdateOptions)
    runner: str = LOCAL_RUNNER
    beam_options: Mapping[str, Any] = field(default_factory=dict)
    describe: tuple[str, ...] = ()

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
        lists = self.manifest.exclude, self.manifest.decisions, self.manifest.groups
        for path in filter(None, lists):
            if path.startswith(f"{self.output_dir}/"):
                raise UsageError(
                    f"The list {path} is in the output folder, which gets the dataset alone.",
                    "Move it elsewhere.",
                )

    @property
    def _limit(self) -> float:
        return DEFAULT_MAX_REJECTS if self.max_rejects is None else self.max_rejects

    def run(self) -> ConversionResult:
        """Converts and waits for the end."""
        others: AbstractContextManager[WriterProcesses | None] = nullcontext()
        if self.runner == LOCAL_RUNNER and not self.beam_options:
            others = WriterProcesses()
        else:
            # Reports a wrong one before any work.
            by_name.find("check_runner")(self.runner, self.beam_options)
        with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch, others as processes:
            output = self._make_output(scratch)
            manifest, old = self._plan(output.folders, scratch, processes)
            # Before it is held, too: a finished dataset may be on a disk that is read-only.
            if done := self._find_finished(output, manifest):
                if repair := self._find_repair(done, manifest):
                    return repair.run()
                output.remove_leftovers()
                return self._judge(done)
            first = read_manifest_rows(output.folders.manifest, 0, PROBED_IMAGES)
            check_access([row.uri for row in first if row.uri and not (old and row.old)])
            with output.hold():
                if done := self._find_finished(output, manifest):
                    return self._judge(done)
                output.check()
                with output.open() as target:
                    if target is output:
                        _check_stays(self.output_dir, old)
                        return self._convert(output, manifest, old, processes)
                    result = self._find_beside(target, manifest) or self._convert(
                        target, manifest, old, processes
                    )
        return replace(result, data_dir=self.output_dir)

    def submit(self, dataflow: DataflowJob, wait: bool) -> ConversionResult:
        """Starts a Dataflow job, and waits for its end if asked to."""
        with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
            output = self._make_output(scratch)
            manifest, old = self._plan(output.folders, scratch)
            if done := self._find_finished(output, manifest):
                repair = self._find_repair(done, manifest)
                return repair.submit(dataflow, wait) if repair else self._judge(done)
            dataflow.check_images(storage.join(output.folders.manifest, MANIFEST_FILE))
            output.check()
            attempt, job = self._begin(output, old, is_dry_run=dataflow.is_dry_run)
            job_id = dataflow.submit(job, wait, attempt.record.job)
        if not wait or not job_id:
            return ConversionResult(self.output_dir, manifest.rows, job_id=job_id)
        return self._collect(attempt, manifest)

    def _make_output(self, scratch: str) -> Output:
        folders = Folders.of_dataset(self.output_dir, os.path.join(scratch, "manifest"))
        replaces = self.overwrite or self.updates.update
        output = Output(folders, overwrite=replaces, describe=self.describe)
        output.check_source(self.source)
        return output

    def find_base(self) -> Folders | None:
        """Returns where the dataset is that an update starts from; None for none."""
        if self.updates.base is not None:
            return Folders.of_dataset(find_named_data(self.updates.base))
        # None in the first of many runs, too.
        return find_base(self.output_dir) if self.updates.update else None

    def _plan(
        self, folders: Folders, scratch: str, processes: WriterProcesses | None = None
    ) -> tuple[Manifest, OldDataset | None]:
        """Returns the manifest, which is written if it must be, and the old dataset.

        Processes that write shards start meanwhile, where all images will be read.
        """
        found = self.find_base()
        base = open_base(found, self.updates, scratch, self.source) if found else None
        if self.updates.update and not found:
            progress.note(f"There is no dataset in {self.output_dir} yet: this is the first run.")
        is_here = self.updates.base is None and not self.overwrite
        known = find_known_rows(base, self.manifest, self.conversion) if base and is_here else None
        with progress.step("Reading the source"):
            there = find_base(self.output_dir)
            # Else few images, or none, may have to be read.
            is_new = not found and (self.overwrite or not there)
            manifest = writer.write_manifest(
                self.source,
                folders.manifest,
                folders.manifest_rejects,
                self.manifest,
                base,
                known,
                shown=[there] if there and self.manifest.decisions else (),
                keep_beside=True,
                count=processes.start if processes and is_new else None,
            )
        if manifest.removed:
            progress.note(f"Removed: {format_count(manifest.removed, 'image')}.")
        place = manifest.find_base()
        old = open_old_dataset(place, self.conversion, self.updates.recheck) if place else None
        return manifest, old

    def _find_finished(self, output: Output, manifest: Manifest) -> ConversionResult | None:
        """Returns the result of an earlier run that did the same, unless it is to be replaced.

        Raises:
            DataError: It did, but its files are damaged.
            StorageError: Another run has replaced the dataset that is updated.
        """
        found = None if self.overwrite else output.find_finished(manifest, self.conversion)
        if found:
            return self._describe(*found, manifest, already_complete=True)
        # Of the list of that dataset no rows were written: it was finished when it was read.
        manifest.find_base()
        return None

    def _find_repair(self, done: ConversionResult, manifest: Manifest) -> ConversionJob | None:
        """Returns the job that makes again what a finished dataset lacks; None if that is nothing.

        What of it is sound is taken, as by an update, and the rest is made from the source.
        """
        folder = done.data_dir
        file = storage.join(folder, layout.REJECTS_FILE)
        if any(map(is_readable_now, read_rejects(file))):
            progress.note("Images that were rejected can be read now: converting again.")
            return replace(self, overwrite=True)
        is_by_other = self.updates.update and read_code(done.index_dir) != hash_code()
        if is_by_other and any(each.stage == CONVERT_STAGE for each in read_rejects(file)):
            progress.note("Another version of darkroom rejected images: trying them again.")
            return replace(self, overwrite=True)
        share, seed, dataset = self.updates.recheck, manifest.fingerprint, read_dataset(folder)
        if _lacks_versions(folder, dataset):
            progress.note("The versions of some images are unknown: these are read again.")
        elif not find_damaged(folder, dataset, share, seed):
            return None
        updates = self.updates
        if updates.base is None:
            updates = replace(updates, update=True)
        return replace(self, overwrite=True, updates=updates)

    def _find_beside(self, beside: Output, manifest: Manifest) -> ConversionResult | None:
        """Returns the result of a run that was killed after its commit, if nothing was lost."""
        with suppress(DataError):
            found = beside.find_finished(manifest, self.conversion, with_shards=True)
            return found and self._judge(self._describe(*found, manifest))
        return None

    def _begin(
        self, output: Output, old: OldDataset | None, *, is_dry_run: bool = False
    ) -> tuple[Attempt, WriteJob]:
        attempt = output.make_attempt(self.runner)
        job = plan_job(output.folders, attempt, self.conversion, self._limit, old)
        if not is_dry_run:
            output.begin(attempt, job.tasks)
        return attempt, job

    def _convert(
        self,
        output: Output,
        manifest: Manifest,
        old: OldDataset | None,
        processes: WriterProcesses | None,
    ) -> ConversionResult:
        attempt, job = self._begin(output, old)
        with progress.step("Converting"):
            try:
                if processes:
                    job.run_here(processes)
                else:
                    run = by_name.find("run_job")
                    run(job, self.runner, self.beam_options, attempt.record.job)
            except Exception as error:
                # Where another run has replaced the dataset that images come from, that is why:
                # this raises an error that says so.
                if not isinstance(error, OutputError):
                    manifest.find_base()
                raise
        return self._collect(attempt, manifest)

    def _collect(self, attempt: Attempt, manifest: Manifest) -> ConversionResult:
        """Returns the result of an attempt that has ended.

        Raises:
            DataError: Too many rows were rejected, so nothing was committed.
            StorageError: All were, because no image may be read.
        """
        folder = attempt.folders.examples
        if storage.exists(storage.join(folder, layout.DATASET_FILE)):
            return self._describe(folder, read_dataset(folder), manifest)
        result = ConversionResult(
            self.output_dir,
            manifest.rows,
            rejected=count_rejects(folder),
            deduplicated=manifest.deduplicated,
            excluded=manifest.excluded,
            merged=manifest.merged,
            labels=tuple(manifest.labels),
            data_dir=folder,
            read_as=manifest.read_as,
        )
        if manifest.objects:
            kind = manifest.target.kind
            result = replace(result, **self._find_objects(folder, manifest.objects, kind))
        if result.num_rejected + result.deduplicated == result.rows:
            check_not_all_denied(result.rejected, rejects.list_rejects(folder))
        return self._judge(result)

    def _find_objects(self, folder: str, planned: ObjectCounts, kind: str) -> dict[str, Any]:
        """Returns the fields of a result about objects, where nothing was committed."""
        reasons = count_rejected_objects(folder, find_kind(kind).count)
        rejected = sum(reasons.values())
        left = planned.read - rejected - planned.deduplicated
        found = replace(planned, written=left, rejected=rejected)
        return {"objects": found, "rejected_objects": reasons}

    def _describe(
        self, data: str, dataset: Dataset, manifest: Manifest, already_complete: bool = False
    ) -> ConversionResult:
        """Returns the result of a dataset; on a store its files are in a folder of the output."""
        result = describe_dataset(data, dataset, manifest, already_complete)
        return replace(result, output_dir=self.output_dir, data_dir=data)

    def _judge(self, result: ConversionResult) -> ConversionResult:
        """Returns a result, unless too many rows were rejected.

        The share that an earlier run allowed and committed counts, unless another one is given.

        Raises:
            DataError: Too many rows were rejected, or all.
        """
        objects = result.objects or ObjectCounts()
        is_over = rejects.are_too_many(self._limit, result.num_rejected, result.rows, objects)
        if result.written and (self.max_rejects is None or not is_over):
            return result
        limit = f"more than the {self._limit:.2%} allowed" if is_over else "so none is left"
        verb = "" if objects.rejected else "were"
        lost = format_count(result.num_rejected, "row", verb, result.rows)
        if objects.rejected:
            lost += f" and {format_count(objects.rejected, 'object', 'were', objects.read)}"
        hints = [
            f"All are listed in {result.rejects_path}. Fix them, or allow more with "
            f"{rejects.LIMIT_OPTION}.",
            *explain_reading(result.read_as),
            format_hint({**result.rejected_objects, **result.rejected}),
        ]
        raise TooManyRejectsError(
            f"{lost} rejected, {limit}. {rejects.list_rejects(result.data_dir)}",
            "\n".join(hints).rstrip(),
            result,
        )


def _lacks_versions(folder: str, dataset: Dataset) -> bool:
    """Tells whether a dataset has images whose change could not be noticed."""
    files = find_index_files(storage.join(folder, layout.INDEX_FOLDER))
    return IMAGE_ENCODED in dataset.features and any(
        batch["source_version"].null_count
        for path in files
        for batch in read_index_batches(path, ["source_version"], BATCH_ROWS)
    )


def _check_stays(output_dir: str, old: OldDataset | None) -> None:
    """Checks that a dataset is not deleted before its images are taken, as far as it is a disk's.

    Raises:
        OutputError: It would be.
    """
    if old is None or storage.is_remote(output_dir) or storage.is_remote(old.folders.examples):
        return
    paths = map(storage.local_path, (output_dir, old.folders.examples))
    if os.path.samefile(*paths):
        raise OutputError(
            f"{output_dir} cannot be replaced in one step: it is a mount point, has files that are "
            "not of the dataset, or its parent folder cannot be written.",
            "Write the update to another folder, with this one as base (--base).",
        )
