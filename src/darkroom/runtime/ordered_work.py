"""Work that several threads do, with the results taken in order, one at a time.

No thread only takes results: that would be one more hand-over for every result, and on a busy
machine a hand-over costs more than taking the result. Instead, the thread that finishes the next
result in order takes it, and then all results that wait for it.

With several works, threads spread over them, so that they seldom wait for each other. When only one
work is left, all threads help with it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Generic, TypeVar

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def look_ahead(begun: Iterable[_In], count: int) -> Iterator[_In]:
    """Yields items in their order, each when `count` further ones have been taken.

    Args:
        begun: Items whose work begins when they are taken, as `Executor.submit` begins it.
        count: How many are worked on while the caller uses one; all that are left at the end.
    """
    items, waiting = iter(begun), deque[_In]()
    while True:
        # No name is left for an item, which would keep its memory while the caller uses it.
        waiting.extend(islice(items, count + 1 - len(waiting)))
        if not waiting:
            return
        yield waiting.popleft()


class OrderedWork(Generic[_In, _Out]):
    """Calls `work` with items in any order, and `take` with the results in the items' order.

    Args:
        items: Items, each with its size in bytes; read by one thread at a time.
        work: Called in several threads at once.
        take: Called by one thread at a time.
        max_items: Most items that are begun and not yet taken.
        max_bytes: Most bytes of these items; a larger item is worked on alone.
    """

    def __init__(
        self,
        items: Iterable[tuple[_In, int]],
        work: Callable[[_In], _Out],
        take: Callable[[_Out], None],
        max_items: int,
        max_bytes: int,
    ) -> None:
        self._items = iter(items)
        self._work = work
        self._take = take
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._reading = threading.Lock()
        self._changed = threading.Condition()
        # Apart from the rest, so that no result wakes the thread that waits for the last one.
        self._ended = threading.Event()
        self._begun = self._taken = 0
        self._bytes_in_flight = 0
        self._waiting: dict[int, tuple[_Out, int]] = {}
        self._is_taking = False
        self._failure: BaseException | None = None
        self.is_exhausted = False

    def step(self) -> None:
        """Works on the next item, if there is one; `wait` raises its error."""
        try:
            if begun := self._begin():
                number, item, size = begun
                self._finish(number, self._work(item), size)
        except BaseException as error:  # noqa: BLE001  `wait` raises it
            self.stop(error)

    def wait(self) -> None:
        """Returns when all results are taken; raises the first error."""
        self._ended.wait()
        if self._failure:
            raise self._failure

    def stop(self, failure: BaseException) -> None:
        """Begins no more items, and makes `wait` raise `failure`."""
        with self._changed:
            self.is_exhausted = True
            self._failure = self._failure or failure
            self._notify()

    def _begin(self) -> tuple[int, _In, int] | None:
        """Returns the number of the next item, the item and its size, once there is room for it."""
        with self._reading:
            item, size = next(self._items, (None, 0))
            with self._changed:
                if item is None:
                    self.is_exhausted = True
                    self._notify()
                self._changed.wait_for(lambda: self.is_exhausted or self._has_room(size))
                if self.is_exhausted or item is None:
                    return None
                self._begun += 1
                self._bytes_in_flight += size
                return self._begun - 1, item, size

    def _notify(self) -> None:
        self._changed.notify_all()
        if self._failure or (self.is_exhausted and self._begun == self._taken):
            self._ended.set()

    def _has_room(self, size: int) -> bool:
        in_flight = self._begun - self._taken
        return not in_flight or (
            in_flight < self._max_items and self._bytes_in_flight + size <= self._max_bytes
        )

    def _finish(self, number: int, result: _Out, size: int) -> None:
        """Takes a result and those that wait for it, if it is next and no thread is taking."""
        with self._changed:
            self._waiting[number] = (result, size)
            if self._is_taking:
                return
            self._is_taking = True
        while (ready := self._next_waiting()) is not None:
            result, size = ready
            self._take(result)
            with self._changed:
                self._taken += 1
                self._bytes_in_flight -= size
                self._notify()

    def _next_waiting(self) -> tuple[_Out, int] | None:
        with self._changed:
            ready = None if self._failure else self._waiting.pop(self._taken, None)
            self._is_taking = ready is not None
            return ready


class Crew:
    """Threads that do ordered work for several callers at once.

    Args:
        num_threads: How many; they start with the first work.
        name: The beginning of their names, for debuggers.
    """

    def __init__(self, num_threads: int, name: str) -> None:
        self._num_threads = num_threads
        self._name = name
        self._threads: list[threading.Thread] = []
        self._changed = threading.Condition()
        self._at_work: dict[OrderedWork[Any, Any], int] = {}
        self._is_closed = False

    def run(self, work: OrderedWork[Any, Any]) -> None:
        """Returns when a work is done; raises its error.

        After an error, threads may still work on items that they have begun: call `close` before
        you close the resources that they use.
        """
        with self._changed:
            if self._is_closed:
                raise InterruptedError("the threads were stopped")
            if len(self._threads) < self._num_threads:
                for number in range(self._num_threads):
                    name = f"{self._name}-{number}"
                    self._threads.append(threading.Thread(None, self._run, name, daemon=True))
                    self._threads[-1].start()
            self._at_work[work] = 0
            self._changed.notify_all()
        try:
            work.wait()
        except BaseException as error:
            work.stop(error)
            raise
        finally:
            with self._changed:
                del self._at_work[work]

    def close(self) -> None:
        """Ends the threads after their current items."""
        with self._changed:
            self._is_closed = True
            for work in self._at_work:
                work.stop(InterruptedError("the threads were stopped"))
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (work := self._choose()) is not None:
            work.step()
            with self._changed:
                if work in self._at_work:
                    self._at_work[work] -= 1

    def _choose(self) -> OrderedWork[Any, Any] | None:
        """Waits for works with items left; returns the one with the fewest threads."""
        with self._changed:
            while not self._is_closed:
                open_work = [work for work in self._at_work if not work.is_exhausted]
                if open_work:
                    chosen = min(open_work, key=self._at_work.__getitem__)
                    self._at_work[chosen] += 1
                    return chosen
                self._changed.wait()
            return None
