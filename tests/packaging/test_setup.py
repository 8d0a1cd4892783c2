"""The front door: make's targets, and the search for an interpreter."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("cat", "dirname", "getconf", "sed", "sh", "uname")

needs_tfx_machine = pytest.mark.skipif(
    (platform.system(), platform.machine(), platform.libc_ver()[0]) != ("Linux", "x86_64", "glibc"),
    reason="TFX installs on x86-64 Linux with glibc only",
)


@pytest.fixture
def bare_machine(tmp_path: Path) -> Path:
    """A home folder, with a bin that has the usual tools but no Python and no uv."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in TOOLS:
        (tools / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
    return tmp_path


def add_program(path: Path, script: str) -> None:
    """Writes an executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def run_setup(home: Path, *args: str) -> str:
    """Runs the set-up, which must fail as a matter of the environment, and returns its message."""
    done = subprocess.run(
        ["sh", str(ROOT / "tools" / "setup_env.sh"), *args],
        env={"HOME": str(home), "PATH": str(home / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    return done.stderr


def test_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    assert re.findall(r"^([a-z-]+):.* ## ", makefile, re.MULTILINE) == phony[1].split()


@needs_tfx_machine
def test_no_python_says_in_one_line_what_to_install(bare_machine: Path) -> None:
    message = run_setup(bare_machine, "tfx")
    assert re.fullmatch(r"error: found .* 3\.10.*: install .*\n", message)


@needs_tfx_machine
def test_python_that_does_not_run_is_passed_over(bare_machine: Path) -> None:
    for name in ("python3", "python3.10", "python3.11"):
        add_program(bare_machine / "bin" / name, "echo 'command not found' >&2; exit 127")
    assert re.fullmatch(r"error: found .*\n", run_setup(bare_machine, "tfx"))


def test_asked_python_must_run(bare_machine: Path) -> None:
    message = run_setup(bare_machine, "core", "3.12")
    assert message.startswith("error: no Python 3.12 that runs was found: install ")
    message = run_setup(bare_machine, "core", "no-such-python")
    assert message.startswith("error: PYTHON=no-such-python does not run")


def test_asked_python_must_suit(bare_machine: Path) -> None:
    add_program(bare_machine / "bin" / "python3.9", "echo 3.9")
    message = run_setup(bare_machine, "core", "3.9")
    assert message == "error: the core needs Python 3.10 to 3.13, and PYTHON=3.9 is 3.9\n"


@needs_tfx_machine
def test_asked_python_must_suit_tfx(bare_machine: Path) -> None:
    add_program(bare_machine / ".pyenv" / "versions" / "3.12.1" / "bin" / "python3", "echo 3.12")
    message = run_setup(bare_machine, "tfx", "3.12")
    assert message.startswith("error: TFX needs Python 3.11 (with glibc 2.39) or 3.10")


def test_other_machines_get_one_line(bare_machine: Path) -> None:
    (bare_machine / "bin" / "uname").unlink()
    add_program(bare_machine / "bin" / "uname", "echo Darwin")
    message = run_setup(bare_machine, "tfx")
    assert re.fullmatch(r"error: TFX installs on x86-64 Linux with glibc only, and .*\n", message)
