"""Runs `darkroom` in processes in which something goes wrong at a chosen step.

As a program, it takes a request as JSON: the program and its arguments, the fault, the step at
which it comes, and a file that gets the number of steps of a run that came to its end.
"""

from __future__ import annotations

import errno
import functools
import importlib
import inspect
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.warm_python import WarmProcess, WarmPython

# The calls of the system by which any command changes a folder.
SYSTEM = ("os.fsync", "os.link", "os.mkdir", "os.rename", "os.replace", "os.rmdir", "os.unlink")
# Every place where a command changes something: on a disk, and by requests to a store.
CHANGES = (
    *SYSTEM,
    "darkroom.storage.locks._acquire",
    "darkroom.conversion.output.exchange._exchange",
    "darkroom.storage.open_write",
    "darkroom.dataset.tfrecord._write_vector",
    "darkroom.storage.remote.request",
    "darkroom.storage.remote_files.request",
)
WRITES = (
    "darkroom.storage.open_write",
    "darkroom.storage.sync_file",
    "darkroom.storage.write_bytes",
    "darkroom.dataset.tfrecord._write_vector",
)
# By what is done there: the process group is killed, the process stops until it is told to go on,
# the call fails this time, or from then on because the disk is full.
FAULTS = ("kill", "stop", "fail", "full")
_STOPPED_SECONDS = 60


def list_storage() -> list[str]:
    """Returns all functions of `darkroom.storage` that touch something."""
    from darkroom import storage

    functions = inspect.getmembers(storage, inspect.isfunction)
    own = [name for name, each in functions if each.__module__ == storage.__name__]
    return [f"{storage.__name__}.{name}" for name in own if name != "find_part"]


class Counter:
    """Counts steps; at the chosen one the fault comes."""

    def __init__(self, chosen: int, fault: str) -> None:
        self.steps = 0
        self._chosen, self._fault = chosen, fault

    def watch_all(self) -> None:
        """Counts from now on."""
        changes = {"full": WRITES, "fail": (*SYSTEM, *list_storage())}
        for name in changes.get(self._fault, CHANGES):
            with suppress(ImportError):  # without the clients of stores
                self._watch(name)

    def _watch(self, name: str) -> None:
        module_name, _, function_name = name.rpartition(".")
        module = importlib.import_module(module_name)
        original = getattr(module, function_name)

        @functools.wraps(original)
        def counted(*args: Any, **options: Any) -> Any:
            self.steps += 1
            if self.steps == self._chosen:
                self._begin(name)
            elif 0 < self._chosen < self.steps and self._fault == "full":
                raise OSError(errno.ENOSPC, "No space left on device", name)
            return original(*args, **options)

        setattr(module, function_name, counted)

    def _begin(self, name: str) -> None:
        if self._fault == "kill":
            os.killpg(0, signal.SIGKILL)
        elif self._fault == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self._fault == "fail":
            raise OSError(errno.EIO, "Input/output error", name)
        else:
            raise OSError(errno.ENOSPC, "No space left on device", name)


class Runner:
    """Runs commands in processes of their own, in which something may go wrong.

    Args:
        warm_python: Starts them.
        folder: Where they run, and for what they print.

    Attributes:
        folder: As given.
        output: What the last command printed.
        program: The module and the function that gets the arguments; the command line by default.
        mount: A folder that is said to be a mount point.
    """

    def __init__(self, warm_python: WarmPython, folder: Path) -> None:
        self._warm_python, self.folder = warm_python, folder
        self.output = ""
        self.program, self.mount = "darkroom.cli.main", ""

    def start(
        self, *argv: object, fault: str = "kill", step: int = 0, name: str = "output"
    ) -> WarmProcess:
        """Starts a command, which prints into the file of a name."""
        assert fault in FAULTS
        request = {
            "program": self.program,
            "mount": self.mount,
            "argv": [*map(str, argv)],
            "fault": fault,
            "step": step,
            "steps": str(self.folder / "steps"),
        }
        with (self.folder / name).open("w") as log:
            return self._warm_python.start(
                *(__file__, json.dumps(request)),
                cwd=self.folder,
                stdout=log.fileno(),
                stderr=log.fileno(),
            )

    def finish(self, process: WarmProcess, name: str = "output") -> int:
        """Waits for the end of a command; returns its exit code, -9 when it was killed."""
        code = process.wait()
        self.output = (self.folder / name).read_text()
        return code

    def run(
        self, *argv: object, fault: str = "kill", step: int = 0, kill_after: float | None = None
    ) -> int:
        """Returns the exit code; -9 when the process was killed, at a step or after seconds."""
        process = self.start(*argv, fault=fault, step=step)
        if kill_after is not None:
            time.sleep(kill_after)
            # It may not have made its group yet, or have ended.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return self.finish(process)

    def count_steps(self, *argv: object, fault: str = "kill") -> int:
        """Runs a command to its end; returns at how many steps a fault could have come."""
        assert self.run(*argv, fault=fault) == 0, self.output
        return int((self.folder / "steps").read_text())

    def wait_for_stop(self, process: WarmProcess) -> bool:
        """Waits until a process has stopped; tells whether it has not ended instead."""
        for _ in range(_STOPPED_SECONDS * 200):
            try:
                state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2][0]
            except FileNotFoundError:
                return False
            if state == "T":
                return True
            if state == "Z":
                return False
            time.sleep(0.005)
        raise AssertionError("it hangs")


def leave_job(argv: list[str], counter: Counter) -> int:
    """Converts as a runner elsewhere does whose client was interrupted: the job goes on alone.

    Only the steps of the job count.

    Args:
        argv: The source, the output, and options of `convert` as JSON.
        counter: Counts them.
    """
    import darkroom
    from darkroom.conversion.beam import run
    from darkroom.options.conversion import ConversionOptions

    class InterruptedClientError(Exception):
        pass

    jobs: list[Any] = []

    def submit(write: Any, *_: object) -> None:
        jobs.append(write)
        raise InterruptedClientError

    run.run_job = submit  # type: ignore[assignment]
    source, output, options = argv
    # With a runner elsewhere, the job takes its list along.
    elsewhere = ConversionOptions(beam_options={"job_endpoint": "embed"})
    given = json.loads(options)
    with suppress(InterruptedClientError):
        darkroom.convert(source, output, runner="PortableRunner", options=elsewhere, **given)
    counter.watch_all()
    # There is none where another run has done all of it.
    for write in jobs:
        write.run_here()
    return 0


def embed_with_means(argv: list[str], counter: Counter) -> int:
    """Runs the command line with a network whose features are mean colors."""
    import numpy as np

    from darkroom import cli
    from darkroom.conversion import embed
    from darkroom.features.networks.network import Network

    network = Network("means", "1f", (4, 4), 3, lambda images: images.mean((1, 2), np.float32))
    embed.open_network = lambda model: network
    counter.watch_all()
    return cli.main(argv)


def write_artifacts(argv: list[str], counter: Counter) -> int:
    """Runs ImageToTFRecord as TFX does, in folders of artifacts that its driver has made.

    Args:
        argv: A source, and the folder of the artifacts. ManifestGen has run there after the first.
        counter: Counts the steps of ImageToTFRecord.
    """
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
    from tfx.types import standard_artifacts

    from darkroom.components.artifacts import ImageManifest, RecordIndex, Rejects
    from darkroom.components.image_to_tfrecord import executor as convert
    from darkroom.components.manifest_gen import executor as manifest
    from darkroom.options.conversion import RecordOptions
    from darkroom.options.manifest import ManifestOptions

    sys.argv = sys.argv[:1]  # absl reads them
    source, root = argv
    made = {
        "manifest": ImageManifest(),
        "manifest_rejects": Rejects(),
        "examples": standard_artifacts.Examples(),
        "index": RecordIndex(),
        "rejects": Rejects(),
    }
    is_first = not os.path.exists(f"{root}/manifest")
    for name, artifact in made.items():
        artifact.uri = f"{root}/{name}"
        os.makedirs(artifact.uri, exist_ok=True)
    lists = {"manifest": [made["manifest"]], "list_rejects": [made["manifest_rejects"]]}
    if is_first:
        options = ManifestOptions.parse(seed=3).to_json()
        manifest.Executor().Do({}, lists, {"source": source, "options": options})
    counter.watch_all()
    arguments = ["--runner=FnApiRunner", "--sdk_container_image=local"]
    context = BaseBeamExecutor.Context(arguments, tmp_dir=f"{root}/tmp", unique_id="1")
    convert.Executor(context).Do(
        {name: [made[name]] for name in ("manifest", "manifest_rejects")},
        {name: [made[name]] for name in ("examples", "index", "rejects")},
        {"options": RecordOptions().to_json()},
    )
    return 0


def run_program(argv: list[str], counter: Counter, program: str) -> int:
    """Runs a function of a module with arguments, as a command line."""
    module, _, function = program.rpartition(".")
    counter.watch_all()
    return getattr(importlib.import_module(module), function)(argv)


def main(text: str) -> int:
    """Does what a request says."""
    from darkroom.errors import DarkroomError

    request = json.loads(text)
    counter = Counter(request["step"], request["fault"])
    if request["mount"]:
        os.path.ismount = lambda path: os.fspath(path) == request["mount"]
    own = globals().get(request["program"])
    if own is None:
        code = run_program(request["argv"], counter, request["program"])
    else:
        try:
            code = own(request["argv"], counter)
        except (DarkroomError, OSError) as error:
            print(error)
            code = getattr(error, "exit_code", 3)
    Path(request["steps"]).write_text(str(counter.steps))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
