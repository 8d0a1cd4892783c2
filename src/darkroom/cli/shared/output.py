"""How a command prints its result."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from darkroom.errors import DarkroomError


def print_result(result: Any, describe: Callable[[Any], str], *, as_json: bool) -> None:
    """Prints the result of a command.

    Args:
        result: It has `to_dict`.
        describe: Returns the lines for people.
        as_json: Print one JSON object instead.
    """
    print(json.dumps(result.to_dict()) if as_json else describe(result))


def print_failure(result: dict[str, Any], error: DarkroomError) -> int:
    """Prints the result of a failure, and the error beside it; returns the exit code."""
    print(json.dumps({**result, "error": error.to_dict()}))
    return error.exit_code
