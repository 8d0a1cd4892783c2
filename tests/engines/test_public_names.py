"""What is done with Beam is done through names that are public."""

from __future__ import annotations

import ast
from pathlib import Path

import darkroom

MODULES = sorted((Path(darkroom.__file__).parent / "engines").glob("*.py"))


def _find_private(node: ast.AST) -> list[str]:
    """Returns a private name of somebody else, or one that changes the whole process."""
    if isinstance(node, ast.Attribute):
        is_own = isinstance(node.value, ast.Name) and node.value.id == "self"
        is_private = node.attr.startswith("_") and not node.attr.endswith("__") and not is_own
        return [node.attr] if is_private or node.attr == "excepthook" else []
    if isinstance(node, ast.Call) and not node.args and ast.unparse(node).endswith("getLogger()"):
        return ["the root logger"]
    return []


def test_an_engine_uses_public_names_alone():
    for module in MODULES:
        tree = ast.parse(module.read_text("utf-8"))
        found = [name for node in ast.walk(tree) for name in _find_private(node)]
        assert found == [], module.name
