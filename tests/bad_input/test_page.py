"""docs/reference/bad-input.md says what the marks say, and every row of the catalogue has one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from darkroom.dataset.rejects import REJECT_HINTS
from darkroom.options.source import DOUBTS

pytestmark = pytest.mark.slow

_ROOT = Path(__file__).parents[2]
_SOURCES = _ROOT / "src" / "darkroom"
_REASON = re.compile(r"RejectError\(\s*\"(\w+)\"")


def test_page_is_what_the_tests_say() -> None:
    script = Path(__file__).with_name("faults.py")
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_reason_code_has_a_hint() -> None:
    """Of the codes in the source; the fixture `plan` checks those of real rejects."""
    sources = (path.read_text() for path in _SOURCES.rglob("*.py"))
    found = {code for text in sources for code in _REASON.findall(text)}
    assert len(found) > 15
    assert found - REJECT_HINTS.keys() == set()


def test_every_reason_code_of_the_page_has_a_hint() -> None:
    codes = {
        code
        for line in (_ROOT / "docs" / "reference" / "bad-input.md").read_text().splitlines()
        if re.match(r"\| \[(\d|S)", line)
        for code in re.findall(r"`(\w+)`", line.replace("\\|", "").split(" | ")[3])
    }
    assert codes
    assert codes - REJECT_HINTS.keys() - {*DOUBTS} == set()
