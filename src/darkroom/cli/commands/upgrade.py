"""`darkroom upgrade`: brings a dataset to the newest format."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from darkroom.cli.shared.flags import add_command, add_dataset
from darkroom.cli.shared.output import print_result


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "upgrade",
        "Bring a dataset to the newest format; its records stay as they are.",
        epilog="The dataset is verified first. Exit codes: 0 done, 1 damaged or not a dataset.",
    )
    add_dataset(parser)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom.audit.upgrade import format_upgrade, upgrade
    from darkroom.runtime import progress

    with progress.use(progress.make_sink(sys.stderr)):
        result = upgrade(arguments.directory)
    print_result(result, format_upgrade, as_json=arguments.json)
    return 0
