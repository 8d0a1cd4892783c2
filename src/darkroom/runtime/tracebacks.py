"""Tracebacks of public functions, which begin at the user's call."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from darkroom.errors import DarkroomError

_P = ParamSpec("_P")
_R = TypeVar("_R")


def begin_at_call(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Makes the traceback of a public function's errors begin at its call; a decorator.

    Our message has what the frames below the call and the cause would say. The cause stays in
    `__context__`. A defect keeps all.
    """

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except (DarkroomError, KeyboardInterrupt, TypeError) as error:
            found = _find_error(error, function)
            if found is None:
                raise
            raise found.with_traceback(None) from None

    return call


def _find_error(error: BaseException, function: Callable[..., Any]) -> BaseException | None:
    """Returns the error to show without its frames; None for a defect."""
    if isinstance(error, TypeError):
        return None if _was_entered(function, error) else _explain_arguments(function, error)
    is_defect = isinstance(error, DarkroomError) and error.exit_code == DarkroomError.exit_code
    return None if is_defect else error


def _was_entered(function: Callable[..., Any], error: BaseException) -> bool:
    """Tells whether an error arose after a function had got its arguments."""
    code, trace = _unwrap(function).__code__, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is code:
            return True
        trace = trace.tb_next
    return False


def _explain_arguments(function: Callable[..., Any], error: TypeError) -> TypeError:
    """Returns Python's error of a call, with the argument that a wrong name may stand for."""
    import difflib
    import inspect

    said = str(error)
    wrong = re.search(r"unexpected keyword argument '(\w+)'$", said)  # 3.13 goes on by itself
    known = list(inspect.signature(function).parameters)
    near = difflib.get_close_matches(wrong[1], known, n=1) if wrong else []
    return TypeError(f"{said}. Did you mean {near[0]}?" if near else said)


def _unwrap(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function
