"""Other processes decode the batches that threads would."""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import darkroom
from darkroom.errors import DataError, StorageError
from darkroom.reader.batches import NumpyArrays

pytest.importorskip("cv2")
DECODERS = 4


def load(records: Path, decoders: int, **arguments):
    arguments = {"image_size": 16, "batch_size": 20, "training": True} | arguments
    options = {"framework": "numpy", "num_threads": decoders, "columns": ["price"]}
    return darkroom.load(records, **options | arguments)["train"]


def start(loader):
    """Returns the processes of a loader, which decode all of its batches from now on."""
    list(loader)
    processes = loader._processes
    processes._begun.join()
    assert processes.are_ready
    return processes


def list_ids(processes) -> list[int]:
    return [each._process.pid for each in processes._idle.queue]


def test_batches_are_those_of_threads(records):
    augment = "crop,flip,color,rotate,cutout,mixup"
    by_threads = load(records, 2, augment=augment)
    by_processes = load(records, DECODERS, augment=augment)
    assert by_threads._find_processes(2) is None
    start(by_processes)
    list(by_threads)
    for _ in range(2):
        expected, found = list(by_threads), list(by_processes)
        assert len(found) == len(expected) == 4
        for (images, labels, columns), (others, numbers, features) in zip(
            found, expected, strict=True
        ):
            assert np.array_equal(images, others)
            assert np.array_equal(labels, numbers)
            assert np.array_equal(columns["price"], features["price"], equal_nan=True)


def test_functions_of_the_user_stay_in_this_process(records):
    loader = load(records, DECODERS, transform=lambda image: image + os.getpid() % 2)
    assert len(list(loader)) == 4
    assert loader._processes is None


def test_a_damaged_record_is_named(records, tmp_path):
    folder = shutil.copytree(records, tmp_path / "records")
    loader = load(folder, DECODERS)
    start(loader)
    path = next((folder / "Split-train").iterdir())
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=rf"{path.name}: record \d+ is damaged"):
        list(loader)


def test_a_process_that_dies_ends_the_epoch_and_another_takes_its_place(records):
    loader = load(records, DECODERS)
    processes = start(loader)
    victims = list_ids(processes)
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    with pytest.raises(StorageError, match="A process that decodes images died of SIGKILL"):
        list(loader)
    assert not set(list_ids(start(loader))) & set(victims)


def test_processes_decode_for_all_loaders_and_end_with_the_last_one(records):
    loader, other = load(records, DECODERS), load(records, DECODERS, augment="none")
    by_threads = load(records, 1, augment="none")
    ids = list_ids(start(loader))
    assert loader._processes is start(other)
    list(by_threads)
    for batch, expected in zip(other, by_threads, strict=True):
        list(loader)  # the processes go to and fro
        assert np.array_equal(batch[0], expected[0])
    assert pickle.loads(pickle.dumps(loader))._processes is None
    del loader, other
    gc.collect()
    for number in ids:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


def test_a_program_that_ends_while_a_process_starts_says_nothing():
    program = """
import threading
from darkroom.reader.decoder_process import _DecoderProcess
process = _DecoderProcess()
threading.Thread(target=process.receive, daemon=True).start()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_memory_is_used_again_once_nothing_refers_to_it():
    arrays = NumpyArrays()
    first = arrays.make_views((3, 4))
    first[:] = 1
    part = first[1:]
    address = first.ctypes.data
    del first
    second = arrays.make_views((3, 4))
    second[:] = 2
    assert (part == 1).all()
    del part
    third = arrays.make_views((2, 4))
    assert third.ctypes.data == address
    assert (third == 1).all()
    assert third.shape == (2, 4)
    assert pickle.loads(pickle.dumps(arrays)).make_views((1,)).shape == (1,)


def test_threads_decode_where_no_process_starts(records, monkeypatch, caplog):
    monkeypatch.setattr("sys.executable", "/bin/false")
    loader = load(records, DECODERS)
    assert len(list(loader)) == 4
    loader._processes._begun.join()
    assert len(list(loader)) == 4
    assert "Threads decode, because no processes can: " in caplog.text
