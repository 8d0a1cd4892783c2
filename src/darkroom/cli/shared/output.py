"""How a command prints its result."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from darkroom.cli.shared.flags import read_options
from darkroom.errors import DarkroomError

if TYPE_CHECKING:
    from darkroom.runtime.result import Result


def print_result(result: Result, *, as_json: bool) -> None:
    """Prints the result of a command: its lines for people, or one JSON object."""
    text = json.dumps(result.to_dict()) if as_json else result.to_text(bars=sys.stdout.isatty())
    print(text, flush=True)


def print_answer(arguments: argparse.Namespace, ask: Callable[..., Result]) -> int:
    """Calls a function with the options of a command, and prints its result; returns 0."""
    from darkroom.runtime import progress

    with progress.use(progress.make_sink(sys.stderr)):
        found = ask(**read_options(arguments))
    print_result(found, as_json=arguments.json)
    return 0


def print_failure(result: dict[str, Any], error: DarkroomError) -> int:
    """Prints the result of a failure, and the error beside it; returns the exit code."""
    print(json.dumps({**result, "error": error.to_dict()}))
    return error.exit_code
