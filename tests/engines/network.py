"""Machines for a cluster: namespaces of the network, each with its own localhost and address.

Without root, all machines are this one; then two programs cannot listen on the same port.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """A machine, and what goes before a command to run it there."""

    address: str
    prefix: tuple[str, ...] = ()

    @property
    def is_own(self) -> bool:
        """Whether its localhost belongs to it alone."""
        return bool(self.prefix)

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """Takes it off the network while the block runs; its processes go on."""
        cable = self.prefix[-1].replace("-", "h")
        _ip("link", "set", cable, "down")
        try:
            yield
        finally:
            _ip("link", "set", cable, "up")


def find_obstacle() -> str:
    """Says why there can be only one machine; empty if there can be more."""
    if os.geteuid() or not shutil.which("ip"):
        return "Machines of their own need root, and `ip` of iproute2, for network namespaces."
    name = f"dk{os.getpid()}-try"
    if done := _try("netns", "add", name):
        return f"A network namespace cannot be made: {done}"
    _try("netns", "del", name)
    return ""


@contextmanager
def make_machines(number: int) -> Iterator[list[Machine]]:
    """Gives machines that reach each other: this one first, then others."""
    if find_obstacle():
        yield [Machine("127.0.0.1")] * (number + 1)
        return
    name = f"dk{os.getpid()}"
    subnet = f"10.{64 + os.getpid() % 128}.{os.getpid() // 128 % 256}"
    _ip("link", "add", name, "type", "bridge")
    try:
        _ip("addr", "add", f"{subnet}.1/24", "dev", name)
        _ip("link", "set", name, "up")
        machines = [_add(name, subnet, each) for each in range(1, number + 1)]
        yield [Machine(f"{subnet}.1"), *machines]
    finally:
        for each in range(1, number + 1):
            _try("netns", "del", f"{name}-{each}")
        _try("link", "del", name)


def _add(bridge: str, subnet: str, number: int) -> Machine:
    name, here, there = f"{bridge}-{number}", f"{bridge}h{number}", f"{bridge}t{number}"
    address = f"{subnet}.{number + 1}"
    _ip("netns", "add", name)
    _ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
    _ip("link", "set", here, "master", bridge, "up")
    _ip("-n", name, "addr", "add", f"{address}/24", "dev", there)
    for device in ("lo", there):
        _ip("-n", name, "link", "set", device, "up")
    return Machine(address, ("ip", "netns", "exec", name))


def _try(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    return done.stderr.strip() or f"exit code {done.returncode}" if done.returncode else ""


def _ip(*arguments: str) -> None:
    assert not (failed := _try(*arguments)), failed
