"""Other processes that decode images: in one process, Python runs one thread at a time."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from queue import LifoQueue
from typing import Any
from weakref import WeakValueDictionary

from darkroom.errors import StorageError
from darkroom.reader.augment import Changes
from darkroom.reader.decoding import Decoding, ViewOptions
from darkroom.reader.record_files import Places, RecordFiles
from darkroom.runtime import progress
from darkroom.runtime.arrays import Array
from darkroom.runtime.child import describe_end, start_child
from darkroom.targets.geometry import Matrix

# Images that a process decodes at a time: fewer cost more messages, and more leave processes
# without work at the end of a batch.
_FEWEST, _MOST = 4, 16
# Else NumPy would start threads in each.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class DecoderProcesses:
    """Processes that decode for the threads of this one, and end with it.

    A thread sends a chunk of a batch to a process that is idle, and waits for its pixels, without
    Python's lock. They come through a socket: new memory that is shared, as of `/dev/shm`, costs
    the system several times as much, and containers have little of it.

    Args:
        count: Their number.

    Attributes:
        are_ready: They wait for work.
        has_failed: One of them died.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._idle: LifoQueue[_DecoderProcess] = LifoQueue()
        self._begun: threading.Thread | None = None
        self.are_ready = self.has_failed = False

    def start(self) -> None:
        """Starts them, once, in the background; where that fails, a warning says it."""
        if self._begun is None:
            self._begun = threading.Thread(target=self._start, daemon=True)
            self._begun.start()

    def choose_chunk(self, images: int) -> int:
        """Returns how many images of a batch a process gets at a time."""
        return min(max(-(-images // self._count), _FEWEST), _MOST)

    @contextmanager
    def lend(self) -> Iterator[_DecoderProcess]:
        """Waits for a process that is idle, and gives it to the block."""
        process = self._idle.get()
        try:
            yield process
        except StorageError:
            self.has_failed = True
            raise
        finally:
            self._idle.put(process)

    def _start(self) -> None:
        try:
            processes = [_DecoderProcess() for _ in range(self._count)]
            for process in processes:
                process.send(self._count)
            for process in processes:
                process.receive()
                self._idle.put(process)
        except (OSError, StorageError) as error:
            progress.warn(f"Threads decode, because no processes can: {error}")
        else:
            self.are_ready = True


# Those of each number that are in use: all splits of a dataset have the same. A fork of this
# process has others.
_in_use: WeakValueDictionary[tuple[int, int], DecoderProcesses] = WeakValueDictionary()


def find_processes(count: int) -> DecoderProcesses:
    """Returns the processes of this one that decode, which live as long as someone has them."""
    found = _in_use.get((os.getpid(), count))
    if found is None or found.has_failed:
        found = _in_use[os.getpid(), count] = DecoderProcesses(count)
    return found


class RemoteDecoding:
    """The decoding of a batch by other processes; see `darkroom.reader.decoding.Decoding`."""

    def __init__(
        self,
        processes: DecoderProcesses,
        files: RecordFiles,
        places: Places,
        options: ViewOptions,
        *,
        positions: Array,
        epoch: int,
        views: Array,
    ) -> None:
        self._processes, self._places = processes, places
        self._files, self._options = files, options
        self._positions, self._epoch, self._views = positions, epoch, views
        self.changes = Changes(options.augmentation, positions, epoch)
        self.images: list[Any] = []
        self.features: list[dict[str, Any]] = [{}] * len(positions)

    def run(self, chunk: range) -> None:
        """Has a process decode the images of some places; see `Decoding.run`."""
        some = slice(chunk.start, chunk.stop)
        with self._processes.lend() as process:
            if process.files is not self._files:
                process.send((self._files, self._options))
                process.files = self._files
            process.send((self._places.take(some), self._positions[some], self._epoch))
            process.receive_into(self._views[some])
            answer = process.receive()
            if isinstance(answer, Exception):
                raise answer
            self.features[some] = answer

    def locate(self) -> Matrix:
        """Returns where points are, as the processes decide it; see `Decoding.locate`."""
        images: Any = {"positions": self._positions, "epoch": self._epoch, "views": self._views}
        return Decoding(self._files, self._places, self._options, **images).locate()


class _DecoderProcess:
    """A process that decodes one chunk at a time; it ends with this object.

    Attributes:
        files: Those that it reads now.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(self) -> None:
        self._process, self._socket = start_child(
            "darkroom.reader.decoder_child", (), env=os.environ | _ONE_THREAD
        )
        self._connection = Connection(os.dup(self._socket.fileno()))
        self.files: RecordFiles | None = None
        self._ending = weakref.finalize(self, _end, self._process, self._socket, os.getpid())

    def send(self, value: Any) -> None:
        """Sends a value.

        Raises:
            StorageError: The process died.
        """
        with self._explain_end():
            self._connection.send(value)

    def receive(self) -> Any:
        """Returns the next value; raises what `send` does."""
        with self._explain_end():
            return self._connection.recv()

    def receive_into(self, views: Array) -> None:
        """Fills views with the pixels that come next; raises what `send` does."""
        left = views.data.cast("B")
        with self._explain_end():
            while left:
                # One call for all, so that the thread waits for Python's lock once.
                if not (count := self._socket.recv_into(left, 0, socket.MSG_WAITALL)):
                    raise EOFError
                left = left[count:]

    @contextmanager
    def _explain_end(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, ConnectionError):
            if not self._ending.alive:
                # This process ends, and ended it: so does the thread that waits for it.
                raise SystemExit from None
            how = describe_end(self._process.wait())
            raise StorageError(
                f"A process that decodes images {how}.",
                "SIGKILL is often the system's answer to a lack of memory. A smaller batch_size or "
                "num_threads takes less.",
            ) from None


def _end(process: subprocess.Popen[bytes], ours: socket.socket, owner: int) -> None:
    """Ends a process, unless this one is a fork of the one that it belongs to."""
    if os.getpid() == owner:
        process.kill()
        process.wait()
        ours.close()
