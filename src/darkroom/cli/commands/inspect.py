"""`darkroom inspect`: records as a contact sheet and a CSV."""

from __future__ import annotations

import argparse
import json
from typing import Any

from darkroom.cli.shared.flags import add_command, parse_int


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(commands, "inspect", "Show records as a contact sheet and a CSV.")
    parser.add_argument("directory", metavar="DIR", help="A dataset")
    parser.add_argument(
        "--split",
        metavar="NAME",
        default="train",
        help="train, eval or test, or another name of it, as val (default: train)",
    )
    parser.add_argument(
        "-n",
        "--num-records",
        metavar="N",
        type=parse_int,
        default=32,
        help="Number of records to show (default: 32)",
    )
    parser.add_argument(
        "--output-dir",
        metavar="DIR",
        default="inspection",
        help="Folder to write to (default: inspection)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom.audit.contact_sheet import inspect

    found = inspect(
        arguments.directory, arguments.split, arguments.num_records, arguments.output_dir
    )
    if arguments.json:
        print(json.dumps({"sheet": found.sheet, "csv": found.csv, "records": found.records}))
    else:
        print("\n".join(path for path in (found.sheet, found.csv) if path))
    return 0
