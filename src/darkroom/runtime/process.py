"""How a process with large libraries and many rows runs, and how it and its calls end."""

from __future__ import annotations

import functools
import gc
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ParamSpec, TypeVar

from darkroom.errors import DarkroomError
from darkroom.runtime.text import suggest
from darkroom.withdrawn import explain_option

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Objects that Python makes before it searches for unused cycles.
_OBJECTS = 100_000


@contextmanager
def collect_less_garbage() -> Iterator[None]:
    """Makes Python search for unused cycles of objects less often while the block runs.

    Thousands of rows live long enough to be searched several times for nothing.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(_OBJECTS, before[0]) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def report_interrupts(message: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Makes a public function end with a plain `KeyboardInterrupt` when it is interrupted.

    A library may raise another exception instead, which `except Exception` of a caller would take.

    Args:
        message: The event, and what to do.
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
            # Not in the `except`: what a library made of the interrupt would be its context.
            raise KeyboardInterrupt(find_explanation(noted[-1]) or message)

        return call

    return decorate


def call_in_time(function: Callable[[], object], seconds: float) -> bool:
    """Calls a function, and waits for its end; tells whether it succeeded in this time."""
    done = threading.Event()

    def call() -> None:
        with suppress(Exception):
            function()
            done.set()

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    return done.is_set()


def explain_end(error: BaseException, text: str) -> None:
    """Gives an interrupt or an error a text for the end of its process, or for its hint."""
    error.explanation = text  # type: ignore[attr-defined]


def find_explanation(error: BaseException) -> str:
    """Returns the text that `explain_end` gave an exception, or the one before it; else nothing."""
    found: BaseException | None = error
    while found is not None and not hasattr(found, "explanation"):
        found = found.__context__
    return str(getattr(found, "explanation", ""))


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


def begin_at_call(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Makes the traceback of a public function's errors begin at its call; a decorator.

    Our message says the same as the frames below the call and the cause. The cause stays in
    `__context__`. A defect keeps all.
    """

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except (DarkroomError, KeyboardInterrupt, TypeError) as error:
            found = _find_error(error, function)
            if found is None:
                raise
            raise found.with_traceback(None) from None

    return call


def _find_error(error: BaseException, function: Callable[..., Any]) -> BaseException | None:
    """Returns the error to show without its frames; None for a defect."""
    if isinstance(error, TypeError):
        return None if _was_entered(function, error) else _explain_arguments(function, error)
    is_defect = isinstance(error, DarkroomError) and error.exit_code == DarkroomError.exit_code
    return None if is_defect else error


def _was_entered(function: Callable[..., Any], error: BaseException) -> bool:
    """Tells whether an error arose after a function had got its arguments."""
    code, trace = _unwrap(function).__code__, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is code:
            return True
        trace = trace.tb_next
    return False


def _explain_arguments(function: Callable[..., Any], error: TypeError) -> TypeError:
    """Returns Python's error of a call, with the argument that a wrong name may stand for."""
    import inspect

    said = str(error)
    wrong = re.search(r"unexpected keyword argument '(\w+)'$", said)  # 3.13 adds one by itself
    hint = ""
    if wrong:
        known = inspect.signature(function).parameters
        hint = explain_option(wrong[1]) or suggest(wrong[1], known)
    return TypeError(f"{said}. {hint}" if hint else said)


def _unwrap(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function
