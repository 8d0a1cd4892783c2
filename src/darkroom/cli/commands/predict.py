"""`darkroom predict`: the predictions of an exported model for images."""

from __future__ import annotations

import argparse
from typing import Any

from darkroom.cli.shared.flags import add_command, add_overwrite
from darkroom.cli.shared.models import add_model, ask_model

QUIET = True


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "predict",
        "Predict the labels of images with an exported model.",
        page="guides/evaluate",
        usage="darkroom predict MODEL IMAGES [IMAGES ...] [options]",
        examples=(
            "darkroom predict runs/first new/a.jpg new/b.png",
            "darkroom predict runs/first photos --output photos/predicted.csv",
        ),
        epilog="Exit codes: 0 done, also if some images cannot be used; 1 no model, or none "
        "can; 4 the output exists already.",
    )
    add_model(parser)
    parser.add_argument("images", metavar="IMAGES", nargs="+", help="Images, folders or patterns")
    parser.add_argument(
        "--output",
        metavar="FILE",
        default=None,
        help="CSV or JSONL file of path and prediction, which darkroom convert takes (default: "
        "they are printed)",
    )
    add_overwrite(parser)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom import storage
    from darkroom.evaluation.predict import check_output, predict
    from darkroom.evaluation.scores.serving import find_model

    if arguments.output is not None:
        check_output(storage.absolute(arguments.output), overwrite=arguments.overwrite)
    find_model(arguments.model)
    return ask_model(arguments, predict)
