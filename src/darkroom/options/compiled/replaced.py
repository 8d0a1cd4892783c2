"""Texts that a service changes on their way into a container."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from darkroom.errors import UsageError
from darkroom.options.compiled.credentials import walk_texts
from darkroom.options.targets import KUBEFLOW, VERTEX

# Kubernetes replaces these in the arguments and the environment of a container: `$(NAME)`, and `$$`
# by `$`. Google documents the same for the environment of Vertex's custom jobs, and nothing for
# their arguments.
_REPLACED = re.compile(r"\$[$(]")
_WHO = {KUBEFLOW: ("Kubernetes replaces", "would"), VERTEX: ("Vertex may replace", "could")}


def check_replaced(values: Mapping[str, Any], target: str) -> None:
    """Checks that a service passes texts as they are.

    Args:
        values: Values by their place; they may be nested.
        target: `kubeflow` or `vertex`.

    Raises:
        UsageError: It would change one.
    """
    for name, value in values.items():
        for place, text in walk_texts(name, value):
            if found := _REPLACED.search(text):
                who, would = _WHO[target]
                raise UsageError(
                    f"{place} is {text!r}. {who} {found[0]} on the way to a container, so "
                    f"the task {would} get another text.",
                    "Use a text without $$ and $(.",
                )
