"""Lets the processes that a test starts import Beam in half the time.

Beam loads IPython and the clients of Google's and Amazon's services where they are installed. No
local conversion uses them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

HIDE_CLIENTS = """
import sys
for name in ("IPython", "apitools", "boto3", "google.api_core", "google.auth", "google.cloud"):
    sys.modules[name] = None
"""


@pytest.fixture(scope="session")
def light_beam_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that hides all these from a Python that has it in PYTHONPATH."""
    folder = tmp_path_factory.mktemp("light_beam")
    (folder / "sitecustomize.py").write_text(HIDE_CLIENTS)
    return folder


@pytest.fixture
def light_beam(monkeypatch: pytest.MonkeyPatch, light_beam_path: Path) -> None:
    """Hides all these from every Python that the test starts."""
    monkeypatch.setenv("PYTHONPATH", str(light_beam_path), prepend=os.pathsep)
