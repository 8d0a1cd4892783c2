"""SIGINT and SIGTERM while a job runs on an engine."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress

import pytest
from apache_beam.runners.portability.job_server import StopOnExitJobServer

from darkroom.conversion.beam.cancellation import take_signals


@pytest.fixture(autouse=True)
def handlers():
    """Python's own handlers."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


class Server:
    """A job server that notes where it is stopped."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def start(self) -> str:
        return "localhost:1"

    def stop(self) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        self.events.append("in the handler" if is_main else "in a thread")


def _interrupt_twice(guarded: StopOnExitJobServer, server: Server) -> None:
    with take_signals():
        guarded.start()
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            assert server.events == []
            # As from `timeout`, which sends it twice; Beam's own handler would wait for itself.
            with guarded._lock, suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)


def test_a_job_server_is_stopped_after_the_block_and_not_in_a_handler():
    server = Server()
    with pytest.raises(KeyboardInterrupt):
        _interrupt_twice(StopOnExitJobServer(server), server)
    assert server.events == ["in a thread"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_beams_own_handler_is_back_after_the_block():
    before = StopOnExitJobServer._sigint_handler
    with take_signals():
        assert StopOnExitJobServer._sigint_handler is not before
    assert StopOnExitJobServer._sigint_handler is before


def test_sigterm_ends_a_script_by_an_exception_while_the_block_runs(caplog):
    with pytest.raises(SystemExit) as stop, take_signals():
        signal.raise_signal(signal.SIGTERM)
    assert stop.value.code == 143
    assert caplog.messages == ["Ended by SIGTERM. Run it again."]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_handler_of_the_program_stays():
    got = []
    signal.signal(signal.SIGTERM, lambda number, _: got.append(number))
    with take_signals():
        signal.raise_signal(signal.SIGTERM)
    assert got == [signal.SIGTERM]


def test_another_thread_takes_no_signals():
    done = []

    def run() -> None:
        with take_signals():
            done.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert done == [signal.SIG_DFL]
