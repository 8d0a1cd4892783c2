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


def end_with_verdict(result: Any, describe: Callable[[Any], str], *, as_json: bool) -> int:
    """Prints what was found in a dataset; returns the exit code.

    Args:
        result: A `ValidationResult`.
        describe: Returns the lines for people.
        as_json: Print one JSON object instead.

    Raises:
        GateError: A finding stops the run.
    """
    from darkroom.validation.gate import GateError
    from darkroom.validation.report.dataset_report import format_verdict

    if not as_json:
        print(describe(result), flush=True)
    try:
        result.check()
    except GateError as error:
        if as_json:
            return print_failure(result.to_dict(), error)
        # The findings are the result, and printed already.
        raise GateError(format_verdict(result.report), error.hint) from None
    if as_json:
        print(json.dumps(result.to_dict()))
    return 0
