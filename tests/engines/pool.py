"""Pools of Beam's workers, as an engine asks them for workers: `environment_type=EXTERNAL`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .processes import find_free_port, is_open, wait_until

_POOL = ("-m", "apache_beam.runners.worker.worker_pool_main")


@contextmanager
def start_pool(
    folder: Path, startup: str = "", python: str = sys.executable
) -> Iterator[dict[str, str]]:
    """Starts a pool of workers, which are processes of their own.

    Args:
        folder: Where the pool runs, and has its log: pool.log.
        startup: Python that each worker runs before anything else.
        python: The interpreter of pool and workers.

    Yields:
        The Beam options with which an engine asks this pool for its workers.
    """
    folder.mkdir(parents=True)
    (folder / "sitecustomize.py").write_text(startup)
    port = find_free_port()
    with (folder / "pool.log").open("wb") as log:
        pool = subprocess.Popen(
            [python, *_POOL, f"--service_port={port}"],
            # The pool starts its workers by the name `python`.
            env={
                "PATH": str(Path(python).parent),
                "HOME": str(folder),
                "PYTHONPATH": str(folder),
            },
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        wait_until(lambda: is_open("127.0.0.1", port), "the pool", 60)
        yield {"environment_type": "EXTERNAL", "environment_config": f"localhost:{port}"}
    finally:
        kill_group(pool)


def kill_group(process: subprocess.Popen) -> None:
    """Ends a process that has a session of its own, and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
