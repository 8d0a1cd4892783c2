"""`darkroom.convert`: from a source to a dataset without any pipeline."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from darkroom import storage
from darkroom.conversion.beam.runners import (
    DATAFLOW_RUNNER,
    find_options,
    name_runner,
    parse_runner,
)
from darkroom.conversion.job import ConversionJob
from darkroom.conversion.result import ConversionResult
from darkroom.dataset.schema import Schema
from darkroom.dataset.splits import SplitRatios
from darkroom.errors import UsageError
from darkroom.manifest.sources import AnySource
from darkroom.options.checks import check_flag
from darkroom.options.conversion import DEFAULT_STORE_PATIENCE_SECONDS, ConversionOptions
from darkroom.options.image import (
    AUTO_COPIES,
    CHECK_FULL,
    DEFAULT_JPEG_QUALITY,
    KEEP_ENCODING,
)
from darkroom.options.manifest import ManifestOptions
from darkroom.options.source import (
    AUTO_LABEL,
    DEFAULT_SOURCE_ENCODING,
    DEFAULT_SPLIT_RATIOS,
    JOIN_SUBFOLDERS,
    REFUSE_MERGE,
)
from darkroom.options.targets import EngineOptions
from darkroom.runtime import progress
from darkroom.runtime.process import report_interrupts


@storage.report_failures
@report_interrupts("The conversion was interrupted; run it again: finished shards are kept.")
@progress.shown
def convert(
    source: AnySource,
    output_dir: str | os.PathLike[str],
    *,
    columns: Schema | Mapping[str, Any] | str | None = None,
    label_map: Sequence[str] | str | os.PathLike[str] | None = None,
    split_ratios: SplitRatios | str = DEFAULT_SPLIT_RATIOS,
    seed: int = 0,
    source_encoding: str = DEFAULT_SOURCE_ENCODING,
    label_kind: str = AUTO_LABEL,
    merge_rows: str = REFUSE_MERGE,
    subfolders: str = JOIN_SUBFOLDERS,
    allowed_roots: Sequence[str | os.PathLike[str]] = (),
    exclude: str | os.PathLike[str] | None = None,
    image_check: str = CHECK_FULL,
    resize_short_side: int | None = None,
    encoding: str = KEEP_ENCODING,
    jpeg_quality: int = DEFAULT_JPEG_QUALITY,
    find_decoded_copies: str = AUTO_COPIES,
    compression: str = "none",
    num_shards: int | Mapping[str, int] | None = None,
    store_patience_seconds: float = DEFAULT_STORE_PATIENCE_SECONDS,
    max_rejects: float | None = None,
    overwrite: bool = False,
    runner: str | None = None,
    project: str | None = None,
    region: str | None = None,
    wait: bool = True,
    beam_options: Mapping[str, Any] | None = None,
    engine: str | None = None,
    engine_url: str | None = None,
    engine_workers: str | None = None,
) -> ConversionResult:
    """Converts images and their labels into TFRecords.

    Args:
        source: Path of a CSV, JSONL or Parquet file, a pattern of such files, a folder
            `<label>/<file>` or `<split>/<label>/<file>`, or a DataFrame.
        output_dir: Folder for the dataset, local or `gs://`; made when absent.
        columns: Kind of each column by name, as in {"path": "image", "age": "integer"}. The kinds
            are those of `darkroom.dataset.schema.Kind`; None infers them from the names.
        label_map: Labels in the order of their numbers: a file with one label per line. Or the
            labels themselves; None sorts them as text.
        split_ratios: Percentages of train, eval and test for rows that do not name a split.
        seed: Seed for everything random: splits, order, weights, augmentation.
        source_encoding: Text encoding of a CSV or JSONL file.
        label_kind: What a text in the column of labels is. With `label` each is one label. `auto`
            refuses texts that look like several labels in one, and numbers that look like no
            classes.
        merge_rows: What becomes of an image whose rows differ in further columns. `first` keeps the
            row whose values come first in their order, wherever it is in the source.
        subfolders: What becomes of images in folders below that of a label, as cat/persian/1.jpg.
            They have the `label` of the folder above, as in Keras; `reject` rejects them. Below a
            folder with the name of a split they are always rejected.
        allowed_roots: Folders that may contain images; images elsewhere are rejected. Links are
            followed first. The reason is `outside_root`; () allows every folder.
        exclude: List of images to leave out: what `darkroom duplicates` wrote, or keys or URIs.
            Keys or URIs may be in a text, CSV or Parquet file. Excluded rows count as deduplicated.
        image_check: Decode every image completely before it is written, or read its header only.
            `full` or `header`; with `header` a damaged image may be written.
        resize_short_side: Reduce larger images to this length of their short side, in pixels.
        encoding: Store images as files (keep) or as decoded pixels (raw). Pixels are faster to
            read, and many times larger.
        jpeg_quality: Quality of JPEGs that were reduced. Below 95 their colors have half
            the resolution (4:2:0).
        find_decoded_copies: Decode JPEGs a second time, so that PNGs that were made of them are
            found. `always` or `never`; `auto` does so if the source names other files.
        compression: Compression of the record files. `none` or `gzip`.
        num_shards: Number of shards per split. A number for each split, or numbers by split; None
            or 0 chooses from the size of the data.
        store_patience_seconds: How long reads and writes are tried again while a store does not
            answer. Then the conversion ends, and no row is rejected for it.
        max_rejects: Share of rejected rows that is allowed. With more the conversion fails. None:
            1 %, or what an earlier run allowed that wrote the same dataset.
        overwrite: Whether to replace what another conversion left in `output_dir`. Files that
            darkroom cannot prove it wrote are never deleted.
        runner: Beam runner; in this process when None. `DataflowRunner` in any letter case.
        project: Google Cloud project, for Dataflow.
        region: Google Cloud region, for Dataflow.
        wait: Whether to wait for a Dataflow job.
        beam_options: Beam's own pipeline options by name.
        engine: Engine that writes the dataset; what Beam must be told of it is found out.
            `flink`, `spark`, `prism` or `dataflow`; in this process when None.
        engine_url: Address of the engine, as http://jobmanager:8081 or spark://master:7077.
        engine_workers: What runs darkroom on the machines of the engine: image=NAME, pool=HOST:PORT
            or command=PATH. Not needed if the engine is on this machine.

    Returns:
        Counts, rejects and paths.

    Raises:
        DataError: The source cannot be used, or too many rows were rejected: then index and
            rejects are written, but no `dataset.json`.
        UsageError: An argument is wrong, or the output would replace the source or an image.
        OutputError: Another run holds the output, or it has other data or files of others.
        OSError: Storage failed.
        KeyboardInterrupt: It was interrupted.
    """
    check_flag("overwrite", overwrite)
    check_flag("wait", wait)
    manifest = ManifestOptions.parse(
        columns=columns,
        label_map=label_map,
        split_ratios=split_ratios,
        seed=seed,
        source_encoding=source_encoding,
        label_kind=label_kind,
        merge_rows=merge_rows,
        subfolders=subfolders,
        allowed_roots=allowed_roots,
        exclude=exclude,
    ).resolve()
    records = ConversionOptions(
        image_check=image_check,
        resize_short_side=resize_short_side,
        encoding=encoding,
        jpeg_quality=jpeg_quality,
        find_decoded_copies=find_decoded_copies,
        compression=compression,
        num_shards=num_shards,
        store_patience_seconds=store_patience_seconds,
    )
    job = ConversionJob(
        source, storage.absolute(output_dir), manifest, records, max_rejects, overwrite
    )
    given = _check_beam_options({} if beam_options is None else beam_options)
    options = EngineOptions(engine=engine, engine_url=engine_url, engine_workers=engine_workers)
    if options.engine is not None:
        if runner is not None:
            raise UsageError("engine and runner exclude each other.", "Give engine alone.")
        runner, given = name_runner(options.engine), find_options(options, given)
    with storage.be_patient(records.store_patience_seconds):
        return _start(job, parse_runner(runner), project, region, wait, given)


def _check_beam_options(options: Any) -> Mapping[str, Any]:
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise UsageError(
            f"beam_options must map names to values, got {options!r:.80}.",
            "For example beam_options={'num_workers': 4}.",
        )
    return options


def _start(
    job: ConversionJob,
    runner: str,
    project: str | None,
    region: str | None,
    wait: bool,
    beam_options: Mapping[str, Any],
) -> ConversionResult:
    """Runs a job in this process, on a cluster, or as a Dataflow job.

    Raises:
        UsageError: `project`, `region` or an option of Beam does not fit the runner.
    """
    if runner == DATAFLOW_RUNNER:
        from darkroom.conversion.beam.dataflow import DataflowJob

        return job.submit(DataflowJob(job.output_dir, project, region, beam_options), wait)
    if project or region:
        raise UsageError("project and region go with runner='DataflowRunner'.")
    return job.run(runner, beam_options)
