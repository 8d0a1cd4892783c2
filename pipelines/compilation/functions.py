"""Finds and calls a user's function that makes a pipeline of TFX."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
import sys
import sysconfig
import traceback

from tfx.orchestration.pipeline import Pipeline

from darkroom.errors import UsageError

ROOT_PARAMETER = "root"
_NAME = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")
_IMPORT_HINT = (
    "Install the package and its imports, or add its folder to PYTHONPATH: compiling imports "
    "the module."
)


def load_pipeline(name: str, root: str) -> Pipeline:
    """Returns the pipeline that a function makes.

    Args:
        name: `package.module:function`.
        root: Passed to the function if it has a parameter `root`; it gets nothing else.

    Raises:
        UsageError: The function does not exist, fails, or returns something else.
    """
    found = _NAME.fullmatch(name)
    if not found:
        raise UsageError(
            f"pipeline is {name!r}, expected package.module:function.",
            "Name the function that returns the pipeline. A compiled file is for `darkroom submit "
            "--pipeline FILE`.",
        )
    # Standard output may be for programs.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            module = importlib.import_module(found[1])
        except (Exception, SystemExit) as error:
            hint = _IMPORT_HINT if isinstance(error, ImportError) else ""
            said = _describe(error)
            raise UsageError(
                f"pipeline is {name!r}, but {found[1]} cannot be imported: {said}.", hint
            ) from error
        function = getattr(module, found[2], None)
        if not callable(function):
            raise UsageError(f"pipeline is {name!r}, but {found[1]} has no function {found[2]!r}.")
        try:
            takes_root = ROOT_PARAMETER in inspect.signature(function).parameters
            pipeline = function(**({ROOT_PARAMETER: root} if takes_root else {}))
        except (Exception, SystemExit) as error:
            raise UsageError(
                f"pipeline is {name!r}, which failed: {_describe(error)}.",
                f"darkroom passes nothing but {ROOT_PARAMETER}, where the function takes it.",
            ) from error
    if not isinstance(pipeline, Pipeline):
        raise UsageError(
            f"pipeline is {name!r}, which returned {type(pipeline).__name__}, expected a pipeline "
            "of TFX.",
            "Return tfx.v1.dsl.Pipeline(...). A pipeline of kfp is compiled by kfp: "
            "kfp.compiler.Compiler().compile(...).",
        )
    return pipeline


def _describe(error: BaseException) -> str:
    """Returns an error of a user's code, with the last place in it: not in a library."""
    if isinstance(error, SyntaxError):  # nothing ran there
        return f"SyntaxError: {error.msg} ({error.filename}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is in this module
    libraries = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<")
    own = [each for each in frames if not each.filename.startswith(libraries)]
    place = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{place}"
