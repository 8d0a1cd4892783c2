"""How the signature of a public function differs from the fields of options classes."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from darkroom.options.fields import list_options

# Types that Python takes besides those of a TOML file.
WIDER = {
    "columns": "Schema | Mapping[str, Any] | str | None",
    "label_map": "Sequence[str] | str | os.PathLike[str] | None",
    "split_ratios": "SplitRatios | str",
    "allowed_roots": "Sequence[str | os.PathLike[str]]",
    "image_size": "tuple[int, int] | int",
    "exclude": "str | os.PathLike[str] | None",
}


def find_differences(function: Callable[..., Any], *classes: type) -> list[str]:
    """Returns how a signature and its docstring differ from the fields of options classes.

    Args:
        function: A public function or method.
        classes: The options classes of all of which it takes the fields.
    """
    found = []
    parameters = inspect.signature(function).parameters
    text = " ".join((function.__doc__ or "").split())
    for each in list_options(*classes):
        parameter = parameters.get(each.name)
        if parameter is None:
            found.append(f"{each.name} is missing")
            continue
        if parameter.annotation != WIDER.get(each.name, each.type):
            found.append(f"{each.name} is {parameter.annotation}")
        default = dataclasses.MISSING if parameter.default is parameter.empty else parameter.default
        if default != each.default:
            found.append(f"{each.name} has the default {parameter.default!r}")
        # A docstring may go on where the sentence ends.
        if f" {each.name}: {each.option.help}" not in text:
            found.append(f"{each.name} is described in other words")
    return found
