"""Runs entrypoints in forks of one process that has imported TFX once.

Each is a process of its own with the arguments and the environment of a container; only the eight
seconds of the import are shared. One line of JSON a task on standard input, its exit code on
standard output.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


class ForkServer:
    """Starts the process; `run_command` is for `Launcher`."""

    def __init__(self) -> None:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def run_command(self, command: list[str], environment: dict[str, str], log: Path) -> int:
        assert command[:3] == ["python", "-m", "darkroom.components.entrypoint"]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        task = {"argv": command[3:], "environment": environment, "log": str(log)}
        print(json.dumps(task), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


def _serve() -> None:
    from importlib import import_module

    for module in ("entrypoint", "model_report.executor", "image_validator.executor"):
        import_module(f"darkroom.components.{module}")
    for module in ("trainer", "evaluator", "pusher", "schema_gen", "example_validator"):
        import_module(f"tfx.components.{module}.executor")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os._exit(_run(json.loads(line)))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(task: dict[str, Any]) -> int:
    from darkroom.components import entrypoint

    log = os.open(task["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.environ.update(task["environment"])
    sys.argv = [entrypoint.__file__, *task["argv"]]
    try:
        return entrypoint.main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    _serve()
