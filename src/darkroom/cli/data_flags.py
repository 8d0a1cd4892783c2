"""The arguments of the commands that make a dataset and look at one."""

from __future__ import annotations

from typing import Any

from darkroom.cli.flags import FlagGroups, add_command, add_overwrite, parse_int, parse_pair
from darkroom.options.conversion import ConversionFields
from darkroom.options.source import DATA_HELP, SourceFields
from darkroom.options.targets import EngineFields
from darkroom.options.validation import ValidationFields


def add_convert(commands: Any) -> None:
    """Adds `darkroom convert`."""
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
    flags.add_options(SourceFields, ConversionFields)
    flags.add_options(ValidationFields, names=("max_rejects",))
    flags.add_options(EngineFields)
    flags.add("cluster", "--runner", metavar="NAME", help="Beam runner (default: in this process)")
    flags.add("cluster", "--project", metavar="NAME", help="Google Cloud project, for Dataflow")
    flags.add("cluster", "--region", metavar="NAME", help="Google Cloud region, for Dataflow")
    flags.add(
        "cluster",
        "--no-wait",
        dest="wait",
        action="store_false",
        help="Do not wait for a Dataflow job",
    )
    flags.add(
        "cluster",
        "--beam-option",
        metavar="NAME=VALUE",
        type=parse_pair,
        action="append",
        default=None,
        help="Another option of Beam; may be repeated",
    )


def _add_dataset(parser: Any) -> None:
    parser.add_argument("directory", metavar="DIR", help="A dataset; gs:// and s3:// work")


def add_verify(commands: Any) -> None:
    """Adds `darkroom verify`."""
    parser = add_command(
        commands,
        "verify",
        "Read a whole dataset and compare every byte with its commit.",
        page="guides/verify",
        epilog="Exit codes: 0 sound, 1 damaged or not a dataset, 3 nothing is there, or "
        "something cannot be read.",
    )
    _add_dataset(parser)


def add_attempts(commands: Any) -> None:
    """Adds `darkroom attempts`."""
    parser = add_command(
        commands,
        "attempts",
        "List conversions that left files in an output, or still run there.",
        page="guides/convert-on-a-cluster",
        examples=("darkroom attempts s3://bucket/records --remove",),
        epilog="An attempt is running, ended, superseded (another run has written the dataset "
        "since), or unknown: its job may go on where it cannot be seen from here.",
    )
    parser.add_argument("directory", metavar="DIR", help="Output of a conversion")
    parser.add_argument(
        "--remove",
        action="store_true",
        default=False,
        help="Delete the files of attempts that have ended or are superseded",
    )


def add_validate(commands: Any) -> None:
    """Adds `darkroom validate`."""
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
        "dataset; 2 wrong usage; 3 something cannot be read or written; 4 the folder of the report "
        "has other files.",
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


def add_duplicates(commands: Any) -> None:
    """Adds `darkroom duplicates`."""
    parser = add_command(
        commands,
        "duplicates",
        "List images that a dataset contains twice, by bytes and by pixels.",
        page="guides/duplicates",
    )
    _add_dataset(parser)
    parser.add_argument(
        "--output",
        metavar="FILE",
        default="duplicates.parquet",
        help="Parquet file for the list (default: duplicates.parquet)",
    )
    add_overwrite(parser)


def add_inspect(commands: Any) -> None:
    """Adds `darkroom inspect`."""
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
