"""A function of the user's by its name, and what its code says when it fails."""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable
from typing import Any

from darkroom.errors import UsageError
from darkroom.runtime.text import suggest

# As in package.module:function.
FUNCTION = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")


def load_function(option: str, name: str) -> Callable[..., Any]:
    """Returns the function that an option names; imports its module.

    Args:
        option: Name of the option, for the message.
        name: As in `package.module:function`.

    Raises:
        UsageError: The module cannot be imported, or does not have the function.
    """
    module_name, _, function_name = name.partition(":")
    try:
        with contextlib.redirect_stdout(sys.stderr):  # standard output may be for programs
            module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        hint = "Install the package and its imports, or add its folder to PYTHONPATH."
        said = describe_user_failure(error)
        raise UsageError(
            f"{option} is {name!r}, but {module_name} cannot be imported: {said}.",
            hint if isinstance(error, ImportError) else "",
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        names = [key for key, value in vars(module).items() if callable(value)]
        raise UsageError(
            f"{option} is {name!r}, but {module_name} has no function {function_name!r}.",
            suggest(function_name, names),
        )
    return function  # type: ignore[no-any-return]


def describe_user_failure(error: BaseException) -> str:
    """Returns an error of a user's code, with the last place in it: not in a library."""
    if isinstance(error, SyntaxError):  # nothing ran there
        return f"SyntaxError: {error.msg} ({error.filename}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is that of the caller
    libraries = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<")
    own = [each for each in frames if not each.filename.startswith(libraries)]
    place = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{place}"
