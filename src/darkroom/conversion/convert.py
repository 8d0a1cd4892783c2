"""`darkroom.convert`: from a source to a dataset without any pipeline."""

from __future__ import annotations

import difflib
import inspect
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
from darkroom.options import conversion
from darkroom.options.conversion import DEFAULT_MAX_REJECTS, ConversionOptions
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
    **options: Any,
) -> ConversionResult:
    """Converts images and their labels into TFRecords.

    Args:
        source: Path of a CSV, JSONL or Parquet file, a pattern of such files, a folder
            `<label>/<file>` or `<split>/<label>/<file>`, or a DataFrame.
        output_dir: Folder for the dataset, local or `gs://`; made when absent.
        schema: Kind of each column by name (see `darkroom.dataset.schema.Kind`); told from
            the names of the columns when None.
        label_map: Labels in the order of their numbers, or the path of a file with one a line;
            the labels sorted as text when None.
        split_ratios: Shares of train, eval and test for rows that declare no split; 80/10/10.
        seed: Seed of the order and of the assignment to splits.
        source_encoding: How a CSV or JSONL file is encoded.
        allowed_roots: Folders below which all images must lie, wherever links lead; an image
            elsewhere is rejected (`outside_root`). None allows every place.
        exclude: Path of a list of images to leave out: what `find_duplicates` wrote, or a text, CSV
            or Parquet file with keys or URIs. Rows left out count as deduplicated.
        checks: `full` decodes every image before it is written, `header` only looks at its start.
        resize_short_side: Short side in pixels to which larger images are reduced.
        encoding: `keep`, or `raw` to store decoded pixels: quicker to read, many times larger.
        jpeg_quality: Quality, 1 to 100, of JPEGs that were reduced; below 95 with 4:2:0.
        compression: None or `gzip`.
        num_shards: Shards of each split, or by split; from the bytes when None or 0.
        max_rejects: Share of refused rows over which the conversion fails.
        overwrite: Whether to replace what another conversion left in `output_dir`. Files that
            darkroom cannot prove it wrote are never deleted.
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
        UsageError: An argument is wrong, or the output is the source or would replace an image.
        OutputError: The output holds other data, another run holds it, or files are under its names
            that darkroom did not write.
        OSError: Storage failed.
    """
    if not isinstance(max_rejects, int | float) or not 0 <= max_rejects <= 1:
        raise UsageError(f"max_rejects is a share from 0 to 1, got {max_rejects!r}.")
    _check_names(options)
    _check_exclude(exclude, output_dir)
    image = ImageOptions(checks, resize_short_side, encoding, jpeg_quality)
    if jpeg_quality != DEFAULT_JPEG_QUALITY and (resize_short_side is None or image.is_raw):
        raise UsageError(
            f"jpeg_quality is {jpeg_quality}, but no image is stored as a reduced JPEG.",
            "Give resize_short_side and no encoding raw, or leave jpeg_quality out.",
        )
    job = ConversionJob(
        source=source,
        output_dir=storage.absolute(output_dir),
        manifest=ManifestOptions.parse(
            schema=schema,
            label_map=label_map,
            split_ratios=split_ratios,
            seed=seed,
            source_encoding=source_encoding,
            allowed_roots=allowed_roots,
            exclude=exclude,
        ),
        conversion=ConversionOptions(
            image=image,
            compression=compression or "none",
            num_shards=conversion.parse_shard_counts(num_shards),
        ),
        max_rejects=max_rejects,
        overwrite=overwrite,
    )
    if parse_runner(runner) == DATAFLOW_RUNNER:
        from darkroom.conversion.beam.dataflow import DataflowJob

        return job.submit(DataflowJob(job.output_dir, project, region, options), wait)
    if project or region:
        raise UsageError("project and region go with runner='DataflowRunner'.")
    return job.run(parse_runner(runner), options)


def _check_names(options: Mapping[str, Any]) -> None:
    """Tells a misspelt argument of ours from an option of Beam's."""
    own = inspect.signature(convert).parameters
    for name in options:
        if near := difflib.get_close_matches(name, own, n=1, cutoff=0.8):
            raise UsageError(f"There is no argument {name!r}.", f"Did you mean {near[0]!r}?")


def _check_exclude(
    given: str | os.PathLike[str] | None, output_dir: str | os.PathLike[str]
) -> None:
    path = "" if given is None else storage.absolute(given)
    if path.startswith(storage.absolute(output_dir) + "/"):
        raise UsageError(
            f"The list {path} lies in the output, where it would be replaced.",
            "Move it elsewhere; `darkroom duplicates DIR --output FILE` writes it there.",
        )
