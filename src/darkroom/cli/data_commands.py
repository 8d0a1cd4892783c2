"""The commands that make, check and show datasets. Each loads what it needs when it runs."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from darkroom.errors import DarkroomError, DataError


def read_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of a pipeline that were given, by name."""
    return {k: v for k, v in vars(arguments).items() if k not in ("command", "json")}


def _print_failure(result: dict[str, Any], error: DarkroomError) -> int:
    """Prints the result of what failed, and the error beside it; returns the exit code."""
    print(json.dumps({**result, "error": error.to_dict()}))
    return error.exit_code


def convert_command(arguments: argparse.Namespace) -> int:
    """Runs `darkroom convert`; returns the exit code."""
    from darkroom.conversion.convert import convert
    from darkroom.conversion.result import TooManyRejectsError, format_conversion
    from darkroom.options.conversion import ConversionOptions
    from darkroom.runtime import progress

    values = {k: v for k, v in vars(arguments).items() if k not in ("command", "json")}
    values["beam_options"] = dict(values.pop("beam_option") or ())
    names = ("source", "output_dir", "max_rejects", "overwrite", "runner", "project", "region")
    named = {name: values.pop(name) for name in names if name in values}
    try:
        with progress.use(progress.make_sink(sys.stderr)):
            result = convert(**named, options=ConversionOptions(**values))
    except TooManyRejectsError as error:
        if not arguments.json:
            raise
        return _print_failure(error.result.to_dict(), error)
    if arguments.json:
        print(json.dumps(result.to_dict()))
    else:
        print(format_conversion(result, bars=sys.stdout.isatty()))
    return 0


def attempts_command(arguments: argparse.Namespace) -> int:
    """Runs `darkroom attempts`; returns the exit code."""
    from darkroom.conversion.leftovers import find_leftovers, format_leftovers

    found = find_leftovers(arguments.directory, remove=arguments.remove)
    print(json.dumps(found.to_dict()) if arguments.json else format_leftovers(found))
    return 0


def verify_command(arguments: argparse.Namespace) -> int:
    """Runs `darkroom verify`; returns the exit code."""
    from darkroom.audit.findings import HINTS, UNREADABLE, format_findings
    from darkroom.audit.verify import format_verification, verify
    from darkroom.errors import StorageError
    from darkroom.runtime import progress

    with progress.use(progress.make_sink(sys.stderr)):
        result = verify(arguments.directory)
    if result.findings and not result.is_damaged:
        lines = format_findings(result.findings)
        raise StorageError(f"Not all could be verified:{lines}", HINTS[UNREADABLE])
    if arguments.json and result.is_damaged:
        message = f"Found in {result.directory}:{format_findings(result.findings)}"
        return _print_failure(result.to_dict(), DataError(message, result.findings[0].hint))
    print(json.dumps(result.to_dict()) if arguments.json else format_verification(result))
    return DataError.exit_code if result.is_damaged else 0


def upgrade_command(arguments: argparse.Namespace) -> int:
    """Runs `darkroom upgrade`; returns the exit code."""
    from darkroom.audit.upgrade import format_upgrade, upgrade
    from darkroom.runtime import progress

    with progress.use(progress.make_sink(sys.stderr)):
        result = upgrade(arguments.directory)
    print(json.dumps(result.to_dict()) if arguments.json else format_upgrade(result))
    return 0


def validate_command(arguments: argparse.Namespace) -> int:
    """Runs `darkroom validate`; returns the exit code."""
    from darkroom.runtime import progress
    from darkroom.validation.dataset_report import format_verdict
    from darkroom.validation.gate import GateError
    from darkroom.validation.validate import format_classes, format_validation, validate

    options = read_options(arguments)
    with progress.use(progress.make_sink(sys.stderr)):
        result = validate(options.pop("directory"), **options)
    if not arguments.json:
        print(format_classes(result, bars=sys.stdout.isatty()))
        print(format_validation(result), flush=True)
    try:
        result.check()
    except GateError as error:
        if arguments.json:
            return _print_failure(result.to_dict(), error)
        # The findings are the result, and printed already.
        raise GateError(format_verdict(result.report), error.hint) from None
    if arguments.json:
        print(json.dumps(result.to_dict()))
    return 0


def duplicates_command(arguments: argparse.Namespace) -> int:
    """Runs `darkroom duplicates`; returns the exit code."""
    from darkroom.audit.duplicates import find_duplicates, format_duplicates
    from darkroom.runtime import progress

    with progress.use(progress.make_sink(sys.stderr)):
        found = find_duplicates(arguments.directory, arguments.output)
    print(json.dumps(found.to_dict()) if arguments.json else format_duplicates(found))
    return 0


def inspect_command(arguments: argparse.Namespace) -> int:
    """Runs `darkroom inspect`; returns the exit code."""
    from darkroom.audit.contact_sheet import inspect

    found = inspect(
        arguments.directory, arguments.split, arguments.num_records, arguments.output_dir
    )
    if arguments.json:
        print(json.dumps({"sheet": found.sheet, "csv": found.csv, "records": found.records}))
    else:
        print("\n".join(path for path in (found.sheet, found.csv) if path))
    return 0
