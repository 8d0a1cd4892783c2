"""`darkroom verify`: reads a dataset and compares every byte with its commit."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from darkroom.cli.shared.flags import add_command, add_dataset
from darkroom.cli.shared.output import print_failure, print_result
from darkroom.errors import DataError


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "verify",
        "Read a whole dataset and compare every byte with its commit.",
        page="guides/verify",
        epilog="Exit codes: 0 sound, 1 damaged or not a dataset, 3 nothing exists there, or "
        "something cannot be read.",
    )
    add_dataset(parser)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom.errors import StorageError
    from darkroom.proof.findings import FILE_HINTS, UNREADABLE, format_findings
    from darkroom.proof.verify import verify
    from darkroom.runtime import progress

    with progress.use(progress.make_sink(sys.stderr)):
        result = verify(arguments.directory)
    if result.findings and not result.is_damaged:
        lines = format_findings(result.findings)
        raise StorageError(f"Not all could be verified:{lines}", FILE_HINTS[UNREADABLE])
    if arguments.json and result.is_damaged:
        message = f"Found in {result.directory}:{format_findings(result.findings)}"
        return print_failure(result.to_dict(), DataError(message, result.findings[0].hint))
    print_result(result, as_json=arguments.json)
    return DataError.exit_code if result.is_damaged else 0
