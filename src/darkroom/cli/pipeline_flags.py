"""The arguments of the commands that run a pipeline, here or elsewhere."""

from __future__ import annotations

import argparse
from typing import Any

from darkroom.cli.flags import FlagGroups, add_command
from darkroom.options.conversion import ConversionFields
from darkroom.options.pipeline import PipelineFields
from darkroom.options.source import SourceFields
from darkroom.options.targets import TARGETS, EngineFields, KubeflowFields, VertexOptions
from darkroom.options.training import TrainingFields
from darkroom.options.validation import ValidationFields


def add_run(commands: Any) -> None:
    """Adds `darkroom run`."""
    parser = add_command(
        commands,
        "run",
        "Run the whole pipeline on this machine: from a list of images to a pushed model.",
        page="guides/pipeline",
        usage="darkroom run --data PATH --root DIR [options]",
        examples=(
            "darkroom run --data images.csv --root runs/first",
            "darkroom run --config pipeline.toml --epochs 20 --policy leakage=warn",
        ),
    )
    flags = _add_pipeline_flags(parser)
    flags.add(
        "run",
        "--overwrite",
        action="store_true",
        default=False,
        help="Use the root even if it contains other data, which stays as it is",
    )


def add_compile(commands: Any) -> None:
    """Adds `darkroom compile`."""
    parser = add_command(
        commands,
        "compile",
        "Compile the pipeline for Kubeflow Pipelines or Vertex AI Pipelines.",
        page="guides/kubeflow",
        epilog="For Vertex see docs/guides/vertex.md, for a pipeline of your own "
        "docs/guides/own-pipeline.md, and docs/guides/submit.md to submit the file.",
        usage="darkroom compile --target {kubeflow,vertex} -o FILE [--config FILE] "
        "[--pipeline MODULE:FUNCTION] [options]",
        examples=(
            "darkroom compile --target kubeflow --config kubeflow.toml -o pipeline.yaml",
            "darkroom compile --target vertex --config vertex.toml "
            "--pipeline my_package.flowers:make_pipeline -o pipeline.json",
        ),
    )
    flags = _add_pipeline_flags(parser)
    _add_target_flags(flags)
    flags.add(
        "run",
        "--pipeline",
        metavar="MODULE:FUNCTION",
        help="Function that returns a TFX pipeline of your own, as package.module:function; only "
        "options of the cluster, --root and --no-cache go with it (default: darkroom's pipeline)",
    )
    flags.add(
        "run",
        "-o",
        "--output",
        metavar="FILE",
        required=True,
        help="File to write, or to replace: .yaml for kubeflow, .json for vertex",
    )


def add_submit(commands: Any) -> None:
    """Adds `darkroom submit`."""
    parser = add_command(
        commands,
        "submit",
        "Submit the pipeline to Kubeflow Pipelines or Vertex AI Pipelines.",
        page="guides/submit",
        usage="darkroom submit --target {kubeflow,vertex} [--pipeline FILE] [options]",
        examples=(
            "darkroom submit --target kubeflow --host https://kubeflow.example.com/pipeline "
            "--pipeline pipeline.yaml --epochs 20",
            "darkroom submit --target vertex --project my-project --region europe-west4 "
            "--config vertex.toml --wait",
        ),
        epilog="Exit codes: 0 submitted, and with --wait succeeded; 1 the run that was waited for "
        "did not succeed, or the source cannot be used; 2 wrong usage, or the service refuses the "
        "run; 3 the service or a file cannot be reached or read; 70 a defect; 128+n ended by "
        "signal n.",
    )
    flags = _add_pipeline_flags(parser)
    _add_target_flags(flags)
    flags.add(
        "run",
        "--pipeline",
        metavar="FILE",
        help="File that compile wrote; other options are then its run-time parameters "
        "(default: the pipeline is compiled from the options)",
    )
    flags.add(
        "run",
        "--wait",
        action="store_true",
        default=False,
        help="Wait for the end of the run; exit with 1 if it fails",
    )
    flags.add_options(KubeflowFields, VertexOptions)
    flags.add(
        "cluster",
        "--shared-paths",
        action="store_true",
        help="Local paths lead to the same files here and in the containers, so look at them",
    )


def add_artifacts(commands: Any) -> None:
    """Adds `darkroom artifacts`."""
    parser = add_command(
        commands,
        "artifacts",
        "List, and delete, what old runs on Kubeflow left in a store and nothing needs any more.",
        page="guides/submit",
        examples=(
            "darkroom artifacts minio://mlpipeline/darkroom --keep-days 60",
            "darkroom artifacts s3://bucket/pipelines --name photos "
            "--keep-run 6f0c2d7e-93b1-4c58-a0e4-5d1f8b27c936 --remove",
        ),
        epilog="Kept are runs of the last days, the newest model of each task, and what they read.",
    )
    parser.add_argument("root", metavar="ROOT", help="Pipeline root: minio://, s3:// or gs://")
    parser.add_argument(
        "--name",
        metavar="NAME",
        default="darkroom",
        help="Name of the pipeline (default: darkroom)",
    )
    parser.add_argument(
        "--keep-days",
        metavar="N",
        type=int,
        default=30,
        help="Keep runs with a task that started in the last N days (default: 30)",
    )
    parser.add_argument(
        "--keep-run",
        metavar="ID",
        action="append",
        default=[],
        help="Keep this run, too: its whole id, which ends the URL of its page; repeat for more",
    )
    parser.add_argument(
        "--remove",
        action="store_true",
        default=False,
        help="Delete what is listed; without it nothing is deleted",
    )


def add_demo(commands: Any) -> None:
    """Adds `darkroom demo`."""
    parser = add_command(
        commands,
        "demo",
        "Run the whole pipeline on 1,797 real digits, with a few planted faults.",
        page="getting-started",
    )
    parser.add_argument(
        "--root",
        metavar="DIR",
        default="darkroom-demo",
        help="Folder for everything (default: darkroom-demo)",
    )
    parser.add_argument(
        "--without-tfx",
        action="store_true",
        default=False,
        help="Do the steps on the core and TensorFlow alone, as where TFX is not installed",
    )
    FlagGroups(parser).add_options(ValidationFields, names=("policies",))


def _add_pipeline_flags(parser: argparse.ArgumentParser) -> FlagGroups:
    """Adds what a pipeline is told, wherever it runs: options of `PipelineConfig`."""
    flags = FlagGroups(parser)
    flags.add(
        "run",
        "--config",
        metavar="FILE",
        help="TOML file with options of the pipeline (docs/reference/options.md); flags win",
    )
    flags.add_options(
        PipelineFields,
        SourceFields,
        ConversionFields,
        EngineFields,
        ValidationFields,
        TrainingFields,
    )
    return flags


def _add_target_flags(flags: FlagGroups) -> None:
    flags.add(
        "run", "--target", choices=TARGETS, required=True, help="Service that runs the pipeline"
    )
