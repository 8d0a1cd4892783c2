"""Threads that stop before a chosen access to storage, and go on when they are told to."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

# Nothing here takes a second; a thread that waits this long waits for ever.
_SECONDS = 60
_EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.listdir", "os.scandir"}


class Actor(threading.Thread):
    """Calls a function, and can be stopped before one of its accesses.

    Args:
        function: What it does.
        stop_at: The number of the access to stop before; 0 for none.

    Attributes:
        steps: Accesses so far.
        result: What the function returned.
        error: What it raised.
    """

    def __init__(self, function: Callable[[], Any], stop_at: int = 0) -> None:
        super().__init__(daemon=True)
        self._function, self._stop_at = function, stop_at
        self._stopped, self._may_go = threading.Event(), threading.Event()
        self.steps = 0
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self._function()
        except BaseException as error:  # noqa: BLE001  the test looks at it
            self.error = error
        finally:
            self._stopped.set()

    def begin(self) -> None:
        """Starts it; returns when it has stopped or ended."""
        self.start()
        assert self._stopped.wait(_SECONDS), "it hangs"

    def finish(self) -> None:
        """Lets it go on; returns when it has ended."""
        self._may_go.set()
        self.join(_SECONDS)
        assert not self.is_alive(), "it hangs"

    def step(self) -> None:
        """Counts an access, and waits where it is to stop."""
        self.steps += 1
        if self.steps == self._stop_at:
            self._stopped.set()
            self._may_go.wait(_SECONDS)


def count_access(*_: object) -> None:
    """Tells the actor whose thread this is that it comes to an access."""
    actor = threading.current_thread()
    if isinstance(actor, Actor):
        actor.step()


def watch_disk(root: str) -> None:
    """Counts the calls of the system that concern a path below `root`, from now on."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _EVENTS and any(str(each).startswith(root) for each in arguments[:2]):
            count_access()

    sys.addaudithook(hook)
