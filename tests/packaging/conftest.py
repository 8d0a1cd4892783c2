"""A checkout in the form that set-up needs, on a machine with almost no programs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = (
    "cat", "chmod", "cksum", "dirname", "getconf", "mkdir", "rm", "sed", "sh", "uname",
)  # fmt: skip


@pytest.fixture
def bare_machine(tmp_path: Path) -> Path:
    """A home folder with a checkout in it, and a bin with the usual tools, no Python and no uv."""
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
    scripts = (path.relative_to(ROOT) for path in (ROOT / "tools").iterdir() if path.is_file())
    locks = (f"constraints/{name}.txt" for name in ("core", "tfx-1.16-py310", "tfx-1.21-py311"))
    for name in (*scripts, *locks, "setup.py", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path
