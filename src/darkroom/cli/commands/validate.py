"""`darkroom validate`: checks images and labels by the index, and writes the report."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from darkroom.cli.shared.flags import FlagGroups, add_command, read_options
from darkroom.cli.shared.output import end_with_verdict
from darkroom.options.validation import ValidationFields

QUIET = True


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "validate",
        "Check the images and labels of a dataset by its index, and write the report.",
        usage="darkroom validate RECORDS [options]",
        examples=(
            "darkroom validate records --report report",
            "darkroom validate records --policy leakage=warn --required-split train",
        ),
        epilog="Exit codes: 0 passed, also with warnings; 1 stopped by a finding, or not a "
        "dataset; 4 the folder of the report has other files.",
    )
    flags = FlagGroups(parser)
    flags.add("data", "directory", metavar="RECORDS", help="A dataset; gs:// and s3:// work")
    flags.add(
        "data",
        "--report",
        dest="report_dir",
        metavar="DIR",
        help="Folder for report.html, report.md and report.json (default: no report is written)",
    )
    flags.add_options(ValidationFields)
    flags.add(
        "checks",
        "--schema",
        metavar="FILE",
        help="Schema of TFDV, schema.pbtxt, that the data must match; needs the extra tfx "
        "(default: anomalies are not looked for)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom.runtime import progress
    from darkroom.validation.validate import validate

    options = read_options(arguments)
    with progress.use(progress.make_sink(sys.stderr)):
        result = validate(options.pop("directory"), **options)

    return end_with_verdict(result, as_json=arguments.json)
