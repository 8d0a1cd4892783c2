"""A kind of target is known by its name in the register alone; all else asks it."""

from __future__ import annotations

import ast
from pathlib import Path

import darkroom

SOURCE = Path(darkroom.__file__).parent
REGISTER = {"targets/kind.py", "dataset/schema.py"}
# The name of an array that detectors of torchvision take.
OTHERS = {"reader/pytorch.py"}


def test_only_the_register_names_boxes():
    named = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value == "boxes"
    }
    inside = {name for name in named if name.startswith(("targets/boxes/", "manifest/formats/"))}
    assert named - inside - OTHERS == REGISTER
