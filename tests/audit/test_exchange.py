"""A reader of a dataset that is being replaced sees the old one or the new one, whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.pictures import encode, make_noise

from darkroom import storage
from darkroom.conversion.convert import convert
from darkroom.conversion.output.exchange import exchange
from darkroom.dataset.opening import open_dataset
from darkroom.errors import DataError
from darkroom.proof.verify import verify
from darkroom.storage.locks import FolderLock

# Every way in which a reader looks at files.
LOOKS = ("exists", "hash_file", "list_folder", "open_read", "read_bytes", "stat_file")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> SimpleNamespace:
    """Two datasets of other images and other labels, in files of the same names."""
    folder = tmp_path_factory.mktemp("made")
    prints = {}
    for name, start, labels in (("one", 0, ("cat", "dog")), ("two", 40, ("cow", "emu", "fox"))):
        for number in range(8):
            data = encode(make_noise(start + number, 6, 5 + start // 40))
            path = folder / f"images-{name}" / labels[number % len(labels)] / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        result = convert(folder / f"images-{name}", folder / name, num_shards=2)
        prints[result.fingerprint] = name
    return SimpleNamespace(folder=folder, prints=prints)


@pytest.fixture
def datasets(made, tmp_path) -> SimpleNamespace:
    for name in ("one", "two"):
        shutil.copytree(made.folder / name, tmp_path / name)
    return SimpleNamespace(old=tmp_path / "one", new=tmp_path / "two", prints=made.prints)


def _verify(root: Path) -> str:
    result = verify(root, num_threads=1)
    assert result.is_sound, result.findings
    return result.fingerprint


def _open(root: Path) -> str:
    return open_dataset(str(root)).fingerprint


READERS = {"verify": _verify, "open": _open}


@pytest.mark.parametrize("name", READERS)
def test_an_exchange_at_any_moment_is_not_damage(name, datasets, monkeypatch):
    """The two folders change places just before each look that the reader takes, one by one."""
    read, seen, moment = READERS[name], set(), 0
    real = {look: getattr(storage, look) for look in LOOKS}
    while True:
        looks = 0

        def look_at(*args: Any, look: str, moment: int = moment, **options: Any) -> Any:
            nonlocal looks
            looks += 1
            if looks == moment + 1:
                exchange(FolderLock(str(datasets.new)), FolderLock(str(datasets.old)))
            return real[look](*args, **options)

        for look in LOOKS:
            monkeypatch.setattr(storage, look, _bind(look_at, look))
        seen.add(datasets.prints[read(datasets.old)])
        monkeypatch.undo()
        if looks <= moment:
            break
        moment += 1
    assert seen == {"one", "two"}
    assert moment > 10


def _bind(look_at: Callable[..., Any], look: str) -> Callable[..., Any]:
    return lambda *args, **options: look_at(*args, look=look, **options)


def test_a_dataset_that_is_replaced_all_the_time_is_an_error(datasets, monkeypatch):
    real = storage.read_bytes

    def read_bytes(path: str, *args: Any, **options: Any) -> bytes:
        os.utime(datasets.new / "dataset.json")  # it is a newer one each time
        exchange(FolderLock(str(datasets.new)), FolderLock(str(datasets.old)))
        return real(path, *args, **options)

    monkeypatch.setattr(storage, "read_bytes", read_bytes)
    with pytest.raises(DataError, match="was replaced 20 times while it was read"):
        open_dataset(str(datasets.old))


def test_damage_is_still_damage(datasets):
    os.truncate(next(datasets.old.glob("Split-train/*")), 3)
    with pytest.raises(DataError, match="3 bytes, expected"):
        open_dataset(str(datasets.old))
    assert verify(datasets.old).is_damaged


_EXCHANGE_FOREVER = """
import os, sys, time
from darkroom.conversion.output.exchange import exchange
from darkroom.storage.locks import FolderLock
while True:
    os.utime(f"{sys.argv[1]}/dataset.json")  # it is a newer one each time
    exchange(FolderLock(sys.argv[1]), FolderLock(sys.argv[2]))
    time.sleep(float(sys.argv[3]))
"""


@pytest.mark.long
def test_a_race_with_a_process_that_exchanges(datasets, capsys):
    """Prints how often each reader met an exchange, and how often it took that for damage."""
    folders = (datasets.new, datasets.old)
    other = subprocess.Popen([sys.executable, "-c", _EXCHANGE_FOREVER, *folders, "0.05"])
    counts = {name: {"one": 0, "two": 0} for name in READERS}
    try:
        for name, read in READERS.items():
            for _ in range(1000):
                counts[name][datasets.prints[read(datasets.old)]] += 1
    finally:
        other.kill()
        other.wait()
    with capsys.disabled():
        print("\n| reader | read | the one | the other | called damaged |")
        print("| --- | ---: | ---: | ---: | ---: |")
        for name, found in counts.items():
            print(f"| {name} | 1,000 | {found['one']} | {found['two']} | 0 |")
    assert all(min(found.values()) > 100 for found in counts.values())
