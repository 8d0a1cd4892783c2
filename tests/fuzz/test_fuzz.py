"""Runs every target on a fixed number of inputs; `make fuzz` runs them for as long as it is told.

The runs start from the same inputs and the same random numbers each time. To run a fault again:
`python tests/fuzz/fuzz_TARGET.py FILE`.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy

if not importlib.util.find_spec("atheris"):
    pytest.skip("atheris is not installed", allow_module_level=True)

_TARGETS = sorted(path.stem for path in Path(__file__).parent.glob("fuzz_*.py"))


def run_target(name: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs a target in a process of its own: libFuzzer ends the one that it runs in."""
    script = Path(__file__).with_name(f"{name}.py")
    return subprocess.run(
        [sys.executable, str(script), str(folder), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


def check_run(done: subprocess.CompletedProcess[str], folder: Path) -> int:
    """Returns how many inputs a target has run; fails with the input that it failed at."""
    found = sorted(path for path in folder.iterdir() if re.match("crash|timeout|oom", path.name))
    shown = [f"{path} ({path.stat().st_size} bytes): {path.read_bytes().hex()}" for path in found]
    noise = ("#", "INFO:", "WARNING:")
    lines = [line for line in done.stdout.splitlines() if not line.startswith(noise)]
    assert done.returncode == 0, "\n".join([*lines[-60:], *shown])
    assert not found, shown
    runs = re.search(r"Done (\d+) runs in", done.stdout)
    assert runs, done.stdout
    return int(runs[1])


# Their rows go the way of those of fuzz_csv.
_LIKE_CSV = ("fuzz_jsonl", "fuzz_parquet", "fuzz_folder")


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        *((name, 100) for name in _TARGETS if name not in _LIKE_CSV),
        *(pytest.param(name, 5_000, marks=pytest.mark.long) for name in _TARGETS),
    ],
)
def test_no_input_is_a_fault(name, runs, tmp_path):
    done = run_target(name, tmp_path, f"-runs={runs}", "-seed=1")
    assert check_run(done, tmp_path) >= runs


_FAULTY = """
import sys
sys.path.insert(0, {folder!r})
import harness

def check(data):
    if data[:3] == b"bug":
        raise ValueError("found it")

harness.fuzz(check, [b"seed", b"bug"], [b"bug"])
"""


def test_a_fault_is_found_and_shown(tmp_path, monkeypatch):
    script = tmp_path / "fuzz_faulty.py"
    script.write_text(_FAULTY.format(folder=str(Path(__file__).parent)))
    monkeypatch.setattr(sys.modules[__name__], "__file__", str(tmp_path / "test_fuzz.py"))
    folder = tmp_path / "work"
    done = run_target("fuzz_faulty", folder, "-runs=100000", "-seed=1")
    with pytest.raises(AssertionError, match="found it") as failure:
        check_run(done, folder)
    assert "crash-" in str(failure.value)
    assert b"bug".hex() in str(failure.value)
