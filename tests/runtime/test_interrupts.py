"""Ctrl+C in a call of a public function, as a program or a notebook gets it."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import traceback
from functools import partial

import pytest

from darkroom.conversion.convert import convert
from darkroom.conversion.shards import writing
from darkroom.runtime.process import report_interrupts

_SAID = "It was interrupted."


@pytest.fixture(autouse=True)
def python_handles_interrupts():
    """Python's own handler; a test of the command line may have left another one."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _interrupt() -> None:
    # Who presses Ctrl+C interrupts the main thread, wherever it is.
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def _interrupt_and_convert() -> None:
    try:
        _interrupt()
    except KeyboardInterrupt as error:
        raise RuntimeError("KeyboardInterrupt [while running 'a step']") from error


def _interrupt_and_hide() -> int:
    try:
        _interrupt()
    except KeyboardInterrupt:
        return 7
    return 0


@report_interrupts(_SAID)
def _call(function):
    return function()


@pytest.mark.parametrize("function", [_interrupt, _interrupt_and_convert])
def test_an_interrupt_is_one_short_exception_whatever_a_library_makes_of_it(function):
    with pytest.raises(KeyboardInterrupt) as caught:
        _call(function)
    assert caught.type is KeyboardInterrupt
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.endswith(f"\nKeyboardInterrupt: {_SAID}\n")
    assert shown.count("Traceback") == 1
    assert "in _interrupt" not in shown
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_succeeds_or_fails_by_itself_stays_as_it_is():
    assert _call(_interrupt_and_hide) == 7
    with pytest.raises(ZeroDivisionError):
        _call(lambda: 1 / 0)


def test_a_handler_of_the_program_decides():
    signal.signal(signal.SIGINT, lambda *_: None)
    assert _call(lambda: _interrupt() or 7) == 7
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert _call(lambda: _interrupt() or 8) == 8


def test_another_thread_runs_the_function_as_it_is():
    assert asyncio.run(asyncio.to_thread(_call, partial(int, "7"))) == 7


def test_an_interrupted_conversion_is_not_an_error_of_beam_and_is_resumed(
    jpeg_set, tmp_path, monkeypatch, caplog, capfd
):
    write_shard = writing.write_shard

    def write_and_interrupt(task, *others):
        if task.range.number:
            _interrupt()
            raise InterruptedError("the threads were stopped")
        return write_shard(task, *others)

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(writing, "write_shard", write_and_interrupt)
        with pytest.raises(KeyboardInterrupt, match="run it again: finished shards") as caught:
            convert(jpeg_set.csv, tmp_path / "out", num_shards=2)
    assert len("".join(traceback.format_exception(caught.value)).splitlines()) <= 7
    assert (caplog.text, capfd.readouterr()) == ("", ("", ""))
    assert not (tmp_path / "out" / "dataset.json").exists()
    assert convert(jpeg_set.csv, tmp_path / "out", num_shards=2).written > 0
