"""`darkroom.convert`: from a source to a dataset without any pipeline."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from darkroom import conversion, manifest_writer, progress, rejects, sharding, storage
from darkroom import dataset as datasets
from darkroom import index as indexes
from darkroom.conversion import DEFAULT_MAX_REJECTS, ConversionOptions, Folders
from darkroom.dataset import Dataset
from darkroom.errors import DataError, OutputError, UsageError
from darkroom.images import CHECKS_FULL, ImageOptions
from darkroom.labels import read_labels
from darkroom.locks import LOCK_FILE, hold_folder
from darkroom.manifest import Manifest
from darkroom.rows import ManifestOptions
from darkroom.runners import DATAFLOW_RUNNER, build_options, parse_runner
from darkroom.schema import Schema
from darkroom.sources import AnySource
from darkroom.splits import SplitRatios

if TYPE_CHECKING:
    from darkroom.dataflow import DataflowJob


@dataclass(frozen=True)
class ConversionResult:
    """What a conversion did.

    Attributes:
        output_dir: The dataset.
        rows: Rows of the source: written + all rejected + deduplicated.
        written: Records written.
        rejected: Number of refused rows by reason code.
        deduplicated: Rows dropped because another says the same.
        splits: Records by split.
        shards: Number of files of records.
        labels: The label map.
        fingerprint: Fingerprint of the dataset; empty while a remote job runs.
        already_complete: Whether the output was there before, and nothing was done.
        job_id: Id of the remote job, when it was not waited for.
    """

    output_dir: str
    rows: int
    written: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    deduplicated: int = 0
    splits: Mapping[str, int] = field(default_factory=dict)
    shards: int = 0
    labels: tuple[str, ...] = ()
    fingerprint: str = ""
    already_complete: bool = False
    job_id: str | None = None

    @property
    def num_rejected(self) -> int:
        """Refused rows in all."""
        return sum(self.rejected.values())

    @property
    def rejects_path(self) -> str:
        """Path of the refused rows as a manifest that can be converted once mended."""
        return storage.join(self.output_dir, rejects.JSONL_FILE)

    @property
    def index_dir(self) -> str:
        """Folder of the record index."""
        return storage.join(self.output_dir, conversion.INDEX_FOLDER)


class TooManyRejectsError(DataError):
    """A conversion refused too many rows to be committed.

    Attributes:
        result: What it did; nothing counts as written.
    """

    def __init__(self, message: str, hint: str, result: ConversionResult) -> None:
        super().__init__(message, hint)
        self.result = result

    def __reduce__(self) -> tuple[object, ...]:
        """Keeps the result when the error is pickled."""
        return (type(self), (self.message, self.hint, self.result))


def convert(
    source: AnySource,
    output_dir: str | os.PathLike[str],
    *,
    schema: Schema | Mapping[str, Any] | str | None = None,
    label_map: Sequence[str] | str | os.PathLike[str] | None = None,
    split_ratios: SplitRatios | str | None = None,
    seed: int = 0,
    checks: str = CHECKS_FULL,
    resize_short_side: int | None = None,
    compression: str | None = None,
    num_shards: int | Mapping[str, int] | None = None,
    max_rejects: float = DEFAULT_MAX_REJECTS,
    overwrite: bool = False,
    runner: str | None = None,
    project: str | None = None,
    region: str | None = None,
    wait: bool = True,
    **options: Any,
) -> ConversionResult:
    """Converts images and their labels into TFRecords.

    Args:
        source: Path of a CSV, JSONL or Parquet file, a pattern of such files, a folder
            `<label>/<file>` or `<split>/<label>/<file>`, or a DataFrame.
        output_dir: Folder for the dataset, local or `gs://`; made when absent.
        schema: Kind of each column by name (see `darkroom.schema.Kind`); told from the names of
            the columns when None.
        label_map: Labels in the order of their numbers, or the path of a file with one a line;
            the labels sorted as text when None.
        split_ratios: Shares of train, eval and test for rows that declare no split; 80/10/10.
        seed: Seed of the order and of the assignment to splits.
        checks: `full` decodes every image before it is written, `header` only looks at its start.
        resize_short_side: Short side in pixels to which larger images are reduced.
        compression: None or `gzip`.
        num_shards: Shards of each split, or by split; from the bytes when None.
        max_rejects: Share of refused rows over which the conversion fails.
        overwrite: Whether to replace what another conversion left in `output_dir`.
        runner: Beam runner; in this process when None. `DataflowRunner` in any letter case.
        project: Google Cloud project, for Dataflow.
        region: Google Cloud region, for Dataflow.
        wait: Whether to wait for a Dataflow job.
        **options: Beam's own pipeline options by name.

    Returns:
        What was done.

    Raises:
        DataError: The source cannot be used, or too many rows were refused. Index and rejects are
            written then, `dataset.json` is not.
        UsageError: An argument is wrong.
        OutputError: The output holds other data, or another run holds it.
        OSError: Storage failed.
    """
    if not 0 <= max_rejects <= 1:
        raise UsageError(f"max_rejects is a share from 0 to 1, got {max_rejects}.")
    if isinstance(label_map, str | os.PathLike):
        label_map = read_labels(os.fspath(label_map))
    if isinstance(split_ratios, str):
        split_ratios = SplitRatios.parse(split_ratios)
    job = _Job(
        source=source,
        output_dir=storage.absolute(output_dir),
        manifest=ManifestOptions(
            schema=None if schema is None else Schema.parse(schema),
            labels=None if label_map is None else tuple(label_map),
            split_ratios=split_ratios or SplitRatios(),
            seed=seed,
        ),
        conversion=ConversionOptions(
            image=ImageOptions(checks, resize_short_side),
            compression=compression or "none",
            num_shards=sharding.parse_shard_counts(num_shards),
        ),
        max_rejects=max_rejects,
        overwrite=overwrite,
    )
    if parse_runner(runner) == DATAFLOW_RUNNER:
        from darkroom.dataflow import DataflowJob

        return job.submit(DataflowJob(job.output_dir, project, region, options), wait)
    if project or region:
        raise UsageError("project and region go with runner='DataflowRunner'.")
    return job.run(parse_runner(runner), options)


@dataclass(frozen=True)
class _Job:
    """A conversion with its arguments checked."""

    source: AnySource
    output_dir: str
    manifest: ManifestOptions
    conversion: ConversionOptions
    max_rejects: float
    overwrite: bool

    def run(self, runner: str, options: Mapping[str, Any]) -> ConversionResult:
        """Converts and waits for the end."""
        beam_options = build_options(runner, options)
        if storage.exists(self.output_dir) and not storage.is_folder(self.output_dir):
            raise OutputError(f"{self.output_dir} is a file.", "Choose a folder for the output.")
        with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
            folders = self._folders(scratch)
            manifest = self._write_manifest(folders)
            storage.make_folder(self.output_dir)
            with hold_folder(self.output_dir):
                if done := self._find_finished(manifest):
                    return done
                self._clear_output()
                plan = conversion.plan_conversion(folders, self.conversion, self.max_rejects)
                with progress.step("Converting"):
                    import apache_beam as beam

                    with beam.Pipeline(options=beam_options) as pipeline:
                        pipeline | "WriteDataset" >> plan  # pyright: ignore
                return self._collect(manifest)

    def submit(self, dataflow: DataflowJob, wait: bool) -> ConversionResult:
        """Starts a Dataflow job, and waits for its end if asked to."""
        with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
            local = self._folders(scratch)
            manifest = self._write_manifest(local)
            dataflow.check_images(storage.join(local.manifest, "manifest.parquet"))
            if done := self._find_finished(manifest):
                return done
            self._clear_output()
            folders = dataflow.upload_manifest(local)
            plan = conversion.plan_conversion(folders, self.conversion, self.max_rejects)
            job_id = dataflow.submit(plan, scratch, wait)
        if not wait:
            return ConversionResult(self.output_dir, manifest.rows, job_id=job_id)
        return self._collect(manifest)

    def _folders(self, scratch: str) -> Folders:
        return Folders(
            manifest=os.path.join(scratch, "manifest"),
            manifest_rejects=os.path.join(scratch, "manifest"),
            examples=self.output_dir,
            index=storage.join(self.output_dir, conversion.INDEX_FOLDER),
            rejects=self.output_dir,
        )

    def _write_manifest(self, folders: Folders) -> Manifest:
        with progress.step("Reading the source"):
            return manifest_writer.write_manifest(
                self.source, folders.manifest, folders.manifest_rejects, self.manifest
            )

    def _find_finished(self, manifest: Manifest) -> ConversionResult | None:
        """Returns the result of an earlier run that did the same."""
        if self.overwrite or not storage.exists(storage.join(self.output_dir, "dataset.json")):
            return None
        try:
            dataset = datasets.read_dataset(self.output_dir)
            datasets.check_files(self.output_dir, dataset)
        except DataError:
            return None
        index = storage.join(self.output_dir, conversion.INDEX_FOLDER)
        made_from = indexes.read_source_fingerprint(index)
        same = bool(made_from) and made_from == manifest.fingerprint
        wanted = conversion.describe_options(manifest, self.conversion)
        if same and dataset.options == wanted and list(dataset.labels) == manifest.labels:
            return _as_result(self.output_dir, dataset, already_complete=True)
        return None

    def _clear_output(self) -> None:
        """Makes room for the dataset.

        Raises:
            OutputError: The folder holds something that is not ours, or a finished dataset, and
                overwriting was not asked for.
        """
        names = [name for name in storage.list_folder(self.output_dir) if name != LOCK_FILE]
        foreign = [name for name in names if not conversion.is_ours(name)]
        # What a killed or failed run leaves is ours to replace; a user's own labels.txt is not.
        marks = (conversion.WORK_FOLDER, rejects.PARQUET_FILE)
        unfinished = datasets.DATASET_FILE not in names and any(mark in names for mark in marks)
        if names and not self.overwrite and (foreign or not unfinished):
            what = f"other data: {foreign[:5]}" if foreign else "another dataset"
            raise OutputError(
                f"{self.output_dir} holds {what}.",
                "Choose another output folder, or replace it with overwrite (--overwrite).",
            )
        conversion.clear_output(self.output_dir)

    def _collect(self, manifest: Manifest) -> ConversionResult:
        """Returns the result of a run that came to its end.

        Raises:
            DataError: It did not commit, because it refused too much.
        """
        if storage.exists(storage.join(self.output_dir, datasets.DATASET_FILE)):
            return _as_result(self.output_dir, datasets.read_dataset(self.output_dir))
        rejected = _count_rejects(self.output_dir)
        result = ConversionResult(
            self.output_dir,
            manifest.rows,
            rejected=rejected,
            deduplicated=manifest.deduplicated,
            labels=tuple(manifest.labels),
        )
        raise TooManyRejectsError(
            f"{result.num_rejected} of {manifest.rows} rows were refused, more than the "
            f"{self.max_rejects:.2%} allowed. {conversion.list_rejects(self.output_dir)}",
            f"All are listed in {result.rejects_path}. Mend them, or allow more with max_rejects "
            "(--max-rejects).",
            result,
        )


def _as_result(
    output_dir: str, dataset: Dataset, already_complete: bool = False
) -> ConversionResult:
    return ConversionResult(
        output_dir=output_dir,
        rows=dataset.rows,
        written=dataset.written,
        rejected=_count_rejects(output_dir),
        deduplicated=dataset.deduplicated,
        splits={name: split.records for name, split in dataset.splits.items()},
        shards=sum(len(split.shards) for split in dataset.splits.values()),
        labels=dataset.labels,
        fingerprint=dataset.fingerprint,
        already_complete=already_complete,
    )


def _count_rejects(folder: str) -> dict[str, int]:
    path = storage.join(folder, rejects.PARQUET_FILE)
    counts = Counter(reject.reason for reject in rejects.read_rejects(path))
    return dict(sorted(counts.items()))
