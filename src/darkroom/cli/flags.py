"""Arguments that several commands share; imports nothing that takes time."""

from __future__ import annotations

import argparse

from darkroom.options.targets import TARGETS


def add_pipeline_options(parser: argparse.ArgumentParser) -> None:
    """Adds what a pipeline is told, wherever it runs: fields of `PipelineConfig`."""
    parser.add_argument("--config", metavar="FILE", help="TOML file with these options; flags win")
    parser.add_argument("--data", help="CSV, JSONL or Parquet file, or folder of images")
    parser.add_argument("--root", metavar="DIR", help="folder for metadata, artifacts and models")
    parser.add_argument("--name", help="name of the pipeline (default: darkroom)")
    add_source_options(parser)
    parser.add_argument("--label-map", metavar="FILE", help="labels in order, one a line")
    add_record_options(parser)
    parser.add_argument("--schema", metavar="FILE", help="TFDV schema to check against (.pbtxt)")
    parser.add_argument(
        "--policy",
        metavar="CHECK=POLICY",
        type=parse_pair,
        action="append",
        help="fail, warn or off for a check, as in leakage=warn; may be repeated",
    )
    parser.add_argument(
        "--min-class-images", type=int, help="training images a class needs (default: 10)"
    )
    add_training_options(parser, cache="record_cache")
    parser.add_argument(
        "--min-accuracy", type=float, help="on the eval split, to be pushed (default: 0)"
    )
    parser.add_argument("--push-to", metavar="DIR", help="folder for models (default: ROOT/pushed)")
    parser.add_argument(
        "--beam-arg", dest="beam_args", action="append", help="replaces Beam's arguments"
    )
    parser.add_argument(
        "--no-cache", dest="cache", action="store_false", help="reuse nothing of earlier runs"
    )


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """Adds what a pipeline is compiled for."""
    parser.add_argument("--target", choices=TARGETS, required=True)
    parser.add_argument("--image", help="container image of the tasks, best by its digest")


def add_submission_options(parser: argparse.ArgumentParser) -> None:
    """Adds where a pipeline is submitted to, and as what."""
    parser.add_argument(
        "--pipeline",
        metavar="FILE",
        help="what compile wrote: other options then are its run-time parameters; "
        "without it the pipeline is compiled from the options",
    )
    parser.add_argument("--host", metavar="URL", help="of Kubeflow Pipelines")
    parser.add_argument("--namespace", help="the user's, where Kubeflow has several")
    parser.add_argument("--experiment", metavar="NAME", help="Kubeflow's (default: Default)")
    parser.add_argument(
        "--ca-file", metavar="FILE", help="PEM of who signed Kubeflow's certificate"
    )
    parser.add_argument("--project", help="Google Cloud project, for Vertex")
    parser.add_argument("--region", help="Google Cloud region, for Vertex")
    parser.add_argument("--network", metavar="NAME", help="full name of a network, for Vertex")
    parser.add_argument(
        "--label",
        metavar="NAME=VALUE",
        dest="labels",
        type=parse_pair,
        action="append",
        help="of the run, for Vertex; may be repeated",
    )
    parser.add_argument("--run-name", metavar="NAME", help="default: from pipeline and time")
    parser.add_argument("--service-account", metavar="NAME", help="as which the tasks run")
    parser.add_argument(
        "--shared-paths",
        action="store_true",
        help="local paths lead to the same files here and in the containers: look at them",
    )
    parser.add_argument(
        "--wait", action="store_true", default=False, help="until the run's end; 1 if it fails"
    )


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Adds how a source is read."""
    parser.add_argument(
        "--columns", metavar="JSON", help='kind of each column: {"path": "image", "age": "integer"}'
    )
    parser.add_argument("--source-encoding", metavar="NAME", help="of a CSV or JSONL (utf-8)")
    parser.add_argument(
        "--allowed-root",
        metavar="DIR",
        dest="allowed_roots",
        action="append",
        help="reject images outside this folder; may be repeated",
    )
    parser.add_argument(
        "--exclude", metavar="FILE", help="leave out these images: what duplicates wrote, or a list"
    )
    parser.add_argument("--split-ratios", help="train/eval/test of unassigned rows (80/10/10)")
    parser.add_argument("--seed", type=int, help="seed of order and splits (default: 0)")


def add_record_options(parser: argparse.ArgumentParser) -> None:
    """Adds how images become records."""
    parser.add_argument(
        "--checks", choices=("full", "header"), help="decode every image, or look at its start"
    )
    parser.add_argument(
        "--resize-short-side", metavar="PIXELS", type=int, help="reduce larger images to this"
    )
    parser.add_argument("--encoding", choices=("keep", "raw"), help="store files (keep) or pixels")
    parser.add_argument(
        "--jpeg-quality", metavar="1-100", type=int, help="of JPEGs that were reduced (default: 90)"
    )
    parser.add_argument("--compression", choices=("none", "gzip"), help="of the records")
    parser.add_argument("--num-shards", type=int, help="of each split; 0: from the bytes (default)")
    parser.add_argument(
        "--max-rejects", metavar="FRACTION", type=float, help="refused rows allowed (default: 0.01)"
    )


def add_training_options(parser: argparse.ArgumentParser, *, cache: str) -> None:
    """Adds how a model is trained.

    Args:
        parser: A command's.
        cache: Name under which the place of cached records is kept.
    """
    parser.add_argument(
        "--model", help="small_cnn, keras.applications:NAME or package.module:function"
    )
    parser.add_argument("--weights", metavar="FILE", help="weights to start from")
    parser.add_argument(
        "--image-size", metavar="HEIGHTxWIDTH", type=parse_size, help="default: 128x128"
    )
    parser.add_argument("--resize", help="stretch (default), or center_crop: the middle of images")
    parser.add_argument("--batch-size", type=int, help="images in a batch (default: 32)")
    parser.add_argument("--epochs", type=int, help="passes over the training data (default: 10)")
    parser.add_argument("--learning-rate", type=float, help="default: 0.001")
    parser.add_argument(
        "--augment",
        metavar="PARTS",
        help="none, or crop, flip, color, rotate, cutout, mixup, joined by commas, "
        "strengths after =, as crop,flip,color=0.4 (default: flip)",
    )
    parser.add_argument(
        "--early-stopping-patience", type=int, help="epochs without progress; 0 for never (default)"
    )
    parser.add_argument(
        "--verify", action="store_true", help="check the hashes of all records before training"
    )
    parser.add_argument(
        "--profile-input",
        action="store_true",
        help="measure each stage of the input at the end, for input.md beside the history",
    )
    parser.add_argument(
        "--checkpoint-steps",
        type=int,
        help="batches between checkpoints; 0: epochs (default: 1000)",
    )
    parser.add_argument("--strategy", help="auto (default), one, mirrored or multi_worker")
    parser.add_argument("--loop", help="fit (default) or custom")
    parser.add_argument("--precision", help="float32 (default), mixed_float16 or mixed_bfloat16")
    parser.add_argument("--steps-per-execution", type=int, help="batches a call (default: 1)")
    parser.add_argument(
        "--record-cache",
        metavar="WHERE",
        dest=cache,
        help="none (default), memory, or a folder on local disk: where records are kept "
        "after the first epoch",
    )
    parser.add_argument(
        "--ram-budget-bytes", type=int, help="what reading a split may hold (default: 1 GiB)"
    )


def parse_pair(text: str) -> tuple[str, str]:
    """Parses NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    return name, value


def parse_size(text: str) -> tuple[int, int]:
    """Parses HEIGHTxWIDTH, or one number for both."""
    parts = text.lower().split("x")
    if len(parts) not in (1, 2) or not all(part.isdigit() for part in parts):
        raise argparse.ArgumentTypeError(f"expected HEIGHTxWIDTH like 128x128, got {text!r}")
    return int(parts[0]), int(parts[-1])
