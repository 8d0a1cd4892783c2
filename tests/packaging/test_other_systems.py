"""The base commands and `load` where the system has nothing that only Linux has, as macOS."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import darkroom

pytestmark = pytest.mark.heavy

# First what looks for the system when it is imported: this is about darkroom's own code.
TAKE_AWAY = """
import builtins, ctypes, fcntl, mmap, os, resource, select, signal, socket, sys, sysconfig, time
import multiprocessing.connection, pydoc, subprocess, urllib.request, uuid
import PIL.Image, duckdb, numpy, pyarrow.parquet
sysconfig.get_config_vars()
names = '''copy_file_range eventfd getrandom getresuid getxattr listxattr memfd_create pidfd_open
posix_fadvise posix_fallocate sched_getaffinity sched_setaffinity setns setxattr splice unshare
O_DIRECT O_PATH F_ADD_SEALS F_OFD_SETLK F_SETPIPE_SZ MADV_HUGEPAGE MAP_POPULATE RUSAGE_THREAD
prlimit epoll SIGRTMIN pidfd_send_signal sigtimedwait sigwaitinfo AF_NETLINK MSG_CMSG_CLOEXEC
MSG_NOSIGNAL SOCK_CLOEXEC SOCK_NONBLOCK SO_PEERCRED CLOCK_BOOTTIME pthread_getcpuclockid'''
for module in (os, fcntl, mmap, resource, select, signal, socket, time):
    for name in names.split():
        vars(module).pop(name, None)

class Library(ctypes.CDLL):
    def __getattr__(self, name):
        if name in ("malloc_trim", "prctl", "renameat2", "sync_file_range"):
            raise AttributeError(name)
        return super().__getattr__(name)

def refuse(function):
    def call(path, *arguments, **named):
        if str(path).startswith(("/proc/", "/sys/")):
            raise FileNotFoundError(2, "No such file or directory", path)
        return function(path, *arguments, **named)
    return call

ctypes.CDLL, sys.platform = Library, "darwin"
for module, name in ((builtins, "open"), (os, "open"), (os, "stat"), (os, "scandir")):
    setattr(module, name, refuse(getattr(module, name)))
"""
USE = """
import importlib.util, json
import darkroom
from darkroom.cli import main
from darkroom.runtime import child
# A child that decodes images loads neither.
child.PROGRAM = TAKE_AWAY.replace("duckdb, numpy, pyarrow.parquet", "numpy") + child.PROGRAM
for arguments in json.loads(sys.argv[1]):
    assert main(arguments) == 0, arguments
if importlib.util.find_spec("cv2"):
    data = darkroom.load("out", framework="numpy", image_size=8, batch_size=8)
    assert sum(len(labels) for split in data.values() for _, labels in split) == 40
"""


def test_the_base_needs_nothing_that_only_linux_has(tmp_path: Path) -> None:
    for number in range(40):
        path = tmp_path / "photos" / ("cat", "dog")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        image = Image.effect_noise((16 + number, 16), 60).convert("RGB")
        image.save(path if number % 4 else path.with_suffix(".jpg"))
    convert = ["convert", "photos", "--output-dir", "out"]
    others = [[name, "out"] for name in ("verify", "validate", "gallery", "inspect")]
    commands = json.dumps([convert, [*convert, "--overwrite", "--num-shards", "2"], *others])
    script = f"TAKE_AWAY = {TAKE_AWAY!r}\n{TAKE_AWAY}{USE}"
    command = [sys.executable, "-c", script, commands]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    here = darkroom.convert(tmp_path / "photos", tmp_path / "here", num_shards=2)
    written = json.loads((tmp_path / "out" / "dataset.json").read_text())
    assert (written["fingerprint"], here.written) == (here.fingerprint, 40)
