"""`darkroom duplicates`: images that a dataset contains twice."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from darkroom.cli.shared.flags import add_command, add_dataset, add_overwrite
from darkroom.cli.shared.output import print_result


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "duplicates",
        "List images that a dataset contains twice, by bytes and by pixels.",
        page="guides/duplicates",
    )
    add_dataset(parser)
    parser.add_argument(
        "--output",
        metavar="FILE",
        default="duplicates.parquet",
        help="Parquet file for the list (default: duplicates.parquet)",
    )
    parser.add_argument(
        "--near",
        action="store_true",
        default=False,
        help="List images that look alike, too; all of them are kept",
    )
    add_overwrite(parser)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom.audit.duplicates import find_duplicates
    from darkroom.runtime import progress

    with progress.use(progress.make_sink(sys.stderr)):
        found = find_duplicates(
            arguments.directory,
            arguments.output,
            overwrite=arguments.overwrite,
            near=arguments.near,
        )
    print_result(found, as_json=arguments.json)
    return 0
