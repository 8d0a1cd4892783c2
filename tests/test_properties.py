"""The long version of all properties: ten times as many examples, with new ones each time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_the_properties_hold_for_many_examples():
    folder = Path(__file__).parent
    paths = map(str, sorted(folder.rglob("test_*_properties.py")))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long"]
    done = subprocess.run(
        [*command, "--hypothesis-profile=many", *paths],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
