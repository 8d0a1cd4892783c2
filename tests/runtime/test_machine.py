"""How many cores and how much memory a process may use, by made-up files of control groups."""

from __future__ import annotations

import os

import pytest

from darkroom.images import memory
from darkroom.runtime import machine

GIB = 1 << 30
# The groups of a process, files by their paths, and the cores and GiB that it may use.
LIMITS = {
    "none": ("0::/\n", {"cpu.max": "max 100000", "memory.max": "max"}, 64, 512),
    "a container": ("0::/\n", {"cpu.max": "200000 100000", "memory.max": f"{2 * GIB}"}, 2, 2),
    "a part of a core": ("0::/\n", {"cpu.max": "1500 100000"}, 1, 512),
    "a group in groups": (
        "0::/pods/one/box\n",
        {
            "pods/one/cpu.max": "350000 100000",
            "pods/one/box/cpu.max": "max 100000",
            "pods/memory.max": f"{8 * GIB}",
            "pods/one/box/memory.max": f"{9 * GIB}",
        },
        4,
        8,
    ),
    "version 1": (
        "4:memory:/box\n3:cpu,cpuacct:/box\n0::/\n",
        {
            "cpu/cpu.cfs_quota_us": "-1",
            "cpu/cpu.cfs_period_us": "100000",
            "cpu/box/cpu.cfs_quota_us": "300000",
            "cpu/box/cpu.cfs_period_us": "100000",
            "memory/memory.limit_in_bytes": "9223372036854771712",
            "memory/box/memory.limit_in_bytes": f"{3 * GIB}",
        },
        3,
        3,
    ),
    "version 1 in a container that sees its own group alone": (
        "4:memory:/kubepods/box\n3:cpu:/kubepods/box\n",
        {
            "cpu/cpu.cfs_quota_us": "100000",
            "cpu/cpu.cfs_period_us": "100000",
            "memory/memory.limit_in_bytes": f"{GIB}",
        },
        1,
        1,
    ),
    "no groups": (None, {}, 64, 512),
    "odd": ("0::/\n", {"cpu.max": "a b", "memory.max": "c"}, 64, 512),
}


@pytest.mark.parametrize(("own", "files", "cores", "gibibytes"), LIMITS.values(), ids=LIMITS)
def test_a_container_has_a_part_of_its_machine(monkeypatch, tmp_path, own, files, cores, gibibytes):
    for name, text in files.items():
        (tmp_path / "groups" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "groups" / name).write_text(text + "\n")
    if own is not None:
        (tmp_path / "own").write_text(own)
    monkeypatch.setattr(machine, "_OWN_GROUPS", str(tmp_path / "own"))
    monkeypatch.setattr(machine, "_GROUPS", str(tmp_path / "groups"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {*range(64)}, raising=False)
    pages = {"SC_PHYS_PAGES": 512 * GIB // 4096, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    assert machine.count_cores() == cores
    assert machine.count_memory_bytes() == gibibytes * GIB
    # All that is prepared at once takes a quarter of the memory, or 192 MiB.
    assert memory.count_images_at_once() == min(cores, int(gibibytes * 1024 / 384))
