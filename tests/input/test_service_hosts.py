"""tf.data service between machines: each process has a network namespace of its own."""

from __future__ import annotations

import json
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import darkroom

from ..engines.network import Machine, find_obstacle, make_machines
from ..engines.processes import Processes, wait_until

pytestmark = [pytest.mark.tensorflow, pytest.mark.long]

# More than a worker reads ahead: without shuffling records, some ten batches, each of a file.
NUM_IMAGES, NUM_FILES, BATCH_SIZE = 1_000, 200, 5
ALL = Counter(range(NUM_IMAGES))
HALF = NUM_IMAGES // 2
# A limit for waits that would never end. No test depends on it.
PATIENCE_SECONDS = 300
TRAINER = Path(__file__).with_name("trainer.py")
CONNECTED = "01"


class Hosts(Processes):
    """A dispatcher, two workers and two trainings, a machine for each."""

    def __init__(self, folder: Path, files: list[str], machines: list[Machine]) -> None:
        super().__init__(folder)
        self.dispatcher, self.workers, self.trainers = machines[0], machines[1:3], machines[3:5]
        self.address = f"grpc://{self.dispatcher.address}:5050"
        self._files = files

    def start_service(self) -> None:
        journal, host = str(self.folder / "journal"), self.dispatcher.address
        command = ["dispatcher", "--port", "5050", "--host", host, "--work-dir", journal]
        self._serve("dispatcher", self.dispatcher, *command)
        for number in (0, 1):
            self.start_worker(number)

    def start_worker(self, number: int) -> None:
        machine = self.workers[number]
        command = ["worker", "--dispatcher", self.address, "--port", "5051"]
        self._serve(f"worker {number}", machine, *command, "--host", machine.address)

    def _serve(self, name: str, machine: Machine, *command: str) -> None:
        before = self.read_log(name).count("grpc://") if name in self._list_logs() else 0
        program = [sys.executable, "-m", "darkroom.cli", "dataservice", *command]
        self.start(name, [*machine.prefix, *program])
        self.wait(lambda: self.read_log(name).count("grpc://") > before, name)

    def _list_logs(self) -> set[str]:
        return {path.stem for path in self.folder.glob("*.log")}

    def train(self, number: int, epochs: int = 1, steps: int = -1, **options: Any) -> Trainer:
        """Starts a training, and waits until it has its first batch."""
        return Trainer(self, number, {"epochs": epochs, "steps": steps}, options)

    def start_trainer(self, name: str, number: int, values: dict[str, Any]) -> None:
        options = {"batch_size": BATCH_SIZE, "cycle_length": 1, "shuffle_records": 0}
        options["service"] = self.address
        values = {**values, "files": self._files, "options": {**options, **values["options"]}}
        command = [sys.executable, str(TRAINER), json.dumps(values)]
        self.start(name, [*self.trainers[number].prefix, *command])

    def wait(self, is_done: Any, what: str) -> None:
        wait_until(is_done, what, PATIENCE_SECONDS)


class Trainer:
    """A training: what it has got, and whether it has ended."""

    def __init__(
        self, hosts: Hosts, number: int, values: dict[str, int], options: dict[str, Any]
    ) -> None:
        self._hosts = hosts
        self._name = f"training {len(hosts._list_logs())}"
        self._go = hosts.folder / f"{self._name}.go"
        values = {**values, "options": options, "go": str(self._go)}
        hosts.start_trainer(self._name, number, values)
        self._hosts.wait(lambda: self.count() or self.has_stopped, self._name)
        assert self.count(), hosts.read_log(self._name)

    def go_on(self) -> None:
        self._go.touch()

    def count(self, epoch: int = 0) -> Counter[int]:
        """How often it has got each image in an epoch."""
        lines = [line for line in self._hosts.read_log(self._name).splitlines() if line[:1] == "["]
        batches = [json.loads(line) for line in lines if line.endswith("]")]
        return Counter(each for found, *images in batches if found == epoch for each in images)

    @property
    def has_ended(self) -> bool:
        return "The end." in self._hosts.read_log(self._name)

    @property
    def has_stopped(self) -> bool:
        return self._hosts.processes[self._name].poll() is not None

    def join(self) -> None:
        """Waits for its end."""
        self.go_on()
        self._hosts.wait(lambda: self.has_stopped, f"the end of {self._name}")
        assert self.has_ended, self._hosts.read_log(self._name)

    def list_peers(self) -> set[str]:
        """The addresses of the machines to which it is connected."""
        net = Path(f"/proc/{self._hosts.processes[self._name].pid}/net")
        lines = [line.split() for name in ("tcp", "tcp6") for line in (net / name).open()]
        found = [line[2].partition(":")[0] for line in lines if line[3] == CONNECTED]
        # The last four bytes are the address of IPv4, the lowest first.
        return {socket.inet_ntoa(bytes.fromhex(each[-8:])[::-1]) for each in found}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Files of 5 images each; the pixels of an image have its number in red and green."""
    folder = tmp_path_factory.mktemp("images")
    lines = ["split,image_uri,label"]
    for number in range(NUM_IMAGES):
        pixels = np.full((2, 2, 3), (number % 256, number // 256, 0), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
        lines.append(f"TRAIN,{folder}/{number}.png,{number % 2}")
    (folder / "images.csv").write_text("\n".join(lines))
    records = folder / "records"
    darkroom.convert(str(folder / "images.csv"), str(records), num_shards=NUM_FILES)
    found = sorted(map(str, (records / "Split-train").iterdir()))
    assert len(found) == NUM_FILES
    return found


@pytest.fixture(scope="module")
def hosts(files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    if obstacle := find_obstacle():
        pytest.skip(obstacle)
    with make_machines(5) as machines:
        made = Hosts(tmp_path_factory.mktemp("hosts"), files, machines[1:])
        try:
            made.start_service()
            yield made
        finally:
            made.stop()


def test_each_training_gets_every_image_once_from_both_workers(hosts: Hosts):
    trainings = [hosts.train(number) for number in (0, 1)]
    both = {machine.address for machine in hosts.workers}
    for training in trainings:
        hosts.wait(lambda each=training: both <= each.list_peers(), "connections to both workers")
    for training in trainings:
        training.join()
        assert training.count() == ALL


def test_trainings_with_one_name_share_every_pass(hosts: Hosts):
    shared = {"epochs": 2, "service_job_name": "shared"}
    first, second = [hosts.train(number, **shared) for number in (0, 1)]
    first.go_on()
    second.join()
    first.join()
    for epoch in (0, 1):
        assert first.count(epoch) + second.count(epoch) == ALL
    assert first.count(0)
    assert second.count(0)


def test_only_who_counts_epochs_waits_for_a_worker_that_was_lost(hosts: Hosts):
    by_epoch, by_steps = hosts.train(0), hosts.train(1, steps=3 * NUM_FILES, repeat=None)
    hosts.kill("worker 1")
    by_steps.join()
    assert by_steps.count().keys() == ALL.keys()
    by_epoch.go_on()
    hosts.wait(lambda: by_epoch.count().total() > HALF, "what the other worker gives")
    assert not by_epoch.has_stopped
    hosts.start_worker(1)
    by_epoch.join()
    assert set(by_epoch.count().values()) == {1}
    later = hosts.train(0)
    later.join()
    assert later.count() == ALL


def test_a_worker_without_network_loses_nothing(hosts: Hosts):
    training = hosts.train(0)
    with hosts.workers[0].cut_off():
        training.go_on()
        hosts.wait(lambda: training.count().total() > HALF, "what the other worker gives")
        assert not training.has_stopped
    training.join()
    assert training.count() == ALL


def test_a_worker_elsewhere_needs_a_name_that_others_know(hosts: Hosts):
    command = ["dataservice", "worker", "--dispatcher", hosts.address, "--port", "5052"]
    program = [*hosts.trainers[0].prefix, sys.executable, "-m", "darkroom.cli", *command]
    hosts.start("nameless", program)
    hosts.wait(lambda: hosts.processes["nameless"].poll() is not None, "the end of the worker")
    assert hosts.processes["nameless"].returncode == 2
    said = hosts.read_log("nameless")
    assert "host is 'localhost', which other machines take for themselves." in said
    assert "--host" in said
