"""`darkroom inspect`: records as a contact sheet and a CSV."""

from __future__ import annotations

import argparse
import json
from typing import Any

from darkroom.cli.shared.flags import add_command, add_overwrite, parse_int, parse_number
from darkroom.cli.shared.output import print_result
from darkroom.cli.shared.steps import add_results
from darkroom.errors import UsageError


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
        default=None,
        help="Folder to write to (default: inspection); with --format also the images, upright",
    )
    parser.add_argument(
        "--list",
        metavar="FILE",
        default=None,
        help="Write all rows of the dataset instead, rejected images too, as a list to convert; "
        "with --format, its objects into a folder of this name",
    )
    parser.add_argument(
        "--format",
        choices=("coco", "voc", "yolo"),
        default=None,
        help="Form of the list: COCO, Pascal VOC or YOLO, for other tools (default: JSON Lines)",
    )
    add_results(parser)
    parser.add_argument(
        "--min-score",
        metavar="SCORE",
        type=parse_number,
        default=0.3,
        help="The least score of results that are in the list, in place of objects (default: 0.3)",
    )
    add_overwrite(parser)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    given = {name for name, value in vars(arguments).items() if value is not None}
    for name, other in (("annotations", "results"), ("results", "format"), ("format", "list")):
        if name in given and other not in given:
            raise UsageError(f"inspect takes --{name} with --{other} alone.")
    if arguments.list is not None:
        _write_list(arguments)
        return 0
    from darkroom.audit.contact_sheet import inspect

    folder = arguments.output_dir or "inspection"
    found = inspect(arguments.directory, arguments.split, arguments.num_records, folder)
    print_result(found, as_json=arguments.json)
    return 0


def _write_list(arguments: argparse.Namespace) -> None:
    if arguments.format is not None:
        from darkroom.conversion.annotation_list import write_annotations

        found = write_annotations(
            arguments.directory,
            arguments.list,
            arguments.format,
            arguments.output_dir,
            results=getattr(arguments, "results", None),
            annotations=getattr(arguments, "annotations", None),
            min_score=arguments.min_score,
        )
        print_result(found, as_json=arguments.json)
        return
    from darkroom.conversion.planned_list import list_planned_rows

    rows = list_planned_rows(arguments.directory, arguments.list, overwrite=arguments.overwrite)
    print(json.dumps({"list": arguments.list, "rows": rows}) if arguments.json else arguments.list)
