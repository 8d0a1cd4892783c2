"""Starts Python processes as forks of one that has imported TensorFlow and TFX already.

Each is a process of its own, with the arguments, the environment and the streams that it is given;
only the import, four seconds of TensorFlow and eight of TFX, is done once. All workers of
pytest-xdist share the server, which ends when the last of them has hung up. A request is a line of
JSON with three streams beside it; the answers are the process's number, and its exit code with its
seconds of processor time.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import pytest

_IMPORTED = (
    "tensorflow",
    "darkroom.cli.parser",
    "darkroom.conversion.beam.transforms",
    "darkroom.training.run",
    "darkroom.components.model_report.executor",
    "darkroom.components.image_validator.executor",
    "darkroom.pipelines.local.runner",
    "boto3",
    "tfx.v1.components",  # what users import: three seconds for each example
    *(
        f"tfx.components.{name}.executor"
        for name in ("trainer", "evaluator", "pusher", "schema_gen", "example_validator")
    ),
)
_STREAMS = 3
_MAX_REQUEST_BYTES = 1 << 20


class WarmProcess:
    """A process that was forked; used as a `subprocess.Popen`."""

    # Of all that have ended.
    processor_seconds = 0.0

    def __init__(self, connection: socket.socket) -> None:
        self._answers = connection.makefile("r")
        connection.close()
        self.pid = int(self._answers.readline())
        self.returncode: int | None = None
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None

    def wait(self) -> int:
        """Returns the exit code; that of a signal is negative."""
        if self.returncode is None:
            code, seconds = self._answers.readline().split()
            self.returncode = int(code)
            WarmProcess.processor_seconds += float(seconds)
            self._answers.close()
        return self.returncode

    def kill(self) -> None:
        """Kills the process, if it has not ended yet."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class WarmPython:
    """What can be run; `connect` makes a connection to the server."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.path))
        return connection

    def start(
        self,
        *arguments: str | os.PathLike[str],
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        stdout: int = subprocess.DEVNULL,
        stderr: int = subprocess.DEVNULL,
    ) -> WarmProcess:
        """Starts `python ARGUMENTS`: a script, or -m and a module; streams as for Popen."""
        task = {
            "arguments": [os.fspath(each) for each in arguments],
            "environment": dict(os.environ if env is None else env),
            "folder": os.fspath(cwd or os.getcwd()),
        }
        data = json.dumps(task).encode()
        assert len(data) < _MAX_REQUEST_BYTES
        connection = self.connect()
        with open(os.devnull, "r+b") as null:
            pipes = [os.pipe() if each == subprocess.PIPE else None for each in (stdout, stderr)]
            given = [
                pipe[1] if pipe else null.fileno() if stream == subprocess.DEVNULL else stream
                for pipe, stream in zip(pipes, (stdout, stderr), strict=True)
            ]
            socket.send_fds(connection, [b"\n"], [null.fileno(), *given])
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            process = WarmProcess(connection)
        for name, pipe in zip(("stdout", "stderr"), pipes, strict=True):
            if pipe:
                os.close(pipe[1])
                setattr(process, name, os.fdopen(pipe[0], "r"))
        return process

    def run(
        self, *arguments: str | os.PathLike[str], **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Runs `python ARGUMENTS` to its end, and returns its code and what it printed."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            process = self.start(*arguments, stdout=out.fileno(), stderr=err.fileno(), **options)
            code = process.wait()
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read())
        return subprocess.CompletedProcess(list(arguments), code, *texts)


def spare_imports() -> None:
    """Leaves out what takes a third of an import of TFX, and is needed by nothing here.

    jsonschema, which a client of Kubernetes imports, parses a grammar to check URIs. TFX's runner
    of jobs on Vertex imports all of its clients, and a metric of TFMA a toolkit for languages.
    """
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    for name in (
        "tensorflow_model_analysis.metrics.rouge",
        "tfx.extensions.google_cloud_ai_platform.runner",
    ):
        sys.modules.setdefault(name, ModuleType(name))


@pytest.fixture(scope="session")
def warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmPython]:
    """Python processes that start at once; the first test that asks for it starts the server."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    warm, server = WarmPython(folder / "warm"), None
    with (folder / "warm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            user = warm.connect()
        except OSError:
            (folder / "warm").unlink(missing_ok=True)
            environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
            server = subprocess.Popen(
                [sys.executable, __file__, folder / "warm"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            user = warm.connect()
        user.sendall(b"u")
    yield warm
    user.close()
    if server:
        server.wait()


def _serve(path: str) -> None:
    listener = socket.socket(socket.AF_UNIX)
    spare_imports()
    # Modules are not garbage: looking through them takes a third of the time of their import, and
    # each process would look again, which copies the memory that it shares with this one.
    gc.disable()
    for module in _IMPORTED:
        # Without TFX, or TensorFlow, it has imported less.
        with suppress(ImportError):
            import_module(module)
    gc.freeze()
    gc.enable()
    listener.bind(path)
    listener.listen()
    print("ready", flush=True)
    _accept(listener)


def _accept(listener: socket.socket) -> None:
    """Forks a process for each request, until the last user has hung up."""
    users: list[socket.socket] = []
    # Nobody waits for them here, nor counts their time: whoever asked for them does.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        # The first user comes at once.
        listener.settimeout(0.2 if users else None)
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            users = [user for user in users if not _has_hung_up(user)]
            if not users:
                return
            continue
        connection.setblocking(True)
        kind, streams, *_ = socket.recv_fds(connection, 1, _STREAMS)
        if kind == b"u":
            users.append(connection)
            continue
        if os.fork() == 0:
            listener.close()
            _answer(connection, streams)
        connection.close()
        for stream in streams:
            os.close(stream)


def _has_hung_up(user: socket.socket) -> bool:
    try:
        return user.recv(1, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False


def _answer(connection: socket.socket, streams: Sequence[int]) -> None:
    """Starts one process and waits for it; never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection.makefile("rb") as file:
        task = json.load(file)
    child = os.fork()
    if child == 0:
        connection.close()
        _run(task, streams)
    for stream in streams:
        os.close(stream)
    # Nobody may have waited for it.
    with suppress(BrokenPipeError):
        connection.sendall(b"%d\n" % child)
        _, status, used = os.wait4(child, 0)
        code = os.waitstatus_to_exitcode(status)
        connection.sendall(b"%d %f\n" % (code, used.ru_utime + used.ru_stime))
    os._exit(0)


def _run(task: dict[str, Any], streams: Sequence[int]) -> None:
    """Does what `python ARGUMENTS` would do; never returns."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(task["folder"])
    os.environ.clear()
    os.environ.update(task["environment"])
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    option, *rest = task["arguments"]
    code: object = 0
    try:
        if option == "-m":
            sys.argv = rest
            sys.path.insert(0, task["folder"])
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv = task["arguments"]
            sys.path.insert(0, os.path.dirname(option))
            runpy.run_path(option, run_name="__main__")
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - as the interpreter does, whatever it is
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code or 0))


if __name__ == "__main__":
    _serve(sys.argv[1])
