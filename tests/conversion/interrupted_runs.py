"""Runs `darkroom convert` repeatedly, in new processes that end at a chosen step.

A process of its own that has everything imported and no threads forks one child a run: that takes
a tenth of a second, where starting Python and importing Beam takes seconds. It reads one request a
line (JSON) and answers with the child's number when it starts and with its exit code when it ends.
"""

from __future__ import annotations

import errno
import functools
import importlib
import json
import os
import signal
import sys

# Every place where a run changes something on disk. A run ends just before the chosen one.
STEPS = (
    "darkroom.storage.locks._acquire",
    "darkroom.conversion.output.exchange._exchange",
    "darkroom.conversion.output.exchange.remove_beside",
    "darkroom.dataset.journal.write_journal",
    "darkroom.dataset.rejects.write_rejects",
    "darkroom.storage.delete_file",
    "darkroom.storage.remove_empty_folders",
    "darkroom.storage.make_folder",
    "darkroom.storage.open_write",
    "darkroom.storage.rename",
    "darkroom.storage.sync_file",
    "darkroom.storage.sync_folder",
    "darkroom.storage.write_bytes",
    "darkroom.dataset.tfrecord._write_vector",
)
# The calls of the system by which any command changes a folder.
SYSTEM = ("os.fsync", "os.link", "os.mkdir", "os.rename", "os.replace", "os.rmdir", "os.unlink")
FULL = (
    "darkroom.storage.open_write",
    "darkroom.storage.sync_file",
    "darkroom.storage.write_bytes",
    "darkroom.dataset.tfrecord._write_vector",
)


class Counter:
    """Counts steps; at the chosen one it kills the process group, or the disk is full."""

    def __init__(self, chosen: int, fault: str = "system") -> None:
        self.steps = 0
        self._chosen = chosen
        self._fault = fault

    def watch(self, name: str) -> None:
        module_name, _, function_name = name.rpartition(".")
        module = importlib.import_module(module_name)
        original = getattr(module, function_name)

        @functools.wraps(original)
        def counted(*args, **options):
            self.steps += 1
            if self.steps == self._chosen and self._fault != "full":
                os.killpg(0, signal.SIGKILL)
            # Once full, a disk stays full.
            if 0 < self._chosen <= self.steps and self._fault == "full":
                raise OSError(errno.ENOSPC, "No space left on device", str(args[0]))
            return original(*args, **options)

        setattr(module, function_name, counted)


def _run(request: dict) -> int:
    from darkroom import cli

    counter = Counter(request.get("step", 0), request.get("fault", "kill"))
    names = {"full": FULL, "kill": STEPS, "system": SYSTEM}[request.get("fault", "kill")]
    for name in names:
        counter.watch(name)
    code = cli.main(request["argv"])
    if "steps" in request:
        with open(request["steps"], "w") as file:
            file.write(str(counter.steps))
    return code


def _fork(request: dict) -> None:
    child = os.fork()
    if child == 0:
        os.setsid()
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        code = 70
        try:
            code = _run(request)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def main() -> None:
    """Answers requests until there are no more."""
    import apache_beam
    import apache_beam.runners.portability.fn_api_runner  # noqa: F401

    for name in STEPS:
        importlib.import_module(name.rpartition(".")[0])
    import pyarrow.dataset  # noqa: F401

    from darkroom.cli.parser import build_parser

    build_parser()
    for name in ("conversion.convert", "conversion.beam.transforms", "runtime.display"):
        importlib.import_module(f"darkroom.{name}")
    for line in sys.stdin:
        _fork(json.loads(line))


if __name__ == "__main__":
    main()
