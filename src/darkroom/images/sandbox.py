"""A process that decodes images for this one: if it dies, only that image is rejected."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from darkroom.errors import DarkroomError, RejectError
from darkroom.images.memory import TRIM_BYTES, MemoryNeededError, Need
from darkroom.images.prepare import PreparedImage
from darkroom.images.sandbox_child import ANSWER, REQUEST, parse_answer, read_exactly
from darkroom.options.image import ImageOptions
from darkroom.runtime.child import WatchedSocket, describe_end, start_child

# Processor time for an image, which does not depend on how busy the machine is. The largest take a
# third of it.
CPU_SECONDS = 30
# A process whose socket is closed has ended, or ends at once.
_END_SECONDS = 30.0
# Faults that other images or the machine may have caused.
_UNPROVEN = ("decoder_crash", "decoder_memory", "decoder_timeout")
_MAX_ANSWER_BYTES = 1 << 20
_MAX_ENCODED_BYTES = 1 << 30

# The child gets no other variables: a decoder needs no credentials.
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "TMPDIR")
# Without these, the C library returns the memory of each image: a fifth of the time.
_SETTINGS = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(TRIM_BYTES // 2),
    "MALLOC_TRIM_THRESHOLD_": str(TRIM_BYTES),
    "MALLOC_TOP_PAD_": str(1 << 20),
}


class DecoderProcessError(DarkroomError):
    """A process for decoding cannot be started here, or the system ends it."""

    exit_code = 3
    code = "environment"


class DecoderProcess:
    """A process that prepares images. It starts with the first image, and again after a fault.

    One image at a time: threads that share it wait for each other.

    Args:
        options: How images are checked and stored.
    """

    def __init__(self, options: ImageOptions) -> None:
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: WatchedSocket | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def prepare(self, data: bytes, granted_bytes: int) -> PreparedImage:
        """Prepares an image as `prepare_image` does, in the other process.

        Args:
            data: The file.
            granted_bytes: Memory that it may take.

        Raises:
            RejectError: As by `prepare_image`; or with the reason `decoder_crash`,
                `decoder_timeout` or `decoder_memory`.
            MemoryNeededError: It takes more memory than that.
            DecoderProcessError: The other process cannot be started, or the system ended it.
            InterruptedError: `close` was called.
        """
        with self._lock:
            is_new = self._process is None
            try:
                return self._prepare_once(data, granted_bytes)
            except DecoderProcessError:
                if is_new:
                    raise
            except RejectError as error:
                if is_new or error.reason not in _UNPROVEN:
                    raise
            # It is the image's fault only when that also ends a new process.
            self._stop()
            return self._prepare_once(data, granted_bytes)

    def close(self) -> None:
        """Ends the process, from any thread; an image in it is given up."""
        self._is_closed = True
        if process := self._process:
            process.kill()
        with self._lock:
            self._stop()

    def _prepare_once(self, data: bytes, granted_bytes: int) -> PreparedImage:
        """Prepares an image in one attempt; raises what `prepare` does.

        Without an answer, the process is ended, and the next attempt starts another one.
        """
        try:
            answer, encoded = self._exchange(data, granted_bytes)
            if "need" in answer:
                raise MemoryNeededError(Need(*map(int, answer["need"])))
            if "error" in answer:
                raise RejectError(*map(str, answer["error"]))
            return parse_answer(answer, encoded, data)
        except TimeoutError:  # before `OSError`, which it is, too
            self._stop()
            raise RejectError("decoder_timeout", "its decoder hung and was stopped") from None
        except (EOFError, OSError, ArithmeticError, LookupError, TypeError, ValueError):
            code = self._stop(_END_SECONDS)
            if self._is_closed:
                raise InterruptedError("decoding was stopped") from None
            if code == -signal.SIGXCPU:
                text = f"decoding it took more than {CPU_SECONDS} s of processor time"
                raise RejectError("decoder_timeout", text) from None
            if code == -signal.SIGKILL:  # no decoder does that: it says nothing about the image
                hint = "SIGKILL is often the system's answer to a lack of memory: add some."
                text = f"A process that decodes images {describe_end(code)}."
                raise DecoderProcessError(text, hint) from None
            raise RejectError("decoder_crash", f"its decoder {describe_end(code)}") from None

    def _exchange(self, data: bytes, granted_bytes: int) -> tuple[dict[str, Any], bytes]:
        """Sends an image, and returns the text and the bytes of the answer (see `sandbox_child`).

        A decoder that was attacked may send anything, so lengths have limits.
        """
        connection = self._connection or self._start()
        connection.sendall(REQUEST.pack(granted_bytes, len(data)))
        connection.sendall(data)
        length, num_bytes = ANSWER.unpack(read_exactly(connection, ANSWER.size))
        if length > _MAX_ANSWER_BYTES or num_bytes > _MAX_ENCODED_BYTES:
            raise ValueError("no answer is that long")
        answer = json.loads(read_exactly(connection, length))
        return answer, bytes(read_exactly(connection, num_bytes))

    def _start(self) -> WatchedSocket:
        """Starts a process, and waits for its first, empty answer: it has limited itself (`serve`).

        Until then its messages go to a file: the last one is in the error.
        """
        if self._is_closed:
            raise InterruptedError("decoding was stopped")
        arguments = asdict(self._options), CPU_SECONDS
        with tempfile.TemporaryFile() as errors:
            try:
                self._process, ours = start_child(
                    "darkroom.images.sandbox_child",
                    arguments,
                    stderr=errors,
                    env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
                    | _SETTINGS,
                )
                connection = self._connection = WatchedSocket(ours, self._process.pid)
                read_exactly(connection, ANSWER.size)
            except (EOFError, OSError) as error:
                how = describe_end(self._stop(_END_SECONDS)) if self._process else str(error)
                if self._is_closed:
                    raise InterruptedError("decoding was stopped") from None
                errors.seek(0)
                raise _build_start_error(how, errors.read().decode(errors="replace")) from error
        return connection

    def _stop(self, patience_seconds: float = 0) -> int:
        """Ends the process, unless it ends by itself within some time; returns its exit code."""
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection:
            connection.close()
        if process is None:
            return 0
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience_seconds)
        process.kill()
        return process.wait()


def _build_start_error(how: str, errors: str) -> DecoderProcessError:
    last = (errors.strip().splitlines() or ["it said nothing"])[-1]
    python = sys.executable or "Python, whose path is not known,"
    return DecoderProcessError(
        f"Images that are not plain JPEGs are decoded in a separate process, and {python} "
        f"{how} when started as one: {last}.",
        "Run darkroom with a Python interpreter that sys.executable names.",
    )
