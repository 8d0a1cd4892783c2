"""`darkroom.convert`: from a source to a dataset without any pipeline."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from darkroom import storage
from darkroom.conversion.beam.runners import DATAFLOW_RUNNER, parse_runner
from darkroom.conversion.job import ConversionJob
from darkroom.conversion.result import ConversionResult
from darkroom.dataset.schema import Schema
from darkroom.dataset.splits import SplitRatios
from darkroom.errors import UsageError
from darkroom.manifest.sources import AnySource
from darkroom.options.conversion import (
    DEFAULT_MAX_REJECTS,
    ConversionOptions,
    parse_shard_counts,
)
from darkroom.options.image import CHECKS_FULL, DEFAULT_JPEG_QUALITY, KEEP_ENCODING, ImageOptions
from darkroom.options.manifest import DEFAULT_ENCODING, ManifestOptions


def convert(
    source: AnySource,
    output_dir: str | os.PathLike[str],
    *,
    schema: Schema | Mapping[str, Any] | str | None = None,
    label_map: Sequence[str] | str | os.PathLike[str] | None = None,
    split_ratios: SplitRatios | str | None = None,
    seed: int = 0,
    source_encoding: str = DEFAULT_ENCODING,
    allowed_roots: Sequence[str | os.PathLike[str]] = (),
    exclude: str | os.PathLike[str] | None = None,
    checks: str = CHECKS_FULL,
    resize_short_side: int | None = None,
    encoding: str = KEEP_ENCODING,
    jpeg_quality: int = DEFAULT_JPEG_QUALITY,
    compression: str | None = None,
    num_shards: int | Mapping[str, int] | None = None,
    max_rejects: float = DEFAULT_MAX_REJECTS,
    overwrite: bool = False,
    runner: str | None = None,
    project: str | None = None,
    region: str | None = None,
    wait: bool = True,
    beam_options: Mapping[str, Any] | None = None,
) -> ConversionResult:
    """Converts images and their labels into TFRecords.

    Args:
        source: A CSV, JSONL or Parquet file, a pattern of such files, a DataFrame, or a folder
            `<label>/<file>` or `<split>/<label>/<file>`.
        output_dir: Folder for the dataset, local or `gs://`; created when absent.
        schema: Kind of each column by name; inferred from the columns' names when None.
        label_map: Labels in the order of their numbers, or a file, one a line; sorted when None.
        split_ratios: Shares of train, eval and test for rows without a split; 80/10/10 when None.
        seed: Seed of the order and of the assignment to splits.
        source_encoding: Character encoding of a CSV or JSONL file.
        allowed_roots: Folders that all images must be in, wherever links lead; empty for any place.
        exclude: List of images to leave out: a file from `find_duplicates`, or keys or URIs.
        checks: `full` decodes every image before it is written, `header` reads only its header.
        resize_short_side: Short side in pixels to which larger images are reduced.
        encoding: `keep`, or `raw` to store decoded pixels: faster to read, many times larger.
        jpeg_quality: Quality, 1 to 100, of JPEGs that were reduced; below 95 with 4:2:0.
        compression: None or `gzip`.
        num_shards: Shards of each split, or by split; from the bytes when None or 0.
        max_rejects: The conversion fails when more than this share of the rows is rejected.
        overwrite: Whether to replace another dataset; files of others are never deleted.
        runner: Beam runner, in any letter case; in this process when None.
        project: Google Cloud project, for Dataflow.
        region: Google Cloud region, for Dataflow.
        wait: Whether to wait for a Dataflow job.
        beam_options: Beam's own pipeline options by name.

    Returns:
        Counts, rejects and paths.

    Raises:
        DataError: The source cannot be used, or too many rows were rejected: then index and
            rejects are written, but no `dataset.json`.
        UsageError: An argument is wrong, or the output would replace the source or an image.
        OutputError: Another run holds the output, or it has other data or files of others.
        OSError: Storage failed.
    """
    image = ImageOptions(checks, resize_short_side, encoding, jpeg_quality)
    manifest = ManifestOptions.parse(
        schema=schema,
        label_map=label_map,
        split_ratios=split_ratios,
        seed=seed,
        source_encoding=source_encoding,
        allowed_roots=allowed_roots,
        exclude=exclude,
    )
    records = ConversionOptions(image, compression or "none", parse_shard_counts(num_shards))
    job = ConversionJob(
        source, storage.absolute(output_dir), manifest, records, max_rejects, overwrite
    )
    return _start(job, parse_runner(runner), project, region, wait, beam_options or {})


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
    if not isinstance(beam_options, Mapping):
        raise UsageError(
            f"beam_options must map names to values, got {beam_options!r:.80}.",
            "For example beam_options={'num_workers': 4}.",
        )
    if runner == DATAFLOW_RUNNER:
        from darkroom.conversion.beam.dataflow import DataflowJob

        return job.submit(DataflowJob(job.output_dir, project, region, beam_options), wait)
    if project or region:
        raise UsageError("project and region go with runner='DataflowRunner'.")
    return job.run(runner, beam_options)
