"""`darkroom describe`: files for readers of other frameworks."""

from __future__ import annotations

import argparse
from typing import Any

from darkroom.cli.shared.flags import add_command, add_dataset, parse_names
from darkroom.cli.shared.output import print_answer
from darkroom.options.sidecars import READERS


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "describe",
        "Write small files with which readers of other frameworks find the records.",
        page="guides/sidecars",
        examples=("darkroom describe records --for tfds,dali",),
    )
    add_dataset(parser)
    parser.add_argument(
        "--for",
        dest="readers",
        metavar="NAME,...",
        type=parse_names,
        action="extend",
        required=True,
        help=f"Some of {', '.join(READERS)}",
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        default=None,
        help="Folder to write to (default: the dataset)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom.conversion.describe import describe

    return print_answer(arguments, describe)
