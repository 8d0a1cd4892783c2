"""The tests of one part: `pytest --part read`, as `make test-part PART=read` runs it.

They make datasets by `convert` and call commands, as users do, so *make* and *top* can be imported.
The other wings cannot, neither by the part nor by its tests. A file whose tests need them has the
mark `crosses`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_WINGS = ("look", "read", "learn")


class _Refuse:
    """Finds no module of some packages."""

    def __init__(self, part: str, packages: set[str]) -> None:
        self.part, self.packages = part, packages

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> None:
        package = name.partition("darkroom.")[2].partition(".")[0]
        if package in self.packages:
            raise ImportError(f"{name} is not of the part {self.part}: see tests/parts.py")


def refuse_other_wings(name: str) -> None:
    """Lets no module of a wing that a part may not import be imported in this process."""
    parts = _list_parts()
    if name not in parts:
        raise pytest.UsageError(f"there is no part {name!r}: it is one of {', '.join(parts)}")
    part = parts[name]
    allowed = {name, *part.may_import.split(", ")}
    refused = [parts[wing].packages.split(", ") for wing in _WINGS if wing not in allowed]
    sys.meta_path.insert(0, _Refuse(name, {package for each in refused for package in each}))


@cache
def _list_parts() -> dict[str, Any]:
    from .packaging.test_layers import PARTS

    return {part.name: part for part in PARTS}


def is_of_another_part(path: Path, name: str) -> bool:
    """Tells whether a path is of the tests of packages of other parts, or of tests that cross."""
    folder = path.relative_to(Path(__file__).parent).parts[:1]
    return bool(folder) and folder[0] not in _list_parts()[name].packages.split(", ")
