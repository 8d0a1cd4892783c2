"""Fixtures for the tests of training."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from ..commit_reads import count_commits  # noqa: F401


@pytest.fixture(scope="session")
def training_process() -> Any:
    """The module of the script that trains in a process of its own."""
    path = Path(__file__).with_name("training_process.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
