"""How the signature of a public function differs from the fields of options classes."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Collection
from typing import Any

from darkroom.options.fields import list_options

# Types that Python takes besides those of a TOML file.
WIDER = {
    "columns": "Schema | Mapping[str, Any] | str | None",
    "label_map": "Sequence[str] | str | os.PathLike[str] | None",
    "split_ratios": "SplitRatios | str",
    "image_size": "tuple[int, int] | int",
    "exclude": "str | os.PathLike[str] | None",
}


def find_differences(
    function: Callable[..., Any], *classes: type, names: Collection[str] | None = None
) -> list[str]:
    """Returns how a signature and its docstring differ from the fields of options classes.

    Args:
        function: A public function or method.
        classes: The options classes of all of which it takes the fields.
        names: The fields that it takes by name, with None for those in its `options`; None if it
            takes all, with their defaults.
    """
    found = []
    parameters = inspect.signature(function).parameters
    text = " ".join((function.__doc__ or "").split())
    for each in list_options(*classes):
        if names is not None and each.name not in names:
            continue
        parameter = parameters.get(each.name)
        if parameter is None:
            found.append(f"{each.name} is missing")
            continue
        kind, expected = WIDER.get(each.name, each.type), each.default
        if names is not None:
            kind, expected = f"{kind.removesuffix(' | None')} | None", None
        if parameter.annotation != kind:
            found.append(f"{each.name} is {parameter.annotation}")
        default = dataclasses.MISSING if parameter.default is parameter.empty else parameter.default
        if default != expected:
            found.append(f"{each.name} has the default {parameter.default!r}")
        # A docstring may go on where the sentence ends.
        if f" {each.name}: {each.option.help}" not in text:
            found.append(f"{each.name} is described in other words")
    return found


def call(function: Callable[..., Any], kind: type, *arguments: Any, **values: Any) -> Any:
    """Calls a public function with values by name; what it does not take itself are options.

    Args:
        function: The function.
        kind: The class of its argument `options`.
        *arguments: Its first arguments.
        **values: Arguments and options by name.
    """
    named = inspect.signature(function).parameters
    options = {name: values.pop(name) for name in [*values] if name not in named}
    if options:
        values["options"] = kind(**options)
    return function(*arguments, **values)
