"""`darkroom embed`: features of the images of a dataset."""

from __future__ import annotations

import argparse
from typing import Any

from darkroom.cli.shared.flags import add_command, add_dataset
from darkroom.cli.shared.output import print_answer
from darkroom.options.training import EFFICIENTNET_LITE

QUIET = True


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "embed",
        "Compute features of the images, by which those that look alike are found.",
        page="guides/duplicates",
        examples=("darkroom embed records", "darkroom embed records --model clip.onnx"),
    )
    add_dataset(parser)
    parser.add_argument(
        "--model",
        metavar="MODEL",
        default=EFFICIENTNET_LITE,
        help="A file of ONNX or Keras, or the folder of a SavedModel, from images to features "
        "(default: %(default)s). A SavedModel is a program: give none of a stranger",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom.conversion.embed import embed

    return print_answer(arguments, embed)
