"""Progress in a cell of a notebook: one line, which is updated as long as the cell runs.

IPython's own display is used. The widgets of rich and tqdm need a package that many notebooks do
not have, and a notebook that was saved does not show them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from darkroom.runtime.display import StepSink, TimedStep
from darkroom.runtime.markup import Html, element, join_html

CELL_INTERVAL_SECONDS = 0.2
_BAR_CHARACTERS = 20

# Data by MIME type, and whether it replaces the earlier output.
Show = Callable[[dict[str, str], bool], None]


class CellProgress(StepSink):
    """Shows the step that runs and then, at its end, how long it took.

    The remark of a step at its end stays below that, as notes do.
    """

    is_live = True

    def __init__(
        self,
        show: Show | None = None,
        interval_seconds: float = CELL_INTERVAL_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(sys.stdout, interval_seconds, clock)
        self._show_data = show or _make_show()
        self._is_shown = False
        self._notes: list[str] = []

    def _show_start(self, current: TimedStep) -> None:
        self._update(f"{current.label} …", element("progress"))

    def _show(self, current: TimedStep, now: float) -> None:
        amount = current.format_amount(now)
        if current.total:
            share = min(1.0, current.done / current.total)
            filled = round(_BAR_CHARACTERS * share)
            text = f"{'█' * filled}{'░' * (_BAR_CHARACTERS - filled)}"
            bar = element("progress", max="1", value=f"{share:.4f}")
            self._update(f"{current.label} {text} {amount}", bar, f"{current.label} {amount}")
        else:
            self._update(f"{current.label} {amount}", element("progress"))

    def _show_end(self, finished: TimedStep, now: float, *, failed: bool) -> None:
        line = finished.format_end(now, failed=failed)
        if finished.remark:
            self._notes.append(line)
        self._update(line)

    def _print(self, line: str) -> None:
        self._notes.append(line)
        self._update(line)

    def _update(self, text: str, bar: Html | None = None, words: str | None = None) -> None:
        """Replaces what the cell shows by a line, with the notes so far below it.

        Args:
            text: The line, with a bar of characters, for a front end without HTML.
            bar: The bar in HTML.
            words: The line in HTML, without a bar; `text` if None.
        """
        others = [note for note in self._notes if note != text]
        below = (element("div", note) for note in others)
        line = element("div", words or text, " " if bar else None, bar)
        data = {
            "text/plain": "\n".join([text, *others]),
            "text/html": str(join_html(line, *below)),
        }
        self._show_data(data, self._is_shown)
        self._is_shown = True


def _make_show() -> Show:
    """Returns a function that shows data below the running cell, and later replaces it there."""
    from IPython.display import DisplayHandle

    handle: Any = DisplayHandle()

    def show(data: dict[str, str], is_update: bool) -> None:
        (handle.update if is_update else handle.display)(data, raw=True)

    return show
