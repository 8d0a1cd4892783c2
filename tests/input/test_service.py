"""tf.data service: dispatcher and workers as processes of the command line, on loopback."""

from __future__ import annotations

import gc
import json
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import darkroom
from darkroom.cli import main
from darkroom.errors import OutputError, StorageError, UsageError
from darkroom.input.opening import input_fn
from darkroom.input.pipeline import make_train_dataset
from darkroom.input.service import (
    check_dispatcher,
    distribute,
    parse_address,
    run_dispatcher,
    run_worker,
)
from darkroom.options.input import InputOptions

from ..docs.blocks import run_page, write_given
from ..warm_python import WarmProcess, WarmPython

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder")]

NUM_IMAGES, NUM_FILES, BATCH_SIZE = 200, 8, 5
# A limit for waits that would never end. No test depends on it.
_PATIENCE_SECONDS = 120


def _free_port() -> int:
    with socket.create_server(("", 0)) as server:
        return server.getsockname()[1]


def _kill(process: WarmProcess) -> None:
    process.kill()
    process.wait()


class Cluster:
    """A dispatcher and workers, each of which can be started again under its address."""

    def __init__(self, warm_python: WarmPython, work_dir: Path) -> None:
        self._python = warm_python
        self.ports = [_free_port() for _ in range(3)]
        self.address = f"grpc://localhost:{_free_port()}"
        self._work_dir = str(work_dir)
        self.workers: dict[int, WarmProcess] = {}
        self.dispatcher = self.start_dispatcher()

    def _start(self, *arguments: str) -> WarmProcess:
        command = ("-m", "darkroom.cli", "dataservice", *arguments)
        return self._python.start(*command, stdout=subprocess.PIPE)

    def start_dispatcher(self) -> WarmProcess:
        port = self.address.rpartition(":")[2]
        self.dispatcher = self._start("dispatcher", "--port", port, "--work-dir", self._work_dir)
        return self.dispatcher

    def start_worker(self, index: int) -> WarmProcess:
        port = str(self.ports[index])
        self.workers[index] = self._start("worker", "--dispatcher", self.address, "--port", port)
        return self.workers[index]

    def stop(self) -> None:
        for process in (*self.workers.values(), self.dispatcher):
            _kill(process)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, warm_python) -> Iterator[Cluster]:
    made = Cluster(warm_python, tmp_path_factory.mktemp("service") / "journal")
    try:
        workers = [made.start_worker(index) for index in (0, 1)]
        assert made.dispatcher.stdout.readline().strip() == made.address
        for worker, port in zip(workers, made.ports, strict=False):
            assert worker.stdout.readline().strip() == f"grpc://localhost:{port}"
        yield made
        # A reader that is taken down when its dispatcher is gone waits for it for a minute.
        gc.collect()
    finally:
        made.stop()


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[str]:
    """Files of 25 images each; the first pixel of an image is its number."""
    folder = tmp_path_factory.mktemp("images")
    for number in range(NUM_IMAGES):
        pixels = np.full((2, 2, 3), number, np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    lines = [f"TRAIN,{folder}/{number}.png,all" for number in range(NUM_IMAGES)]
    (folder / "images.csv").write_text("\n".join(["split,image_uri,label", *lines]))
    output = str(folder / "records")
    result = darkroom.convert(str(folder / "images.csv"), output, num_shards=NUM_FILES)
    assert result.written == NUM_IMAGES
    found = sorted(tf.io.gfile.glob(f"{output}/Split-train/*"))
    assert len(found) == NUM_FILES
    return found


def _make_numbers(files: list[str]) -> tf.data.Dataset:
    """Batches of the images' numbers."""

    def parse(record: tf.Tensor) -> tf.Tensor:
        features = {"image/encoded": tf.io.FixedLenFeature([], tf.string)}
        image = tf.io.parse_single_example(record, features)["image/encoded"]
        return tf.io.decode_png(image)[0, 0, 0]

    paths = tf.data.Dataset.from_tensor_slices(files)
    records = paths.interleave(tf.data.TFRecordDataset, cycle_length=1)
    numbers = records.map(parse).batch(BATCH_SIZE)
    options = tf.data.Options()
    # Otherwise a worker reads ahead, sometimes through all of these small files.
    options.experimental_optimization.inject_prefetch = False
    return numbers.with_options(options)


def _read(dataset: tf.data.Dataset) -> list[int]:
    return [number for numbers in dataset for number in numbers.numpy().tolist()]


def test_file_sharding_gives_each_record_once_and_needs_the_workers_addresses(files):
    ports = [_free_port() for _ in range(2)]
    workers = [f"localhost:{port}" for port in ports]
    with ExitStack() as stack:
        address = stack.enter_context(run_dispatcher(0, workers=workers))
        for port in ports:
            stack.enter_context(run_worker(address, port))
        numbers = distribute(_make_numbers(files), address, sharding="file")
        assert Counter(_read(numbers)) == Counter(range(NUM_IMAGES))
        images = make_train_dataset(files, _service_options(address, "file"), epoch=3)
        assert Counter(_read_images(images)) == Counter(range(NUM_IMAGES))


def test_sharing_by_file_without_the_addresses_of_workers_fails_now_and_after_a_restart(
    files, tmp_path
):
    journal, port = str(tmp_path / "journal"), _free_port()
    with run_dispatcher(0, work_dir=journal) as address, run_worker(address, port):
        numbers = distribute(_make_numbers(files), address, sharding="file")
        with pytest.raises(tf.errors.NotFoundError, match="is not in the workers list"):
            _read(numbers)
    with (
        run_dispatcher(0, work_dir=journal) as address,
        pytest.raises(StorageError, match="is not in the workers list") as caught,
        run_worker(address, port),
    ):
        pytest.fail("A worker runs that gets no part of what the journal holds.")
    assert "--work-dir" in caught.value.hint


def _read_images(dataset: tf.data.Dataset) -> list[int]:
    return [n for images, _ in dataset for n in images[:, 0, 0, 0].numpy().tolist()]


def _service_options(address: str, sharding: str, **values) -> InputOptions:
    return InputOptions(
        (2, 2),
        batch_size=BATCH_SIZE,
        augment="flip",
        service=address,
        service_sharding=sharding,
        **values,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("sharding", "times"), [("off", 2), ("dynamic", 1)])
def test_training_batches_of_a_service_hold_each_image_as_often(cluster, files, sharding, times):
    options = _service_options(cluster.address, sharding)
    for epoch in (0, 1):
        seen = _read_images(make_train_dataset(files, options, epoch=epoch))
        assert Counter(seen) == dict.fromkeys(range(NUM_IMAGES), times)
        assert seen != sorted(seen)
    twice = _read_images(input_fn(files, replace(options, repeat=2), training=True))
    assert Counter(twice) == dict.fromkeys(range(NUM_IMAGES), 2 * times)


def test_options_that_a_service_cannot_have_are_errors(files):
    for values in ({"shard": (0, 2)}, {"record_cache": "memory"}):
        with pytest.raises(UsageError, match="which does not go with shard or record_cache"):
            _service_options("grpc://localhost:1", "dynamic", **values)
    with pytest.raises(UsageError, match="service_job_name is 'both', but there is no service"):
        InputOptions((2, 2), service_job_name="both")
    with pytest.raises(UsageError, match="service_job_name is '', expected a name or None"):
        _service_options("grpc://localhost:1", "dynamic", service_job_name="")
    with pytest.raises(UsageError, match="service_sharding is 'auto', expected one of off, dyn"):
        _service_options("grpc://localhost:1", "auto")
    options = _service_options("grpc://localhost:1", "dynamic")
    with pytest.raises(UsageError, match=r"skip_batches is 3, but a tf\.data service has no"):
        make_train_dataset(files, options, epoch=0, skip_batches=3)
    with pytest.raises(UsageError, match="'localhost:1' is not an address"):
        make_train_dataset(files, replace(options, service="localhost:1"))


@pytest.mark.slow
def test_readers_of_one_job_share_its_records(cluster, files):
    datasets = [
        distribute(_make_numbers(files), cluster.address, sharding="dynamic", job_name="shared")
        for _ in range(2)
    ]
    iterators = [iter(dataset) for dataset in datasets]
    first = next(iterators[0]).numpy().tolist()
    assert Counter(first + [n for numbers in iterators for n in _read(numbers)]) == Counter(
        range(NUM_IMAGES)
    )


class Reader(threading.Thread):
    """Reads an epoch to its end, after `pause` only when told to go on."""

    def __init__(self, numbers: tf.data.Dataset, pause: int) -> None:
        super().__init__(daemon=True)
        self.numbers: list[int] = []
        self._pause = pause
        self._dataset = numbers
        self.paused, self.go_on = threading.Event(), threading.Event()
        self.start()
        assert self.paused.wait(_PATIENCE_SECONDS)

    def run(self) -> None:
        for count, numbers in enumerate(self._dataset, start=1):
            self.numbers += numbers.numpy().tolist()
            if count == self._pause:
                self.paused.set()
                self.go_on.wait(_PATIENCE_SECONDS)


# On a busy machine, TensorFlow's client sometimes needs more than half a minute.
@pytest.mark.long
def test_an_epoch_continues_when_the_dispatcher_is_killed_and_started_again(cluster, files):
    numbers = distribute(_make_numbers(files), cluster.address, sharding="dynamic")
    reader = Reader(numbers, pause=4)
    _kill(cluster.dispatcher)
    reader.go_on.set()
    restarted = cluster.start_dispatcher()
    assert restarted.stdout.readline().strip() == cluster.address
    reader.join(_PATIENCE_SECONDS)
    assert not reader.is_alive()
    assert Counter(reader.numbers) == Counter(range(NUM_IMAGES))


@pytest.mark.parametrize(
    "address",
    ["localhost:5050", "http://localhost:5050", "grpc://localhost", "grpc://:5050", "grpc://a:b"],
)
def test_an_address_has_one_form(address):
    with pytest.raises(UsageError, match=r"is not an address of a tf\.data service"):
        distribute(tf.data.Dataset.range(1), address, sharding="off")
    assert parse_address("grpc://machine.local:5050") == ("machine.local", 5050)


def test_wrong_arguments():
    numbers = tf.data.Dataset.range(1)
    with pytest.raises(UsageError, match="sharding is 'auto', expected one of off, dynamic, file"):
        distribute(numbers, "grpc://localhost:1", sharding="auto")
    with pytest.raises(UsageError, match="job_name is empty"):
        distribute(numbers, "grpc://localhost:1", sharding="off", job_name="")


def _answer(server: socket.socket, data: bytes | None) -> None:
    connections = []
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        connections.append(connection)  # Without an answer it stays open.
        if data is not None:
            connection.sendall(data)
            connection.close()


@pytest.mark.parametrize(
    "data", [b"HTTP/1.1 400 Bad Request\r\n\r\n", None], ids=["another server", "no answer"]
)
def test_what_is_not_a_dispatcher_is_an_error_within_the_deadline(data):
    with socket.create_server(("localhost", 0)) as server:
        threading.Thread(target=_answer, args=(server, data), daemon=True).start()
        address = f"grpc://localhost:{server.getsockname()[1]}"
        with pytest.raises(StorageError, match=f"answers at {address} within"):
            check_dispatcher(address, timeout_seconds=0.5)


def test_an_address_where_nothing_listens_is_an_error_within_the_deadline():
    with pytest.raises(StorageError, match=r"No dispatcher .* within 0\.5 s\."):
        distribute(
            tf.data.Dataset.range(1),
            f"grpc://localhost:{_free_port()}",
            sharding="off",
            timeout_seconds=0.5,
        )


def test_a_port_that_is_taken_and_the_form_of_errors(capsys):
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        assert main(["dataservice", "dispatcher", "--port", str(port), "--json"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["message"].startswith(f"Port {port} cannot be used: ")
    assert main(["dataservice", "worker", "--dispatcher", "here", "--port", str(port)]) == 2
    assert "'here' is not an address of a tf.data service." in capsys.readouterr().err


@pytest.mark.parametrize("port", [80_000, -1])
def test_a_port_that_is_none_is_an_error(port, capsys):
    assert main(["dataservice", "dispatcher", f"--port={port}"]) == StorageError.exit_code
    assert f"Port {port} cannot be used: " in capsys.readouterr().err


@pytest.mark.parametrize("dispatcher", ["grpc://input-0:5050", "grpc://10.0.0.1:5050"])
def test_a_worker_needs_a_name_that_others_know(dispatcher, capsys):
    command = ["dataservice", "worker", "--dispatcher", dispatcher, "--port", "5051"]
    assert main(command) == UsageError.exit_code
    assert "host is 'localhost', which other machines take for" in capsys.readouterr().err


# tests/cli/test_streams.py has how commands end by a signal.
@pytest.mark.long
def test_a_stopped_service_has_printed_only_its_address():
    port = _free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "darkroom.cli", "dataservice", "dispatcher", f"--port={port}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == f"grpc://localhost:{port}\n"
    process.terminate()
    out, err = process.communicate(timeout=_PATIENCE_SECONDS)
    assert (process.returncode, out) == (128 + signal.SIGTERM, "")
    # TensorFlow's dispatcher may have counted its workers already: there is none.
    said = [line for line in err.splitlines() if "dispatcher_impl.cc" not in line]
    assert said == ["Ended by SIGTERM."]


@pytest.mark.parametrize("name", ["datasets/thesis.txt", "datasets"])
def test_a_folder_of_the_user_is_not_taken_for_a_journal(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"mine")
    with (
        pytest.raises(OutputError, match=r"did not write.*: datasets") as stop,
        run_dispatcher(0, work_dir=str(tmp_path)),
    ):
        pass
    assert stop.value.hint == "Choose another folder with --work-dir."
    assert (tmp_path / name).read_bytes() == b"mine"


def test_the_code_of_the_guide_runs(cluster, tmp_path, monkeypatch):
    write_given(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    place = {"grpc://input-0:5050": cluster.address, '"records': f'"{tmp_path}/records'}
    names: dict = {}
    run_page("docs/guides/data-service.md", {"tests/input/test_service.py"}, names, "", place)
    assert next(iter(names["batches"]))[0].shape == (12, 16, 16, 3)
