"""`darkroom run`: the whole pipeline on this machine."""

from __future__ import annotations

import argparse
from typing import Any

from darkroom.cli.shared.flags import PIPELINE_CLASSES, FlagGroups, add_command, read_options


def add(commands: Any) -> None:
    """Adds the command."""
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
    flags = FlagGroups(parser)
    flags.add(
        "run",
        "--config",
        metavar="FILE",
        help="TOML file with options of the pipeline (docs/reference/options.md); flags win",
    )
    flags.add_options(*PIPELINE_CLASSES)
    flags.add(
        "run",
        "--overwrite",
        action="store_true",
        default=False,
        help="Use the root even if it contains unrelated files, which stay as they are",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom.training.devices.environment import check_backend

    check_backend()  # before TFX is loaded
    from darkroom.pipelines.local.run import run_pipeline

    values = read_options(arguments)
    overwrite = values.pop("overwrite")
    return run_pipeline(values, as_json=arguments.json, overwrite=overwrite)
