"""Converts images and their labels into verified TFRecords."""

from __future__ import annotations

from typing import Any

from darkroom import storage
from darkroom.dataset import layout
from darkroom.errors import UsageError
from darkroom.options.checks import check_choice
from darkroom.options.conversion import (
    ConversionFields,
    ConversionOptions,
    EmbedFields,
    RecordOptions,
    UpdateFields,
    UpdateOptions,
)
from darkroom.options.manifest import ManifestOptions
from darkroom.options.pipeline import PipelineFields
from darkroom.options.source import SourceFields
from darkroom.options.validation import ValidationFields, ValidationOptions
from darkroom.steps.places import LOCATION_KEY, NONE_FILE, name_place
from darkroom.steps.step import Artifact, Given, Made, Parameter, Paths, Step, take_options

LAUNCHER, DIRECT = TRANSFERS = ("launcher", "direct")


def run(paths: Paths, options: Given) -> Made:
    """Converts a source, into the artifact or into a folder that the user names."""
    from darkroom.conversion.convert import convert
    from darkroom.dataset.named import name_dataset
    from darkroom.steps.pages import encode_summary

    data, output_dir = options.pop("data"), options.pop("output_dir")
    transfer = options.pop("transfer")
    del options["source_fingerprint"]  # for the cache
    artifact = paths["dataset"]
    place = output_dir or (name_place(artifact) if transfer == DIRECT else artifact)
    limits = {name: options.pop(name) for name in ("max_rejects", "overwrite")}
    asked = ConversionOptions(**options)
    with storage.be_patient(asked.store_patience_seconds):
        previous = asked.base or (output_dir if asked.update else "")
        kept = _keep_previous(previous, paths["previous"])
        result = convert(data, place, **limits, options=asked)
    named, location = name_place(artifact), {}
    if output_dir:
        # The next run may put another dataset there.
        named = name_dataset(result.output_dir, result.fingerprint)
        # Whoever gets the artifact finds the dataset by its metadata.
        location = {LOCATION_KEY: named}
        _copy_files(result.data_dir, artifact, [layout.DATASET_FILE])
    _copy_files(result.data_dir, paths["rejects"], [layout.REJECTS_FILE, layout.REJECTS_LIST_FILE])
    rejects = {"rejected": result.num_rejected, **result.rejected}
    if result.objects:
        rejects["rejected_objects"] = result.objects.rejected
    counts = {"rows": result.rows, "written": result.written, "rejected": result.num_rejected}
    return Made(
        result,
        facts={
            "dataset": location | _describe_dataset(result),
            "previous": kept,
            "rejects": rejects,
        },
        files={"summary": encode_summary(result).encode()},
        results={"dataset_uri": named, "fingerprint": result.fingerprint, **counts},
    )


def _copy_files(folder: str, target: str, names: list[str]) -> None:
    storage.make_folder(target)
    for name in names:
        storage.copy_file(storage.join(folder, name), storage.join(target, name))


def _keep_previous(place: str, target: str) -> dict[str, Any]:
    """Copies what can be compared of a dataset before it is replaced: all but its shards.

    Returns:
        What is known of it.
    """
    from darkroom.dataset.commit import read_dataset
    from darkroom.dataset.named import find_base

    found = find_base(place) if place else None
    if found is None:
        storage.make_folder(target)
        storage.write_bytes(storage.join(target, NONE_FILE), b"There was none before.\n")
        return {}
    dataset = read_dataset(found.examples)
    storage.make_folder(storage.join(target, layout.INDEX_FOLDER))
    _copy_files(found.examples, target, [layout.DATASET_FILE, *dataset.files])
    return {"fingerprint": dataset.fingerprint, "records": dataset.written}


def _describe_dataset(result: Any) -> dict[str, Any]:
    """Returns the metadata of the artifact, by name: fingerprint, counts and bytes."""
    from darkroom.dataset.commit import read_output

    _, commit = read_output(result.output_dir)
    return {
        "fingerprint": result.fingerprint,
        "rows": result.rows,
        "records": result.written,
        "rejected": result.num_rejected,
        "deduplicated": result.deduplicated,
        "labels": len(result.labels),
        "shards": result.shards,
        "bytes": sum(shard.bytes for shard in commit.shards),
        **({"objects": result.objects.written} if result.objects else {}),
        **{f"{split}_records": count for split, count in result.splits.items()},
    }


def _check_transfer(transfer: str = LAUNCHER) -> None:
    check_choice("transfer", transfer, TRANSFERS)


def _check_update(update: bool = False, output_dir: str = "") -> None:
    if update and not output_dir:
        raise UsageError(
            "update replaces the dataset in output_dir, and none is given.",
            "Give output_dir, or take unchanged images of another dataset by base.",
        )


_CONVERSION_CHECKS = (ManifestOptions.parse, RecordOptions, ValidationOptions, _check_transfer)
STEP = Step(
    "convert_images",
    "Converts images and their labels into verified TFRecords.",
    run,
    (
        *take_options(PipelineFields, only=["data"]),
        *take_options(SourceFields, ConversionFields, UpdateFields, EmbedFields),
        *take_options(ValidationFields, only=["max_rejects"]),
        Parameter(
            "output_dir",
            str,
            "Folder for the dataset in a store or a volume, instead of the artifact. The artifact "
            "then has dataset.json alone, and says where the dataset is.",
            "",
        ),
        Parameter("overwrite", bool, "Whether to replace a dataset in output_dir.", default=False),
        Parameter(
            "transfer",
            str,
            "Who writes the dataset into the store: KFP after the task (launcher), or the task "
            "itself with its own credentials (direct), which needs no room on the node. On "
            f"Vertex always the task. One of {', '.join(TRANSFERS)}.",
            LAUNCHER,
        ),
        Parameter(
            "source_fingerprint",
            str,
            "State of the source, which caches compare: they do not look at the files. "
            "`darkroom.manifest.fingerprint` takes it.",
            "",
            runtime=True,
        ),
    ),
    outputs=(
        Artifact("dataset", "Dataset", "The dataset. Its metadata has fingerprint and counts."),
        Artifact(
            "previous",
            "Dataset",
            "What diff_datasets needs of the dataset that was there before an update: no images.",
        ),
        Artifact("rejects", "Dataset", "The rejected rows, as Parquet and as a list to convert."),
        Artifact("summary", "Markdown", "Counts, classes and the first rejects."),
    ),
    results=(
        Parameter(
            "dataset_uri",
            str,
            "Where the dataset is. One in output_dir has its fingerprint at the end, after #.",
        ),
        Parameter("rows", int, "Rows of the source."),
        Parameter("written", int, "Records written."),
        Parameter("rejected", int, "Rows rejected."),
        Parameter("fingerprint", str, "Fingerprint of the dataset."),
    ),
    checks=(*_CONVERSION_CHECKS, UpdateOptions, _check_update),
    partial_checks=_CONVERSION_CHECKS,
)
