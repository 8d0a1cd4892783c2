"""Two ways to show progress: live on a terminal, lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from darkroom.runtime.text import make_visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PLAIN_INTERVAL_SECONDS = 2.0
RICH_INTERVAL_SECONDS = 0.1
# A lower rate would be shown as 0.0.
_LEAST_RATE = 0.05
# Less time is not worth a word.
_LEAST_SECONDS_LEFT = 10.0


@dataclass
class TimedStep:
    """A step that runs, and how far it is."""

    label: str
    started: float
    shown: float
    count_started: float
    done: int = 0
    before: int = 0
    total: int | None = None
    remark: str = ""
    unit: str = ""
    detail: str = ""
    handle: Any = None

    def count(
        self, done: int, total: int | None, unit: str, before: int, detail: str, now: float
    ) -> None:
        """Keeps how much is done, and how much of it an earlier run did."""
        if unit != self.unit:  # A new unit needs a new rate.
            self.done, self.unit, self.count_started = 0, unit, now if self.unit else self.started
        if done <= before:  # A job may take a minute before it does anything.
            self.count_started = now
        self.done, self.total = max(self.done, done), total  # Threads may report out of order.
        self.before, self.detail = before, detail

    def format_amount(self, now: float, *, final: bool = False) -> str:
        """Returns how much is done, how fast, and the time left; at the end the remark, if any."""
        if final and self.remark:
            return self.remark
        if not self.done:
            return "" if final else self.detail
        amount, last = f"{self.done:,}", self.done
        if self.total is not None and not (final and self.done == self.total):
            amount, last = f"{amount}/{self.total:,}", self.total
        unit = self.unit.removesuffix("s") if last == 1 else self.unit
        # At the end, the rate belongs to the new part, and to the time that is shown beside it.
        is_resumed = final and self.before > 0
        new = f", {self.before:,} of them done before," if is_resumed else ""
        seconds = now - (self.started if is_resumed else self.count_started)
        rate = (self.done - self.before) / seconds if seconds > 0 else 0.0
        # A measure stays with its number: 107 MB, 241 MB/s; of things the number alone is read.
        measure, comma = (f" {self.unit}", ",") if self.unit.isupper() else ("", "")
        speed = f"{comma} {rate:,.{0 if rate >= 10 else 1}f}{measure}/s"
        shown = speed if rate >= _LEAST_RATE else ""
        detail = f", {self.detail}" if self.detail and not final else ""
        left = ((self.total or 0) - self.done) / rate if shown and not final else 0.0
        if left >= _LEAST_SECONDS_LEFT:
            shown += f", {f'{left:.0f} s' if left < 60 else format_seconds(left)} left"
        new = new if shown else new.rstrip(",")
        return f"{amount} {unit}".rstrip() + new + shown + detail

    def format_end(self, now: float, *, failed: bool) -> str:
        """Returns the line for the end of the step."""
        verb = "failed after" if failed else "done in"
        amount = self.format_amount(now, final=True)
        line = f"{self.label} {verb} {format_seconds(now - self.started)}"
        return f"{line}, {amount}" if amount else line


class StepSink:
    """Keeps the running steps, and decides when something is shown.

    How it is shown is up to `_show_start`, `_show`, `_show_end` and `_print` of a subclass. They
    are called with the lock held, so they must not report progress themselves.
    """

    is_live = False

    def __init__(
        self,
        stream: TextIO,
        interval_seconds: float = PLAIN_INTERVAL_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._interval_seconds = interval_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._steps: list[TimedStep] = []

    def open(self) -> None:
        """Starts the display."""

    def close(self) -> None:
        """Ends the display."""

    def start_step(self, label: str) -> None:
        """Begins a step; its label names the steps around it."""
        with self._lock:
            outer = f"{self._steps[-1].label}: " if self._steps else ""
            now = self._clock()
            self._steps.append(TimedStep(outer + make_visible(label), now, now, now))
            self._show_start(self._steps[-1])

    def advance(
        self, done: int, total: int | None, unit: str, before: int, detail: str = ""
    ) -> None:
        """Counts, and shows the count if it was not shown for a while."""
        with self._lock:
            if not self._steps:
                return
            current, now = self._steps[-1], self._clock()
            current.count(done, total, unit, before, detail, now)
            if now - current.shown >= self._interval_seconds:
                current.shown = now
                self._show(current, now)

    def remark(self, text: str) -> None:
        """Keeps `text` for the end of the innermost step."""
        with self._lock:
            if self._steps:
                self._steps[-1].remark = make_visible(text)

    def finish_step(self, *, failed: bool) -> None:
        """Ends the innermost step and shows how long it took."""
        with self._lock:
            if self._steps:
                self._show_end(self._steps.pop(), self._clock(), failed=failed)

    def note(self, text: str) -> None:
        """Shows `text` as one line."""
        with self._lock:
            self._print(make_visible(text, max_characters=2000))

    def _show_start(self, current: TimedStep) -> None:
        pass

    def _show(self, current: TimedStep, now: float) -> None:
        raise NotImplementedError

    def _show_end(self, finished: TimedStep, now: float, *, failed: bool) -> None:
        raise NotImplementedError

    def _print(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


class PlainProgress(StepSink):
    """Lines for logs and pipes: at most one in two seconds, and one at the end of each step."""

    def _show(self, current: TimedStep, now: float) -> None:
        self._print(f"{current.label} {current.format_amount(now)}")

    def _show_end(self, finished: TimedStep, now: float, *, failed: bool) -> None:
        self._print(finished.format_end(now, failed=failed))


class RichProgress(StepSink):
    """A live display for terminals: finished steps with a tick, the running one with a bar."""

    is_live = True

    def __init__(self, stream: TextIO, interval_seconds: float = RICH_INTERVAL_SECONDS) -> None:
        super().__init__(stream, interval_seconds)
        self._progress: Progress | None = None

    def open(self) -> None:
        """Starts the live display; imports rich."""
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        self._progress = Progress(
            SpinnerColumn(style="cyan"),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=28),
            TextColumn("{task.fields[amount]}", markup=False, style="dim"),
            TimeElapsedColumn(),
            console=Console(file=self._stream, highlight=False),
            transient=True,
            # The caller decides where the file descriptors go; rich must not wrap sys.stdout.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._progress.start()

    def close(self) -> None:
        """Stops the live display."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _show_start(self, current: TimedStep) -> None:
        if self._progress is not None:
            for outer in self._steps[:-1]:
                self._progress.update(outer.handle, visible=False)
            current.handle = self._progress.add_task(current.label, total=None, amount="")

    def _show(self, current: TimedStep, now: float) -> None:
        if self._progress is not None:
            handle: TaskID = current.handle
            amount = current.format_amount(now)
            self._progress.update(
                handle, completed=current.done, total=current.total, amount=amount
            )

    def _show_end(self, finished: TimedStep, now: float, *, failed: bool) -> None:
        if self._progress is None:
            return
        self._progress.remove_task(finished.handle)
        if self._steps:
            self._progress.update(self._steps[-1].handle, visible=True)
        is_utf8 = (getattr(self._stream, "encoding", None) or "").lower().startswith("utf")
        good, bad = ("✓", "✗") if is_utf8 else ("ok", "failed")
        seconds = format_seconds(now - finished.started)
        amount = finished.format_amount(now, final=True)
        line = f"{bad if failed else good} {finished.label}  {seconds}  {amount}".rstrip()
        style = "bold red" if failed else "green"
        self._progress.console.print(line, soft_wrap=True, markup=False, emoji=False, style=style)

    def _print(self, line: str) -> None:
        if self._progress is not None:
            self._progress.console.print(line, soft_wrap=True, markup=False, emoji=False)


def format_seconds(seconds: float) -> str:
    """Returns a duration as text: "3.2 s", "2 min 10 s"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,} min {rest} s"
