"""What this process may use of its machine: a container may have a few of its cores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

# The control groups of this process, by their controllers, and where the system shows them.
_OWN_GROUPS = "/proc/self/cgroup"
_GROUPS = "/sys/fs/cgroup"
# Files of version 2 and of version 1.
_QUOTA_FILES = ("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")
_MEMORY_FILES = ("memory.max",), ("memory.limit_in_bytes",)


def count_cores() -> int:
    """Returns how many cores this process may use; a part of one counts as one."""
    cores = os.cpu_count() or 1
    with suppress(AttributeError):  # not on macOS
        cores = len(os.sched_getaffinity(0))
    quotas = [-(-quota // period) for quota, period in _read_limits("cpu", *_QUOTA_FILES)]
    return min([cores, *(quota for quota in quotas if quota > 0)])


def count_memory_bytes() -> int:
    """Returns how much memory this process may use, with all others of its container."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([found, *(limit for [limit] in _read_limits("memory", *_MEMORY_FILES))])


def _read_limits(controller: str, *files: tuple[str, ...]) -> Iterator[list[int]]:
    """Yields the numbers in files of a controller, of all groups that this process is in."""
    for folder in _list_folders(controller):
        for names in files:
            # A group without a limit has no such file, or "max" in it.
            with suppress(OSError, ValueError):
                yield [number for name in names for number in _read_numbers(f"{folder}/{name}")]


def _read_numbers(path: str) -> list[int]:
    with open(path, encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def _list_folders(controller: str) -> Iterator[str]:
    """Yields the folders of the groups of this process; a container may only see the first."""
    with suppress(OSError), open(_OWN_GROUPS, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            # Version 2 names none.
            if controller in controllers.split(",") or not controllers:
                folder = f"{_GROUPS}/{controller}" if controllers else _GROUPS
                yield folder
                for name in filter(None, path.split("/")):
                    folder += f"/{name}"
                    yield folder
