"""Progress of a run: what runs, how far, how fast.

Code reports with `step`, `advance` and `note`, whether or not anyone listens: without a sink the
calls cost almost nothing. To see progress, install one sink for the process:

    with progress.use(progress.make_sink(sys.stdout)):
        with progress.step("ImageToTFRecord", 3, 10):
            progress.advance(1200, 1801, "images")
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO


class Sink(Protocol):
    """Receives progress; all methods may be called from any thread."""

    def open(self) -> None:
        """Starts the display."""

    def close(self) -> None:
        """Ends the display, and leaves the stream as it was."""

    def start_step(self, label: str) -> None:
        """A step begins, inside the running step if there is one."""

    def advance(self, done: int, total: int | None, unit: str, before: int) -> None:
        """The innermost step has done `done` of `total` units, `before` of them in earlier runs."""

    def remark(self, text: str) -> None:
        """The innermost step has a text to show at its end."""

    def finish_step(self, *, failed: bool) -> None:
        """The innermost step ends."""

    def note(self, text: str) -> None:
        """There is a text to show as a line of its own."""


_sink: Sink | None = None


@contextmanager
def use(sink: Sink) -> Iterator[Sink]:
    """Makes `sink` the process's sink while the block runs."""
    global _sink
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
        name: What runs.
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


def advance(done: int, total: int | None = None, unit: str = "", before: int = 0) -> None:
    """Reports how far the running step is; call it as often as you like, from any thread.

    Args:
        done: Units done since the step began (not since the last call), and those of `before`.
        total: Units to do, when known.
        unit: What is counted, in the plural: "images", "epochs".
        before: Units that an earlier run has done; the rate does not count them.
    """
    if _sink is not None:
        _sink.advance(done, total, unit, before)


def remark(text: str) -> None:
    """Sets the text that is shown at the end of the running step instead of its count."""
    if _sink is not None:
        _sink.remark(text)


def note(text: str) -> None:
    """Shows one line of text."""
    if _sink is not None:
        _sink.note(text)


def make_sink(stream: TextIO) -> Sink:
    """Returns the sink that suits `stream`: live on a terminal, plain lines otherwise."""
    from darkroom.runtime.display import PlainProgress, RichProgress

    return RichProgress(stream) if stream.isatty() else PlainProgress(stream)
