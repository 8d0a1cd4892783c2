"""`darkroom demo`: the whole pipeline on drawings."""

from __future__ import annotations

import argparse
from typing import Any

from darkroom.cli.shared.flags import FlagGroups, add_command, read_options
from darkroom.options.validation import ValidationFields


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "demo",
        "Run the whole pipeline on 400 drawings, with planted faults to find and decide about.",
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


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom.training.devices.environment import check_backend

    check_backend()
    from darkroom.pipelines.local.run import run_demo

    return run_demo(**read_options(arguments), as_json=arguments.json)
