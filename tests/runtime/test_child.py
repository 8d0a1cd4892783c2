"""A child is waited for as long as it may still answer, however long that takes."""

from __future__ import annotations

import itertools
import socket

import pytest

from darkroom.runtime import child


@pytest.mark.parametrize(
    ("states", "num_ticks"),
    [
        # It runs or could, waits for a disk, is stopped, or is stopped by a debugger.
        *((itertools.repeat((state, 7)), None) for state in "RDTt"),
        (zip(itertools.repeat("S"), itertools.count()), None),
        (itertools.cycle([*[("S", 7)] * 29, ("T", 7)]), None),
        # In the first tick its processor time is not known yet.
        (itertools.repeat(("S", 7)), 31),
        (itertools.repeat(None), 600),
    ],
)
def test_only_a_child_that_does_nothing_is_given_up(monkeypatch, states, num_ticks):
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(child, "TICK_SECONDS", 0.0001)
    asked = []

    def look(process):
        asked.append(process)
        if num_ticks is None and len(asked) == 100:
            theirs.send(b"x")
        return next(states)

    monkeypatch.setattr(child, "read_state", look)
    data = bytearray(1)
    with theirs, child.WatchedSocket(ours, 5) as watched:
        if num_ticks:
            with pytest.raises(TimeoutError):
                watched.recv_into(data)
            assert asked == [5] * num_ticks
        else:
            assert (watched.recv_into(data), data) == (1, b"x")
