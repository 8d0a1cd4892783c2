"""What SIGINT and SIGTERM do while a job runs on an engine: they end the wait for it."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn

from darkroom.runtime.process import find_explanation

# Beam's mark of an exception that it neither wraps nor logs.
_MARK = "_tagged_with_step"
_LOGGER = logging.getLogger(__name__)


@contextmanager
def take_signals() -> Iterator[None]:
    """Makes both signals raise an exception in the block, so that the job can be cancelled.

    SIGTERM would end a script without a word. Beam takes SIGINT for itself, and stops its job
    server inside the handler; a second signal meanwhile would wait for the first one for ever.
    """
    if threading.current_thread() is not threading.main_thread():  # it gets no signals
        yield
        return
    servers: list[Any] = []
    with ExitStack() as restored:
        restored.callback(_stop_servers, servers)
        _leave_servers(restored, servers)
        _restore(restored, signal.SIGINT)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            _restore(restored, signal.SIGTERM)
            signal.signal(signal.SIGTERM, _end)
        try:
            yield
        except SystemExit as end:
            if hasattr(end, _MARK):  # Python says nothing of it
                _LOGGER.warning("Ended by SIGTERM. %s", find_explanation(end))
            raise


def _restore(restored: ExitStack, number: int) -> None:
    handler = signal.getsignal(number)
    if handler is not None:  # None: it was not set by Python
        restored.callback(signal.signal, number, handler)


def _leave_servers(restored: ExitStack, servers: list[Any]) -> None:
    """Makes Beam's handler only pass SIGINT on; adds the job servers that it would have stopped."""
    from apache_beam.runners.portability.job_server import StopOnExitJobServer

    def pass_on(server: Any, number: int, frame: Any) -> None:
        servers.append(server)
        handler: Callable[[int, Any], Any] | Any = server._original_sigint_handler
        if callable(handler):
            handler(number, frame)

    restored.callback(
        setattr, StopOnExitJobServer, "_sigint_handler", StopOnExitJobServer._sigint_handler
    )
    StopOnExitJobServer._sigint_handler = pass_on


def _stop_servers(servers: list[Any]) -> None:
    """Stops job servers in a thread, which no signal interrupts."""
    for server in set(servers):
        thread = threading.Thread(target=server.stop)
        thread.start()
        thread.join()


def _end(number: int, _: object) -> NoReturn:
    end = SystemExit(128 + number)
    setattr(end, _MARK, True)
    raise end
