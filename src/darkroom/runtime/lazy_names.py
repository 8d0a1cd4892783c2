"""Names of a package that are loaded when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from darkroom.errors import MissingNameError, find_missing_extra
from darkroom.withdrawn import WITHDRAWN_NAMES as WITHDRAWN


def load_name(package: str, name: str, homes: Mapping[str, str]) -> Any:
    """Returns the name that a package's `__getattr__` is asked for.

    Args:
        package: The package's name.
        name: The name.
        homes: The module of each name.

    Raises:
        AttributeError: The package does not have that name.
        MissingNameError: The name needs an extra that is not installed.
        MissingExtraError: The same, in `from package import name`.
    """
    if name not in homes:
        text = f"module {package!r} has no attribute {name!r}"
        instead = WITHDRAWN.get(f"{package}.{name}")
        raise AttributeError(f"{text}. {instead}" if instead else text)
    try:
        return getattr(import_module(homes[name]), name)
    except ModuleNotFoundError as error:
        if missing := find_missing_extra(error):
            # `from package import name` would hide the message of an AttributeError.
            if sys._getframe(2).f_code.co_name == "_handle_fromlist":
                raise missing from None
            raise MissingNameError(missing.message, missing.hint) from None
        raise


class LazyModule:
    """A module that is imported when one of its names is first used.

    It is for annotations. `typing.get_type_hints` evaluates them with the names of the module that
    holds the function, among which those imported under `TYPE_CHECKING` are missing.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


def is_installed(module: str) -> bool:
    """Tells whether a module can be imported, without importing it."""
    with suppress(ImportError, ValueError):  # from an import hook, or from a stub without a spec
        return find_spec(module) is not None
    return False
