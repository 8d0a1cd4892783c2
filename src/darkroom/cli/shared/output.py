"""How a command prints its result."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from darkroom.errors import DarkroomError

if TYPE_CHECKING:
    from darkroom.runtime.result import Result
    from darkroom.validation.validate import ValidationResult


def print_result(result: Result, *, as_json: bool) -> None:
    """Prints the result of a command: its lines for people, or one JSON object."""
    text = json.dumps(result.to_dict()) if as_json else result.to_text(bars=sys.stdout.isatty())
    print(text, flush=True)


def print_failure(result: dict[str, Any], error: DarkroomError) -> int:
    """Prints the result of a failure, and the error beside it; returns the exit code."""
    print(json.dumps({**result, "error": error.to_dict()}))
    return error.exit_code


def end_with_verdict(result: ValidationResult, *, as_json: bool) -> int:
    """Prints what was found in a dataset; returns the exit code.

    Raises:
        GateError: A finding stops the run.
    """
    from darkroom.validation.gate import GateError
    from darkroom.validation.report.dataset_report import format_verdict

    if not as_json:
        print_result(result, as_json=False)
    try:
        result.check()
    except GateError as error:
        if as_json:
            return print_failure(result.to_dict(), error)
        # The findings are the result, and printed already.
        raise GateError(format_verdict(result.report), error.hint) from None
    if as_json:
        print_result(result, as_json=True)
    return 0
