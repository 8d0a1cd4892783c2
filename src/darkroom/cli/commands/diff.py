"""`darkroom diff`: what changed between two datasets."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from darkroom.cli.shared.flags import FlagGroups, add_command, read_options
from darkroom.cli.shared.output import end_with_verdict
from darkroom.options.diff import DiffFields

QUIET = True


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "diff",
        "Say what changed between two datasets, by their indexes.",
        usage="darkroom diff OLD NEW [options]",
        examples=(
            "darkroom diff records-1 records-2",
            "darkroom diff records-1 records-2 --report changes --policy test_frozen=warn",
        ),
        epilog="Exit codes: 0 nothing that should not change; 1 stopped by a finding, or not a "
        "dataset; 4 the folder of the report has other files.",
    )
    flags = FlagGroups(parser)
    flags.add("data", "old", metavar="OLD", help="The older dataset")
    flags.add("data", "new", metavar="NEW", help="The newer dataset")
    flags.add(
        "data",
        "--report",
        dest="report_dir",
        metavar="DIR",
        help="Folder for report.html, report.md and report.json (default: no report is written)",
    )
    flags.add_options(DiffFields)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom.runtime import progress
    from darkroom.validation.diff import diff

    options = read_options(arguments)
    with progress.use(progress.make_sink(sys.stderr)):
        result = diff(options.pop("old"), options.pop("new"), **options)
    return end_with_verdict(result, as_json=arguments.json)
