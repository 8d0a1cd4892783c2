"""`darkroom submit`: a run of the pipeline on Kubeflow Pipelines or Vertex AI Pipelines."""

from __future__ import annotations

import argparse
from typing import Any

from darkroom.cli.shared.flags import add_command, read_options
from darkroom.cli.shared.settings import add_target_flags
from darkroom.options.targets import KubeflowFields, VertexOptions

QUIET = True


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "submit",
        "Submit the pipeline to Kubeflow Pipelines or Vertex AI Pipelines.",
        page="guides/submit",
        usage="darkroom submit --target {kubeflow,vertex} [--pipeline FILE] [options]",
        examples=(
            "darkroom submit --target kubeflow --host https://kubeflow.example.com/pipeline "
            "--pipeline pipeline.yaml --set epochs=20",
            "darkroom submit --target vertex --project my-project --region europe-west4 "
            "--config vertex.toml --wait",
        ),
        epilog="Exit codes: 0 submitted, and with --wait succeeded; 1 the run that was waited for "
        "did not succeed, or the source cannot be used; 2 wrong usage, or the service refuses the "
        "run; 3 the service or a file cannot be reached or read.",
    )
    flags = add_target_flags(parser)
    flags.add(
        "run",
        "--pipeline",
        metavar="FILE",
        help="File that compile wrote; the options are then its run-time parameters "
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


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom.pipelines.submission.submit import submit_pipeline

    return submit_pipeline(read_options(arguments), as_json=arguments.json)
