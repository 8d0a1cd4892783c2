"""`darkroom convert`: images and labels into TFRecords."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from darkroom.cli.shared.flags import FlagGroups, add_command, read_options
from darkroom.cli.shared.output import print_failure, print_result
from darkroom.options.conversion import ConversionFields, ConversionOptions, UpdateFields
from darkroom.options.source import DATA_HELP, SourceFields
from darkroom.options.validation import ValidationFields

QUIET = True


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "convert",
        "Convert images and labels into TFRecords.",
        page="guides/convert",
        usage="darkroom convert SOURCE --output-dir DIR [options]",
        examples=(
            "darkroom convert images.csv --output-dir records",
            "darkroom convert photos/ --output-dir gs://bucket/records --resize-short-side 256",
        ),
    )
    flags = FlagGroups(parser)
    flags.add("data", "source", metavar="SOURCE", help=DATA_HELP)
    flags.add(
        "data",
        "--output-dir",
        metavar="DIR",
        required=True,
        help="Folder for the dataset; gs:// and s3:// work",
    )
    flags.add(
        "data",
        "--overwrite",
        action="store_true",
        help="Replace another dataset; files that darkroom did not write are never deleted",
    )
    flags.add_options(SourceFields, ConversionFields, UpdateFields)
    flags.add_options(ConversionOptions, names=("describe", "embed"))
    flags.add_options(ValidationFields, names=("max_rejects",))
    flags.add_runners()
    flags.add(
        "cluster",
        "--no-wait",
        dest="wait",
        action="store_false",
        help="Do not wait for a Dataflow job",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom.conversion.convert import convert
    from darkroom.conversion.result import TooManyRejectsError
    from darkroom.runtime import progress
    from darkroom.storage.parquet import leave_pandas_out

    values = read_options(arguments)
    names = ("source", "output_dir", "max_rejects", "overwrite", "runner", "project", "region")
    named = {name: values.pop(name) for name in names if name in values}
    # Beam and networks may use it.
    if arguments.is_process and "runner" not in named and not {"beam_options", "embed"} & {*values}:
        leave_pandas_out()
    try:
        with progress.use(progress.make_sink(sys.stderr)):
            result = convert(**named, options=ConversionOptions(**values))
    except TooManyRejectsError as error:
        if not arguments.json:
            raise
        return print_failure(error.result.to_dict(), error)
    print_result(result, as_json=arguments.json)
    return 0
