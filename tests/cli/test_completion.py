"""Completion by Tab, in real shells."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(sys.executable).parent
# What bash does at a Tab, for the line in $1.
BASH = """
eval "$(register-python-argcomplete darkroom)"
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMPREPLY=()
read -ra COMP_WORDS <<< "$COMP_LINE"
[[ $COMP_LINE == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_python_argcomplete darkroom
printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = 'register-python-argcomplete --shell fish darkroom | source; complete -C "$argv[1]"'
LINES = [
    ("darkroom con", ["convert"]),
    ("darkroom run --image-check ", ["full", "header"]),
    ("darkroom submit --set epo", ["epochs="]),
]


@pytest.mark.parametrize(("line", "words"), LINES)
@pytest.mark.parametrize(
    ("shell", "arguments"),
    [("bash", ["-c", BASH, "bash"]), ("fish", ["--no-config", "-c", FISH])],
)
def test_a_shell_completes_commands_options_and_choices(
    shell: str, arguments: list[str], line: str, words: list[str]
):
    pytest.importorskip("argcomplete")
    if not shutil.which(shell) or not (SCRIPTS / "register-python-argcomplete").exists():
        pytest.skip(f"{shell} or argcomplete's scripts are not installed")
    done = subprocess.run(
        [shell, *arguments, line],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PATH": f"{SCRIPTS}:{os.environ['PATH']}"},
    )
    assert done.stderr == ""
    assert [each.partition("\t")[0].strip() for each in done.stdout.splitlines()] == words


def test_without_the_extra_a_tab_shows_nothing():
    script = (
        "import sys; sys.modules['argcomplete'] = None;"
        "from darkroom.cli import main; sys.exit(main(['convert']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "_ARGCOMPLETE": "1", "COMP_LINE": "darkroom con", "COMP_POINT": "12"},
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


@pytest.mark.skipif(
    importlib.util.find_spec("argcomplete") is None, reason="needs the extra [completion]"
)
def test_argcomplete_is_loaded_for_a_tab_alone():
    script = "import sys; from darkroom.cli import main; main(['--version']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("darkroom ")
    assert "argcomplete" not in done.stdout.split()
