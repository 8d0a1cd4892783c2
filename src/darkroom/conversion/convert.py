"""`darkroom.convert`: from a source to a dataset without any pipeline."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from inspect import signature
from typing import Any

from darkroom import storage
from darkroom.conversion.job import ConversionJob
from darkroom.conversion.output.additions import keep_accepted
from darkroom.conversion.result import ConversionResult
from darkroom.dataset.checksums import list_summed_sidecars
from darkroom.dataset.layout import FEATURES_FILE
from darkroom.dataset.pointer import find_data
from darkroom.dataset.schema import Schema
from darkroom.dataset.sources import AnySource
from darkroom.dataset.splits import SplitRatios
from darkroom.errors import UsageError
from darkroom.manifest.label_map import resolve
from darkroom.options.checks import as_python, check_flag, check_known
from darkroom.options.conversion import ConversionOptions
from darkroom.options.fields import merge_options
from darkroom.options.runners import DATAFLOW_RUNNER, LOCAL_RUNNER, parse_runner
from darkroom.runtime import by_name, progress
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
    split_ratios: SplitRatios | str | None = None,
    seed: int | None = None,
    exclude: str | os.PathLike[str] | None = None,
    num_shards: int | Mapping[str, int] | None = None,
    max_rejects: float | None = None,
    overwrite: bool = False,
    runner: str | None = None,
    project: str | None = None,
    region: str | None = None,
    options: ConversionOptions | None = None,
    **more: Any,
) -> ConversionResult:
    """Converts images and their labels into TFRecords.

    Args:
        source: Path of a CSV, JSONL or Parquet file, a pattern of such files, a folder
            `<label>/<file>` or `<split>/<label>/<file>`, or a DataFrame.
        output_dir: Folder for the dataset, local or `gs://`; made when absent.
        columns: Kind of each column by name, as in {"path": "image", "age": "integer"}. The kinds
            are those of `darkroom.dataset.schema.Kind`; None infers them from the names.
        label_map: Labels in the order of their numbers: a file with one label per line, data.yaml,
            a file of COCO, or a label map of TensorFlow (.pbtxt). Or the labels themselves; None
            sorts them as text, and classes of boxes have the order of the source.
        split_ratios: Percentages of train, eval and test for rows that do not name a split.
            80/10/10 if None.
        seed: Seed for everything random: splits, order, weights, augmentation. 0 if None.
        exclude: List of images to leave out: the file of `darkroom duplicates`, or keys or URIs.
            Keys or URIs may be in a text, CSV or Parquet file. Excluded rows count as deduplicated.
        num_shards: Number of shards per split. A number for each split, or numbers by split; None
            or 0 chooses from the size of the data.
        max_rejects: Share of rejected rows that is allowed. With more the conversion fails. None:
            1 %, or the share of an earlier run that wrote the same dataset.
        overwrite: Whether to replace another conversion's files in `output_dir`. Files that
            darkroom cannot prove it wrote are never deleted.
        runner: Beam runner; in this process when None. `DataflowRunner` in any letter case.
        project: Google Cloud project, for Dataflow.
        region: Google Cloud region, for Dataflow.
        options: All other options. Arguments by name replace its values.
        more: Fields of `options` by name, as in update=True.

    Returns:
        Counts, rejects and paths.

    Raises:
        DataError: The source cannot be used, or too many rows were rejected: then index and
            rejects are written, but no `dataset.json`.
        UsageError: An argument is wrong, or the output would replace the source or an image.
        OutputError: Another run holds the output, or it has another dataset or unrelated files.
        OSError: Storage failed.
        KeyboardInterrupt: It was interrupted.
    """
    check_flag("overwrite", overwrite)
    given = {
        "columns": columns,
        "label_map": label_map,
        "split_ratios": split_ratios,
        "seed": seed,
        "exclude": exclude,
        "num_shards": num_shards,
    }
    known = [*signature(convert).parameters, *signature(ConversionOptions).parameters]
    check_known(more, known, "convert has no option")
    made = merge_options(ConversionOptions, options, given | more)
    with ExitStack() as steps:
        # From the first request on: a store may be away then, too.
        steps.enter_context(storage.be_patient(made.store_patience_seconds))
        manifest, folder = resolve(made.manifest), storage.absolute(output_dir)
        job = ConversionJob(
            source,
            folder,
            manifest,
            made.records,
            as_python(max_rejects),
            overwrite,
            updates=made.updates,
            describe=made.describe,
        )
        name = _choose_runner(runner, project, region, made)
        had = FEATURES_FILE in list_summed_sidecars(find_data(folder))
        if made.embed:
            # A step of its own: only who asks for features loads what computes them.
            steps.enter_context(by_name.find("follow_with_features")(job))
        result = _start(
            replace(job, runner=name, beam_options=made.beam_options), project, region, made.wait
        )
        if result.already_complete and result.read_as and made.accept:
            keep_accepted(folder, result.read_as)
        # An earlier run may have written the dataset without them.
        if made.describe and result.job_id is None:
            by_name.find("add_missing")(folder, made.describe)
        if had and not made.embed and FEATURES_FILE not in list_summed_sidecars(find_data(folder)):
            progress.note("The features of the earlier dataset are gone: use embed (--embed).")
    return result


def _choose_runner(
    runner: str | None, project: str | None, region: str | None, options: ConversionOptions
) -> str:
    """Returns Beam's name of the runner.

    Raises:
        UsageError: There is none of this name, or another option does not fit it.
    """
    name = parse_runner(runner) if runner else LOCAL_RUNNER
    if (project or region) and name != DATAFLOW_RUNNER:
        raise UsageError("project and region go with runner='DataflowRunner'.")
    # Here only those of Beam's own local runner have an effect.
    elsewhere = [each for each in options.beam_options if not each.startswith("direct_")]
    if runner is None and elsewhere:
        raise UsageError(
            f"Beam's option {elsewhere[0]!r} is for a runner, and none is given.",
            "Name it: --runner FlinkRunner, for example (runner= in Python).",
        )
    if options.embed and name != LOCAL_RUNNER:
        raise UsageError(
            f"embed (--embed) cannot be used with {name}: features are computed here.",
            "Convert first, then use darkroom embed.",
        )
    return name


def _start(
    job: ConversionJob, project: str | None, region: str | None, wait: bool
) -> ConversionResult:
    """Runs a job in this process, by a runner of Beam, or as a Dataflow job."""
    if job.runner != DATAFLOW_RUNNER:
        return job.run()
    dataflow = by_name.find("DataflowJob")(job.output_dir, project, region, job.beam_options)
    return job.submit(dataflow, wait)
