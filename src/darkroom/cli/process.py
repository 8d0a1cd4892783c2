"""How a signal ends the process of a command."""

from __future__ import annotations

from typing import NoReturn


class Signal:
    """The signal that ends the process, once there is one.

    An exception that a signal handler raises may arrive as another one: Beam wraps those that a
    worker raises. So the exception alone is not enough.
    """

    number: int | None = None


def end_by_signal(number: int, _: object) -> NoReturn:
    """Ends the command: a signal handler."""
    Signal.number = number
    raise SystemExit(128 + number)
