"""Ctrl+C, and the stop button of a notebook, while libraries run that change what they catch."""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def report_interrupts(message: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Makes a public function end with a plain `KeyboardInterrupt` when it is interrupted.

    A library may raise another exception instead, which `except Exception` of a caller would take.

    Args:
        message: What happened, and what to do.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with _note_interrupts() as noted:
                try:
                    return function(*args, **kwargs)
                except BaseException:
                    if not noted:
                        raise
            raise KeyboardInterrupt(message)

        return call

    return decorate


@contextmanager
def _note_interrupts() -> Iterator[list[BaseException]]:
    """Gives the interrupts that were raised in the block, in a list that grows meanwhile.

    The handler of the process decides whether one is raised, and only its main thread has one.
    """
    noted: list[BaseException] = []
    handler: Any = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield noted
        return

    def note(number: int, frame: Any) -> None:
        try:
            handler(number, frame)
        except KeyboardInterrupt as interrupt:
            # Beam's mark of an exception that it neither wraps nor logs.
            interrupt._tagged_with_step = True  # type: ignore[attr-defined]
            noted.append(interrupt)
            raise

    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, handler)
