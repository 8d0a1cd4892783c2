"""`darkroom attempts`: conversions that left files in an output, or still run there."""

from __future__ import annotations

import argparse
from typing import Any

from darkroom.cli.shared.flags import add_command
from darkroom.cli.shared.output import print_result


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "attempts",
        "List conversions that left files in an output, or still run there.",
        page="guides/convert-on-a-cluster",
        examples=("darkroom attempts s3://bucket/records --remove",),
        epilog="An attempt is running, ended, superseded (another run has written the dataset "
        "since), or unknown: its job may still run where it cannot be seen from here.",
    )
    parser.add_argument("directory", metavar="DIR", help="Output of a conversion")
    parser.add_argument(
        "--remove",
        action="store_true",
        default=False,
        help="Delete the files of attempts that have ended or are superseded",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom.conversion.output.leftovers import find_leftovers

    found = find_leftovers(arguments.directory, remove=arguments.remove)
    print_result(found, as_json=arguments.json)
    return 0
