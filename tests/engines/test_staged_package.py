"""A worker of Dataflow, as Beam's image makes it: the package that darkroom stages, beside Beam."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.trees import read_files

from darkroom.conversion.beam.dataflow import write_source_package

from .conftest import finish, start_client
from .pool import start_pool

pytestmark = pytest.mark.long


@pytest.fixture
def worker(tmp_path: Path) -> str:
    """The interpreter of a new environment, for which packages are fetched from an index."""
    python = str(tmp_path / "worker" / "bin" / "python")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "worker"], check=True)
    _install(python, f"apache-beam=={version('apache-beam')}")
    # The two commands of Beam's boot program for each package of `extra_packages`.
    package = write_source_package(str(tmp_path))
    _install(python, "--upgrade", "--force-reinstall", "--no-deps", package)
    _install(python, package)
    return python


def _install(python: str, *arguments: str) -> None:
    pip = [python, "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check"]
    done = subprocess.run([*pip, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_worker_with_the_staged_package_writes_the_same_bytes(
    worker: str, source: Path, local: dict[str, bytes], tmp_path: Path
):
    with (
        start_pool(tmp_path / "pool", python=worker) as workers,
        start_client(
            source, tmp_path / "out", "PortableRunner", {"job_endpoint": "embed", **workers}
        ) as client,
    ):
        code, said = finish(client)
    assert code == 0, said
    assert read_files(tmp_path / "out") == local
    assert "Starting worker with command" in (tmp_path / "pool/pool.log").read_text()
