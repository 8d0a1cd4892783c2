"""Finds and calls a user's function that makes a pipeline of TFX."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import inspect
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Sequence
from types import FrameType, ModuleType
from typing import Any

from tfx.dsl.components.base.base_node import BaseNode
from tfx.orchestration.pipeline import Pipeline

from darkroom.errors import UsageError

ROOT_PARAMETER = "root"
_NAME = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")
_KFP_HINT = (
    "A component of kfp belongs into a pipeline of kfp: docs/guides/kfp-components.md. "
    "darkroom.components has those for TFX."
)
_FILES = (".yaml", ".yml", ".json")


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
        hint = "Name the function that returns the pipeline."
        if name.endswith(_FILES):
            hint += " A compiled file is for `darkroom submit --pipeline FILE`."
        raise UsageError(f"pipeline is {name!r}, expected package.module:function.", hint)
    # Standard output may be for programs.
    with contextlib.redirect_stdout(sys.stderr):
        function = _find_function(_import_module(found[1], name), found[2], name)
        pipeline = _call(function, name, root)
    if not isinstance(pipeline, Pipeline):
        hint = "Return tfx.v1.dsl.Pipeline(...)."
        if _is_of_kfp(type(pipeline).__module__):
            hint = "A pipeline of kfp is compiled by kfp: kfp.compiler.Compiler().compile(...)."
        raise UsageError(
            f"pipeline is {name!r}, which returned {type(pipeline).__name__}, expected a pipeline "
            "of TFX.",
            hint,
        )
    return pipeline


def _import_module(module: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if f"{module}.".startswith(f"{error.name}."):
            raise UsageError(
                f"pipeline is {name!r}, but there is no module {error.name!r}.",
                "Install the package, or add its folder to PYTHONPATH.",
            ) from error
        raise _make_error(
            f"pipeline is {name!r}, but {module} cannot be imported",
            error,
            "Install what it imports here, too: compiling imports the module.",
        ) from error
    except (Exception, SystemExit) as error:
        raise _make_error(
            f"pipeline is {name!r}, but {module} cannot be imported", error
        ) from error


def _find_function(module: ModuleType, function: str, name: str) -> Callable[..., Any]:
    found: Callable[..., Any] | None = getattr(module, function, None)
    if found is None or not callable(found):
        functions = inspect.getmembers(module, inspect.isfunction)
        names = [key for key, value in functions if value.__module__ == module.__name__]
        near = difflib.get_close_matches(function, names, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Its functions: {', '.join(names)}."
        raise UsageError(
            f"pipeline is {name!r}, but {module.__name__} has no function {function!r}.", hint
        )
    return found


def _call(function: Callable[..., Any], name: str, root: str) -> Any:
    try:
        parameters = dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some callables have no signature
        parameters = {}
    needed = [
        each.name
        for each in parameters.values()
        if each.default is each.empty
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        and each.name != ROOT_PARAMETER
    ]
    if needed:
        raise UsageError(
            f"pipeline is {name!r}, which needs {', '.join(needed)}; darkroom passes nothing but "
            f"{ROOT_PARAMETER}.",
            "Give the other parameters defaults, or name a function that calls it.",
        )
    given = {ROOT_PARAMETER: root} if ROOT_PARAMETER in parameters else {}
    try:
        return function(**given)
    except (Exception, SystemExit) as error:
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        _check_components(name, error, frames)
        is_kfps = any(_is_of_kfp(frame.f_globals.get("__name__", "")) for frame in frames)
        hint = _KFP_HINT * is_kfps
        raise _make_error(f"pipeline is {name!r}, which failed", error, hint) from error


def _check_components(name: str, error: BaseException, frames: Sequence[FrameType]) -> None:
    """Names what is not a component, where a Pipeline was given that and TFX failed at it.

    Raises:
        UsageError: A Pipeline was given something else.
    """
    for frame in frames:
        known = frame.f_locals
        if not isinstance(known.get("self"), Pipeline) or "components" not in known:
            continue
        given = known["components"]
        one_by_one = given if isinstance(given, list | tuple | set) else [given]
        for number, each in enumerate(one_by_one):
            if not isinstance(each, BaseNode | Iterator):
                place = f"components[{number}]" if one_by_one is given else "components"
                what, hint = _describe(each)
                raise UsageError(
                    f"pipeline is {name!r}, but {place} of its Pipeline is {what}, expected a "
                    "component of TFX.",
                    hint,
                ) from error
        if isinstance(given, BaseNode):
            raise UsageError(
                f"pipeline is {name!r}, but components of its Pipeline is {given.id} alone.",
                f"Give a list: Pipeline(..., components=[{given.id}]).",
            ) from error


def _is_of_kfp(module: str) -> bool:
    return module.partition(".")[0] == "kfp"


def _describe(given: Any) -> tuple[str, str]:
    """Says what an object is that is not a component, and what to do about it."""
    name = getattr(given, "__name__", "") or getattr(given, "name", "")
    kind = type(given).__name__
    if given is None:
        return "None", "See that the function that makes the component returns it."
    if any(_is_of_kfp(each.__module__) for each in type(given).__mro__):
        return f"the {name} of kfp", _KFP_HINT
    if isinstance(given, list | tuple | set | dict):
        return f"a {kind}", "Give all components in one list: components=[*first, second]."
    if isinstance(given, type):
        return f"the class {name}", f"Make a component of it: {name}(...)."
    if callable(given):
        return f"the function {name or kind}", "Call it, and give what it returns."
    return f"a {kind}", "Give components of TFX, or of darkroom.components."


def _make_error(what: str, error: BaseException, hint: str = "") -> UsageError:
    """Returns the error of a user's code, with the place that its author needs: not a library's."""
    frames = traceback.extract_tb(error.__traceback__)  # the first is of this module
    libraries = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<")
    own = [frame for frame in frames[1:] if not frame.filename.startswith(libraries)]
    last = (own or frames)[-1]
    said, place = str(error), f"{last.filename}:{last.lineno}"
    if isinstance(error, SyntaxError):  # the place is its own: nothing ran there
        said, place = error.msg, f"{error.filename}:{error.lineno}"
    return UsageError(f"{what}: {type(error).__name__}: {said} ({place}).", hint)
