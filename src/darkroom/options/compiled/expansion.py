"""Texts that Kubernetes would change in the arguments of a container."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from darkroom.errors import UsageError
from darkroom.options.compiled.credentials import walk_texts

# Kubernetes replaces these in the arguments of a container: `$(NAME)`, and `$$` by `$`.
_REPLACED = re.compile(r"\$[$(]")


def check_replaced(values: Mapping[str, Any]) -> None:
    """Checks that Kubernetes passes texts as they are.

    Args:
        values: Values by their place; they may be nested.

    Raises:
        UsageError: Kubernetes would change one.
    """
    for name, value in values.items():
        for place, text in walk_texts(name, value):
            if found := _REPLACED.search(text):
                raise UsageError(
                    f"{place} is {text!r}. Kubernetes replaces {found[0]} in what it passes to a "
                    "container, so the task would get another text.",
                    "Use a text without $$ and $(.",
                )
