"""The commands that ask an exported model. Each loads what it needs when it runs."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from darkroom.cli.data_commands import read_options


def start_tensorflow(module: str = "tensorflow") -> None:
    """Imports TensorFlow without what it says of this machine; an error still raises.

    No level of logging keeps later versions from it.

    Args:
        module: What is imported: TensorFlow itself, or a module that needs more of it.
    """
    from importlib import import_module

    from darkroom.runtime import streams

    with streams.redirect_output(os.devnull):
        import_module(module)


def evaluate_command(arguments: argparse.Namespace) -> int:
    """Runs `darkroom evaluate`; returns the exit code."""
    from darkroom.evaluation.evaluate import check_split, evaluate
    from darkroom.evaluation.result import format_evaluation
    from darkroom.evaluation.serving import find_model

    check_split(arguments.split)
    find_model(arguments.model)  # before TensorFlow is loaded
    return _ask_model(arguments, evaluate, format_evaluation)


def predict_command(arguments: argparse.Namespace) -> int:
    """Runs `darkroom predict`; returns the exit code."""
    from darkroom import storage
    from darkroom.evaluation.predict import check_output, format_predictions, predict
    from darkroom.evaluation.serving import find_model

    if arguments.output is not None:
        check_output(storage.absolute(arguments.output), overwrite=arguments.overwrite)
    find_model(arguments.model)
    return _ask_model(arguments, predict, format_predictions)


def export_command(arguments: argparse.Namespace) -> int:
    """Runs `darkroom export`; returns the exit code."""
    from darkroom.evaluation.serving import find_model
    from darkroom.training.formats.portable import export, format_export

    find_model(arguments.model)
    return _ask_model(arguments, export, format_export)


def _ask_model(arguments: argparse.Namespace, ask: Any, describe: Any) -> int:
    from darkroom.runtime import progress

    start_tensorflow()
    with progress.use(progress.make_sink(sys.stderr)):
        found = ask(**read_options(arguments))
    print(json.dumps(found.to_dict()) if arguments.json else describe(found))
    return 0
