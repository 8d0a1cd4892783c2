"""`darkroom export`: a trained model for TFLite or ONNX."""

from __future__ import annotations

import argparse
from typing import Any

from darkroom.cli.shared.flags import add_command
from darkroom.cli.shared.models import add_model, ask_model
from darkroom.options.training import EXPORT_FORMATS


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "export",
        "Write a trained model for TFLite or ONNX, and compare its answers.",
        page="guides/exporting",
        usage="darkroom export MODEL RECORDS [RECORDS ...] --output-dir DIR [options]",
        examples=(
            "darkroom export runs/first records --output-dir exports",
            "darkroom export runs/first records --output-dir exports --format tflite onnx",
        ),
    )
    add_model(parser)
    parser.add_argument(
        "records",
        metavar="RECORDS",
        nargs="+",
        help="Datasets, or one list or folder of images: answers are compared on the eval split",
    )
    parser.add_argument(
        "--output-dir", metavar="DIR", required=True, help="Folder for the files and the label map"
    )
    parser.add_argument(
        "--format",
        dest="formats",
        metavar="NAME",
        nargs="+",
        choices=EXPORT_FORMATS,
        default=EXPORT_FORMATS[:3],
        help=f"Formats: {', '.join(EXPORT_FORMATS)} (default: all of TFLite)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    from darkroom.evaluation.scores.serving import find_model
    from darkroom.training.formats.portable import export

    find_model(arguments.model)
    return ask_model(arguments, export)
