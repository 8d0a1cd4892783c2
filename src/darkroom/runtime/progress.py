"""Progress of a run: the step, how far, how fast.

Code reports with `step`, `advance` and `note`, whether or not anyone listens: without a sink the
calls cost almost nothing. To see progress, install one sink for the process:

    with progress.use(progress.make_sink(sys.stdout)):
        with progress.step("ImageToTFRecord", 3, 10):
            progress.advance(1200, 1801, "images")

The public functions install one themselves in a notebook. The variable `DARKROOM_PROGRESS` changes
that: with `0` no sink is installed anywhere, with `1` scripts show progress on standard error.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TextIO, TypeVar

from darkroom.runtime import by_name

if TYPE_CHECKING:
    from darkroom.runtime.display import StepSink as Sink

__all__ = ["make_sink", "use"]

PROGRESS_VARIABLE, _NOTHING = "DARKROOM_PROGRESS", "0"
# For processes of a notebook, which keeps every line.
_SLOW_SECONDS = 10.0
_P = ParamSpec("_P")
_R = TypeVar("_R")


_sink: Sink | None = None


@contextmanager
def use(sink: Sink) -> Iterator[Sink]:
    """Makes `sink` the process's sink while the block runs, unless none is wanted."""
    global _sink
    if os.environ.get(PROGRESS_VARIABLE) == _NOTHING:
        yield sink
        return
    previous = _sink
    sink.open()
    _sink = sink
    try:
        yield sink
    finally:
        _sink = previous
        sink.close()


@contextmanager
def step(name: str, number: int | None = None, of: int | None = None) -> Iterator[None]:
    """Marks the block as a step, shown as `name [number/of]`.

    Args:
        name: The name of the step.
        number: Its number, from 1, when the steps are counted.
        of: How many steps there are.
    """
    sink = _sink
    if sink is None:
        yield
        return
    sink.start_step(f"{name} [{number}/{of}]" if number and of else name)
    failed = True
    try:
        yield
        failed = False
    finally:
        sink.finish_step(failed=failed)


def advance(
    done: int, total: int | None = None, unit: str = "", before: int = 0, detail: str = ""
) -> None:
    """Reports how far the running step is; call it as often as you like, from any thread.

    Args:
        done: Units done since the step began (not since the last call), and those of `before`.
        total: Units to do, when known.
        unit: The counted things, in the plural: "images", "epochs".
        before: Units that an earlier run has done; the rate does not count them.
        detail: More words, shown beside the count as long as the step runs.
    """
    if _sink is not None:
        _sink.advance(done, total, unit, before, detail)


def is_shown() -> bool:
    """Tells whether there is a sink."""
    return _sink is not None


def is_live() -> bool:
    """Tells whether someone looks at a display that may change often: a terminal or a notebook."""
    return _sink is not None and _sink.is_live


def remark(text: str) -> None:
    """Sets the text that is shown at the end of the running step instead of its count."""
    if _sink is not None:
        _sink.remark(text)


def note(text: str) -> None:
    """Shows one line of text."""
    if _sink is not None:
        _sink.note(text)


def warn(text: str) -> None:
    """Shows one line of text that matters to a program, too: it goes to the logger `darkroom`.

    Where nobody sees progress it is a warning, which Python prints on standard error by default.
    """
    note(text)
    logging.getLogger("darkroom").log(logging.INFO if is_shown() else logging.WARNING, "%s", text)


def make_sink(stream: TextIO) -> Sink:
    """Returns the sink that suits `stream`: live on a terminal, plain lines otherwise."""
    from darkroom.runtime.display import PlainProgress, RichProgress

    if _is_started_by_cell():
        return PlainProgress(stream, _SLOW_SECONDS)
    return RichProgress(stream) if stream.isatty() else PlainProgress(stream)


def shown(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Makes a public function show its progress in a notebook, or where it is asked for."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        sink = _make_own_sink() if _sink is None else None
        if sink is None:
            return function(*args, **kwargs)
        with use(sink):
            return function(*args, **kwargs)

    return call


def _make_own_sink() -> Sink | None:
    """Returns the sink of a public function that was called without one; None to show nothing."""
    asked = os.environ.get(PROGRESS_VARIABLE, "")
    # A kernel loads IPython before it runs a cell; without it nothing needs loading.
    if asked == _NOTHING or (asked != "1" and "IPython" not in sys.modules):
        return None
    if _is_cell():
        cell: Sink = by_name.find("CellProgress")()
        return cell
    return make_sink(sys.stderr) if asked == "1" else None


def _is_cell() -> bool:
    """Tells whether this process is the kernel of a notebook."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def _is_started_by_cell() -> bool:
    """Tells whether a notebook runs this process, as with `!darkroom train`.

    The kernel gives it a pseudo terminal, but keeps all that is written there: a line that is drawn
    again and again would be in the notebook as often.
    """
    if "JPY_PARENT_PID" in os.environ:  # set for the kernel by Jupyter
        return True
    by_kernel = {"TERM": "xterm-color", "PAGER": "cat", "GIT_PAGER": "cat"}
    return all(os.environ.get(name) == value for name, value in by_kernel.items())
