"""`darkroom compile`: the pipeline for Kubeflow Pipelines or Vertex AI Pipelines."""

from __future__ import annotations

import argparse
from typing import Any

from darkroom.cli.shared.flags import add_command, read_options
from darkroom.cli.shared.settings import add_target_flags

QUIET = True


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "compile",
        "Compile the pipeline for Kubeflow Pipelines or Vertex AI Pipelines.",
        page="guides/kubeflow",
        epilog="For Vertex see docs/guides/vertex.md, for your own pipeline "
        "docs/guides/own-pipeline.md, and docs/guides/submit.md to submit the file.",
        usage="darkroom compile --target {kubeflow,vertex} -o FILE [--config FILE] "
        "[--set NAME=VALUE ...] [--pipeline MODULE:FUNCTION]",
        examples=(
            "darkroom compile --target kubeflow --config kubeflow.toml -o pipeline.yaml",
            "darkroom compile --target vertex --config vertex.toml "
            "--pipeline my_package.flowers:make_pipeline -o pipeline.json",
        ),
    )
    flags = add_target_flags(parser)
    flags.add(
        "run",
        "--pipeline",
        metavar="MODULE:FUNCTION",
        help="Function that returns your own TFX pipeline, as package.module:function; only "
        "options of the cluster, root and cache go with it (default: darkroom's pipeline)",
    )
    flags.add(
        "run",
        "-o",
        "--output",
        metavar="FILE",
        required=True,
        help="File to write, or to replace: .yaml for kubeflow, .json for vertex",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom.pipelines.compilation.files import run_compile

    return run_compile(read_options(arguments), as_json=arguments.json)
