"""tf.data service: workers on other machines make batches, and the training machine receives them.

A dispatcher knows datasets and workers and hands out files. Workers read, decode and batch. Both
run the graph that a reader sends, and listen on all interfaces without a password. Use them only in
a network that only trusted machines can reach.
"""

from __future__ import annotations

import socket
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import grpc
import tensorflow as tf

from darkroom import storage
from darkroom.errors import StorageError, UsageError
from darkroom.options.checks import check_choice
from darkroom.options.input import SHARDINGS
from darkroom.storage import ledger
from darkroom.storage.locks import FolderLock

__all__ = ["distribute"]

CONNECT_TIMEOUT_SECONDS = 10.0

# A worker that has just restarted may not hear of a new dataset until its next heartbeat. With
# TensorFlow's default it would wait for up to 30 s.
_HEARTBEAT_MILLISECONDS = 5_000
_LOOPBACK = ("localhost", "127.0.0.1")
# TensorFlow's folders in the folder of a dispatcher's journal.
_JOURNAL_FOLDERS = ("tf_data_dispatcher_journal/", "datasets/")


def distribute(
    dataset: tf.data.Dataset,
    service: str,
    *,
    sharding: str,
    job_name: str | None = None,
    timeout_seconds: float = CONNECT_TIMEOUT_SECONDS,
) -> tf.data.Dataset:
    """Runs a dataset on the workers of a tf.data service.

    The dataset must not contain a Python function. To be shared by file, it must begin with the
    list of its files (`from_tensor_slices(files)`). Shuffle that list before: a `shuffle` of the
    paths would run in the workers, and the first worker would take all files into its buffer. The
    number of records depends on the sharding and on lost workers, so do not assert it.

    Elements are sent without compression. With TensorFlow's (Snappy), half as many decoded
    photographs arrived on loopback, and worker and reader took three to four times the CPU time.

    Args:
        dataset: Any dataset. All workers must be able to read its files under the same paths; to
            share it by file, the dispatcher too.
        service: Address of the dispatcher, as in "grpc://host:port".
        sharding: "off": each worker reads the whole dataset, so n workers give every record n
            times. "dynamic": each file goes to the next free worker; every record exactly once, or
            at most once if a worker dies. "file": each worker has its fixed files; every record
            exactly once, or at least once if a worker dies. "file" needs a dispatcher that was
            started with the addresses of its workers, and at least as many files as workers.
        job_name: Readers with the same name share one pass; None: this reader has its own. Use a
            name only once with a dispatcher.
        timeout_seconds: How long the dispatcher may take to answer.

    Returns:
        The elements of the dataset, in any order. Its iteration waits for the first worker. It ends
        when all workers that the dispatcher knows have finished their part; it waits for a lost
        worker until that is back under its address.

    Raises:
        UsageError: `service`, `sharding` or `job_name` is wrong.
        StorageError: No dispatcher answers in time.
    """
    check_choice("sharding", sharding, SHARDINGS)
    if job_name is not None and not job_name:
        raise UsageError("job_name is empty.", "Pass a name, or None.")
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
    """Runs a dispatcher while the block runs.

    Args:
        port: Port to listen on; 0: any free port.
        host: Name under which others reach this machine.
        work_dir: Folder of its journal, from which it resumes after a restart; None: it forgets
            everything when it ends.
        workers: Addresses (host:port) of all workers, for the sharding "file"; else empty.

    Yields:
        Its address, grpc://host:port.

    Raises:
        UsageError: One of `workers` is not an address.
        StorageError: The port cannot be used, or the folder cannot.
        OutputError: Another dispatcher uses the folder, or it has files of TensorFlow's names.
    """
    for worker in workers:
        parse_address(f"grpc://{worker}")
    _check_port(port)
    with ExitStack() as stack:
        if work_dir is not None:
            work_dir = storage.absolute(work_dir)
            storage.make_folder(work_dir)
            stack.enter_context(FolderLock(work_dir))
            hint = "Choose another folder with --work-dir."
            ledger.claim(work_dir, dict.fromkeys(_JOURNAL_FOLDERS, ledger.ANY), hint=hint)
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
    """Runs a worker while the block runs.

    Args:
        dispatcher: Address of the dispatcher, grpc://host:port.
        port: Port to listen on. A lost worker must come back with the same port, or readers wait
            for it forever.
        host: Name under which the dispatcher and readers reach this machine.
        timeout_seconds: How long the dispatcher may take to answer.

    Yields:
        Its address, grpc://host:port.

    Raises:
        UsageError: `dispatcher` is not an address, or `host` and `port` do not form one; or `host`
            is a name of this machine for itself, and that of the dispatcher is not.
        StorageError: The port cannot be used, no dispatcher answers in time, or the dispatcher has
            a dataset that is shared by file in its journal and does not know this worker.
    """
    address = f"grpc://{host}:{port}"
    parse_address(address)
    dispatcher_host, _ = place = parse_address(dispatcher)
    if host in _LOOPBACK and dispatcher_host not in _LOOPBACK:
        # Readers elsewhere would look for the worker on their own machine, and wait forever.
        raise UsageError(
            f"host is {host!r}, which other machines take for themselves.",
            "Give a name of this machine that the dispatcher and the readers know (--host).",
        )
    check_dispatcher(dispatcher, timeout_seconds)
    _check_port(port)
    config = tf.data.experimental.service.WorkerConfig(
        dispatcher_address="{}:{}".format(*place),
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
    """Returns the host and the port of an address of the form grpc://host:port.

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
            f"{address!r} is not an address of a tf.data service.",
            "Use grpc://host:port in lower case, as the dispatcher prints it.",
        )
    return host, port


def check_dispatcher(address: str, timeout_seconds: float = CONNECT_TIMEOUT_SECONDS) -> None:
    """Waits until a gRPC server answers. TensorFlow itself would wait forever.

    Raises:
        UsageError: The address does not have the form grpc://host:port.
        StorageError: Nothing answers in time, or it is not a gRPC server.
    """
    with grpc.insecure_channel("{}:{}".format(*parse_address(address))) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=timeout_seconds)
        except grpc.FutureTimeoutError:
            raise StorageError(
                f"No dispatcher of a tf.data service answers at {address} "
                f"within {timeout_seconds:g} s.",
                "Check the address and the network, and that `darkroom dataservice dispatcher` "
                "runs.",
            ) from None


def _check_port(port: int) -> None:
    # Two gRPC servers can start on one port, and then each gets some of the calls. TensorFlow
    # takes any number, and listens on another port.
    try:
        socket.create_server(("", port)).close()
    except (OSError, OverflowError) as error:
        raise StorageError(
            f"Port {port} cannot be used: {error}.",
            "Choose another port (--port), or stop the process that listens there.",
        ) from error


def _start(server_class: Any, config: Any) -> Any:
    """Starts a server of a class of `tf.data.experimental.service`, and returns it."""
    try:
        return server_class(config)
    except (tf.errors.OpError, RuntimeError) as error:
        raise StorageError(
            f"The server does not start: {error}",
            "Where the dispatcher does not know a worker that shares by file: start it with all "
            "workers (--worker) and another --work-dir, or use another sharding.",
        ) from error
