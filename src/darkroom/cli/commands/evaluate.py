"""`darkroom evaluate`: how good an exported model is on a held-out split."""

from __future__ import annotations

import argparse
from typing import Any

from darkroom.cli.shared.flags import add_command
from darkroom.cli.shared.models import add_model, ask_model
from darkroom.cli.shared.steps import add_results

QUIET = True


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "evaluate",
        "Evaluate an exported model, or the results of a detector, on a held-out split.",
        page="guides/evaluate",
        usage="darkroom evaluate MODEL RECORDS [RECORDS ...] [options]\n"
        "       darkroom evaluate --results FILE RECORDS [options]",
        examples=(
            "darkroom evaluate runs/first records",
            "darkroom evaluate runs/first/model new-photos --split all --report report",
            "darkroom evaluate --results results.json --annotations val.json records --split eval",
        ),
        epilog="Exit codes: 0 done; 1 no such model, split or label, results of other images, or "
        "a damaged image; 4 the folder of the report has other files.",
    )
    add_model(parser)
    parser.add_argument(
        "records",
        metavar="RECORDS",
        nargs="+",
        help="Datasets, or patterns of datasets; or one list or folder of images",
    )
    parser.add_argument(
        "--split",
        metavar="NAME",
        default="test",
        help="train, eval or test, or another name of it, as val; all takes all (default: test)",
    )
    parser.add_argument(
        "--report",
        dest="report_dir",
        metavar="DIR",
        default=None,
        help="Folder for model.html, model.md and evaluation.json (default: nothing is written)",
    )
    add_results(parser, action=_Results)


class _Results(argparse.Action):
    """Takes results instead of a model: then the first argument may name the records."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, values)
        for each in parser._actions:
            each.required = each.required and each.dest != "records"


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom.evaluation.evaluate import check_split, evaluate, find_given

    check_split(arguments.split)
    results = getattr(arguments, "results", None)
    if results is not None and not hasattr(arguments, "records"):
        arguments.model, arguments.records = None, [arguments.model]
    # Before TensorFlow is loaded.
    find_given(arguments.model, results, getattr(arguments, "annotations", None))
    return ask_model(arguments, evaluate)
