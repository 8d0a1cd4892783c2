"""tf.data service: workers on other machines prepare batches, the training machine receives them.

A dispatcher knows datasets and workers and hands out files; workers read, decode and batch. Both
run the graph that a reader sends and listen on all interfaces without a password: they belong in a
network that only trusted machines reach.
"""

from __future__ import annotations

import socket
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import tensorflow as tf

from darkroom import storage
from darkroom.errors import StorageError, UsageError
from darkroom.options.checks import check_choice
from darkroom.options.input import SHARDINGS
from darkroom.storage.locks import FolderLock

CONNECT_TIMEOUT_SECONDS = 10.0

# A worker that the dispatcher could not tell of a new dataset, as happens when it has just come
# back, learns of it by its next heartbeat. TensorFlow's default lets it idle for 30 s.
_HEARTBEAT_MILLISECONDS = 5_000
_RETRY_SECONDS = 0.2
_MAX_PORT = 65_535
# What opens a connection of gRPC, which is HTTP/2: a fixed text and an empty frame of settings.
_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
_FRAME_HEADER_BYTES = 9
_SETTINGS = 4
# How TensorFlow says that a dispatcher has a pass shared by file, and was not told of a worker.
_UNKNOWN_WORKER = "is not in the workers list"
_UNKNOWN_WORKER_ADVICE = (
    "Start the dispatcher with all workers (--worker) and another --work-dir, or share files "
    "otherwise: the pass stays in its journal."
)


def distribute(
    dataset: tf.data.Dataset,
    service: str,
    *,
    sharding: str,
    job_name: str | None = None,
    timeout_seconds: float = CONNECT_TIMEOUT_SECONDS,
) -> tf.data.Dataset:
    """Lets the workers of a tf.data service run a dataset.

    The dataset must hold no Python function. To be split by file it must begin with the list of
    its files (`from_tensor_slices(files)`), in an order that was shuffled before: a `shuffle` of
    the paths runs in the workers, and the first one would take all files into its buffer. How many
    records arrive depends on the sharding and on lost workers, so nothing may assert their number.

    Elements are sent as they are. With TensorFlow's compression (Snappy) half as many decoded
    photographs arrived on loopback, at three to four times the CPU time of worker and reader.

    Args:
        dataset: Any dataset; its files must be readable under the same paths by all workers and, to
            be split by file, by the dispatcher.
        service: Address of the dispatcher, as in "grpc://host:port".
        sharding: "off": each worker goes through the whole dataset, so n workers give every record
            n times. "dynamic": each file goes to the next worker that is free; every record exactly
            once if no worker dies, else at most once. "file": each worker has its fixed files;
            every record exactly once if no worker dies, else at least once. It needs a dispatcher
            that was started with the addresses of its workers, no more of them than files.
        job_name: Readers with the same name share one pass; None: this reader has its own. A name
            is used once in the life of a dispatcher.
        timeout_seconds: How long the dispatcher may take to answer.

    Returns:
        The dataset's elements, in no certain order. Its iteration waits for the first worker, and
        ends when all workers that the dispatcher knows have ended their part: for one that was lost
        it waits until that is back under its address.

    Raises:
        UsageError: `service`, `sharding` or `job_name` is wrong.
        StorageError: No dispatcher answers in time.
    """
    check_choice("sharding", sharding, SHARDINGS)
    if job_name is not None and not job_name:
        raise UsageError("job_name is empty.", "Give a name, or None.")
    check_dispatcher(service, timeout_seconds)
    transformation = tf.data.experimental.service.distribute(
        processing_mode=tf.data.experimental.service.ShardingPolicy[sharding.upper()],
        service=service,
        job_name=job_name,
        compression=None,
    )
    return dataset.apply(transformation)


@contextmanager
def run_dispatcher(
    port: int, *, host: str = "localhost", work_dir: str | None = None, workers: Sequence[str] = ()
) -> Iterator[str]:
    """Runs a dispatcher for as long as the block does.

    Args:
        port: Port to listen on; 0: any free one.
        host: Name under which others reach this machine.
        work_dir: Folder of its journal, with which it goes on where the last one was ended; None:
            it forgets all when it ends.
        workers: Addresses (host:port) of all workers, for the sharding "file"; else none.

    Yields:
        Its address, grpc://host:port.

    Raises:
        UsageError: `port` is none, or one of `workers` no address.
        StorageError: The port is taken, or the folder cannot be used.
        OutputError: Another dispatcher uses the folder.
    """
    _check_port(port, 0)
    for worker in workers:
        parse_address(f"grpc://{worker}")
    _check_port_is_free(port)
    with ExitStack() as stack:
        if work_dir is not None:
            work_dir = storage.absolute(work_dir)
            storage.make_folder(work_dir)
            stack.enter_context(FolderLock(work_dir))
        config = tf.data.experimental.service.DispatcherConfig(
            port=port,
            work_dir=work_dir,
            fault_tolerant_mode=work_dir is not None,
            worker_addresses=list(workers),
        )
        server = _start(tf.data.experimental.service.DispatchServer, config)
        stack.callback(server.stop)
        yield f"grpc://{host}:{server.target.rpartition(':')[2]}"


@contextmanager
def run_worker(
    dispatcher: str,
    port: int,
    *,
    host: str = "localhost",
    timeout_seconds: float = CONNECT_TIMEOUT_SECONDS,
) -> Iterator[str]:
    """Runs a worker for as long as the block does.

    Args:
        dispatcher: Address of the dispatcher, grpc://host:port.
        port: Port to listen on. A worker that was lost must come back with the same one, or readers
            wait for it in vain.
        host: Name under which dispatcher and readers reach this machine.
        timeout_seconds: How long the dispatcher may take to answer.

    Yields:
        Its address, grpc://host:port.

    Raises:
        UsageError: `dispatcher` is no address, or `host` and `port` make none.
        StorageError: The port is taken, no dispatcher answers in time, or the one that answers was
            not told of this worker and has a pass shared by file in its journal.
    """
    _check_port(port, 1)
    address = f"grpc://{host}:{port}"
    parse_address(address)
    check_dispatcher(dispatcher, timeout_seconds)
    _check_port_is_free(port)
    config = tf.data.experimental.service.WorkerConfig(
        dispatcher_address="{}:{}".format(*parse_address(dispatcher)),
        worker_address=f"{host}:{port}",
        port=port,
        heartbeat_interval_ms=_HEARTBEAT_MILLISECONDS,
    )
    server = _start(tf.data.experimental.service.WorkerServer, config)
    try:
        yield address
    finally:
        server.stop()


def parse_address(address: str) -> tuple[str, int]:
    """Returns host and port of an address of the form grpc://host:port.

    Raises:
        UsageError: It has another form.
    """
    try:
        parts = urllib.parse.urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not port or address != f"grpc://{host}:{port}":
        raise UsageError(
            f"{address!r} is no address of a tf.data service.",
            "Give grpc://host:port, in small letters, as the dispatcher prints it.",
        )
    return host, port


def check_dispatcher(address: str, timeout_seconds: float = CONNECT_TIMEOUT_SECONDS) -> None:
    """Waits until a server of gRPC answers; TensorFlow would try again without end.

    Raises:
        UsageError: It is no address of the form grpc://host:port.
        StorageError: Nothing answers in time, or what answers is no such server.
    """
    place = parse_address(address)
    deadline = time.monotonic() + timeout_seconds
    while problem := _find_problem(place, deadline):
        if time.monotonic() + _RETRY_SECONDS > deadline:
            raise StorageError(
                f"No dispatcher of a tf.data service answers at {address} "
                f"within {timeout_seconds:g} s: {problem}.",
                "Check address and network, and that `darkroom dataservice dispatcher` runs.",
            )
        time.sleep(_RETRY_SECONDS)


def _find_problem(place: tuple[str, int], deadline: float) -> str:
    """Opens a connection as gRPC does, and returns why it did not work, or the empty text."""
    left_seconds = max(_RETRY_SECONDS, deadline - time.monotonic())
    try:
        with socket.create_connection(place, left_seconds) as connection:
            connection.sendall(_HTTP2_PREFACE)
            answer = connection.recv(_FRAME_HEADER_BYTES, socket.MSG_WAITALL)
    except OSError as error:
        return error.strerror or str(error)
    is_http2 = len(answer) == _FRAME_HEADER_BYTES and answer[3] == _SETTINGS
    return "" if is_http2 else "what listens there does not speak gRPC"


def _check_port(port: int, least: int) -> None:
    if not least <= port <= _MAX_PORT:
        raise UsageError(
            f"port is {port}, expected {least} to {_MAX_PORT}.", "Give another one (--port)."
        )


def _check_port_is_free(port: int) -> None:
    # Of two servers of gRPC on one port, both start, and each gets some of the calls.
    try:
        socket.create_server(("", port)).close()
    except OSError as error:
        raise StorageError(
            f"Port {port} cannot be used: {error.strerror or error}.",
            "Choose another port, or end what listens there.",
        ) from error


def _start(server_class: Any, config: Any) -> Any:
    try:
        return server_class(config)
    except tf.errors.OpError as error:
        raise StorageError(f"The server does not start: {error.message}") from error
    except RuntimeError as error:
        # What the dispatcher answered to the first heartbeat of a worker.
        advice = _UNKNOWN_WORKER_ADVICE if _UNKNOWN_WORKER in str(error) else ""
        raise StorageError(f"The server does not start: {error}", advice) from error
