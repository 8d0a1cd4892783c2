"""Shared by the commands that use TensorFlow and models."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from darkroom.cli.shared.output import print_answer


def start_tensorflow(module: str = "tensorflow") -> None:
    """Imports TensorFlow without its messages about this machine; an error still raises.

    No level of logging keeps later versions from it.

    Args:
        module: The import: TensorFlow itself, or a module that needs more of it.
    """
    from importlib import import_module

    from darkroom.runtime import streams

    with streams.redirect_output(os.devnull):
        import_module(module)


def add_model(parser: argparse.ArgumentParser) -> None:
    """Adds the argument that names a model."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="Folder of a training, or an exported SavedModel. It is a program: give none of a "
        "stranger",
    )


def ask_model(arguments: argparse.Namespace, ask: Callable[..., Any]) -> int:
    """Calls a function with the options of a command, and prints its result.

    Returns:
        The exit code.
    """
    if arguments.model is not None:
        start_tensorflow()
    return print_answer(arguments, ask)
