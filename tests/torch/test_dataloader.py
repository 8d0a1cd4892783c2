"""The reader behind PyTorch's DataLoader: order, workers, processes, states."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import darkroom
from darkroom.errors import DataError, UsageError
from darkroom.options import InputOptions

from .conftest import DARKEST, EVALUATED, TRAINED, write_records

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
EPOCH = TRAINED // 16


def open_split(records, split="train", rank=0, world=1, columns=("number",), **given):
    options = InputOptions((8, 8), batch_size=16 // world, augment="crop,flip", shard=(rank, world))
    given = {"options": options, "columns": columns, "framework": "torch"} | given
    return darkroom.load(records, training=True, **given)[split]


def make_loader(dataset, workers=1, **given):
    return torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers, **given)


def are_equal(one, other):
    return torch.equal(one[0], other[0]) and torch.equal(one[1], other[1])


@pytest.fixture(scope="module")
def epochs(records):
    """The first three epochs without a worker."""
    dataset = open_split(records)
    return [list(dataset) for _ in range(3)]


def test_images_have_the_labels_and_columns_of_their_records(records, epochs):
    for images, labels, columns in [*epochs[0], *open_split(records, "eval")]:
        numbers = columns["number"]
        assert (images.dtype, labels.dtype) == (torch.uint8, torch.int64)
        assert images.shape == (len(numbers), 3, 8, 8)
        assert images.is_contiguous(memory_format=torch.channels_last)
        shown = images.float().mean((1, 2, 3)) - DARKEST
        assert (shown - numbers).abs().max() < 2
        assert torch.equal(labels, numbers % 3)


@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (1, True), (3, False)])
def test_epochs_come_in_order_for_any_workers_without_set_epoch(
    records, epochs, workers, persistent
):
    dataset = open_split(records)
    loader = make_loader(dataset, workers, persistent_workers=persistent)
    assert len(loader) == len(dataset) == len(epochs[0])
    for expected in epochs:
        found = list(loader)
        assert len(found) == len(expected)
        assert all(map(are_equal, found, expected))
    dataset.set_epoch(1)
    assert are_equal(next(iter(loader)), epochs[1][0])


@pytest.mark.parametrize("given", [{}, {"num_workers": 2, "multiprocessing_context": "spawn"}])
def test_to_loader_has_these_batches_in_their_order(records, epochs, given):
    loader = open_split(records).to_loader(**given)
    assert isinstance(loader, torch.utils.data.DataLoader)
    assert loader.num_workers == given.get("num_workers", 0)
    assert len(loader) == len(epochs[0])
    for expected in epochs:
        found = list(loader)
        assert all(map(are_equal, found, expected))
        if not given:
            loader.dataset._processes._begun.join()


def test_processes_of_a_worker_decode_the_same(records, epochs):
    options = InputOptions((8, 8), batch_size=16, augment="crop,flip", num_threads=4)
    loader = make_loader(open_split(records, options=options), persistent_workers=True)
    for expected in epochs:
        assert all(map(are_equal, list(loader), expected))


def test_to_loader_divides_the_cores(records, monkeypatch):
    monkeypatch.setattr("darkroom.reader.loader.count_cores", lambda: 16)
    changed = {"transform": lambda image: image, "columns": ()}
    assert open_split(records)._count_cores() == 16
    assert open_split(records, **changed).to_loader().num_workers == 8
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert open_split(records)._count_cores() == 4
    assert open_split(records, **changed).to_loader().num_workers == 2
    with pytest.raises(UsageError, match="to_loader got batch_size=8"):
        open_split(records).to_loader(batch_size=8)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_an_epoch_has_every_record_once(records, epochs, workers):
    for split, numbers in (("train", range(150)), ("eval", range(150, 175))):
        batches = make_loader(open_split(records, split), workers)
        found = torch.cat([columns["number"] for *_, columns in batches])
        assert sorted(found.tolist()) == list(numbers)
    orders = [torch.cat([batch[2]["number"] for batch in epoch]) for epoch in epochs]
    assert not torch.equal(orders[0], orders[1])


@pytest.mark.parametrize("world", [1, 2, 4])
def test_an_epoch_goes_on_with_another_number_of_processes(records, epochs, world):
    dataset = open_split(records)
    dataset.set_epoch(2)
    batches = iter(make_loader(dataset, persistent_workers=True))
    for _ in range(4):
        next(batches)
    state = json.loads(json.dumps(dataset.state_dict(4)))
    assert (state["epoch"], state["position"]) == (2, 64)
    parts = []
    for rank in range(world):
        resumed = open_split(records, rank=rank, world=world)
        resumed.load_state_dict(state)
        loader = make_loader(resumed, persistent_workers=True)
        parts.append(list(loader))
        taken = resumed.state_dict(len(parts[-1]))
        assert (taken["epoch"], taken["position"]) == (3, 0)
        # The next epoch is a whole one.
        assert len(list(loader)) == len(resumed)
    for number, expected in enumerate(epochs[2][4:EPOCH]):
        for rank, part in enumerate(parts):
            own = slice(rank, None, world)
            assert torch.equal(part[number][0], expected[0][own])
            assert torch.equal(part[number][2]["number"], expected[2]["number"][own])


def test_a_state_of_other_data_is_refused(records, tmp_path):
    state = open_split(records).state_dict()
    other = open_split(write_records(tmp_path, 60))
    with pytest.raises(UsageError, match=f"state is of the commit {state['commit']}"):
        other.load_state_dict(state)
    with pytest.raises(UsageError, match="This is not the state of a loader"):
        other.load_state_dict({"epoch": 1})
    dataset = open_split(records)
    next(iter(make_loader(dataset)))
    with pytest.raises(UsageError, match="needs the number of batches"):
        dataset.state_dict()


def test_data_that_was_opened_before_its_process_had_a_rank_is_refused(records, monkeypatch):
    """As at the top of a script, of which Lightning starts more processes later."""
    dataset, given = open_split(records), open_split(records, rank=1, world=2)
    begun = iter(make_loader(dataset, workers=0))
    for name, value in {"is_initialized": True, "get_rank": 1, "get_world_size": 2}.items():
        monkeypatch.setattr(torch.distributed, name, lambda value=value: value)
    for use in (len, lambda dataset: next(iter(dataset)), lambda dataset: next(begun)):
        with pytest.raises(
            UsageError, match="opened as process 0 of 1, and this is process 1 of 2"
        ):
            use(dataset)
    assert len(list(given)) == len(given) == len(open_split(records, rank=1, world=2))


@pytest.mark.parametrize("workers", [0, 1])
def test_two_processes_evaluate_as_many_batches_and_every_image_once(records, workers):
    numbers, lengths = [], []
    for rank in range(2):
        batches = list(make_loader(open_split(records, "eval", rank, 2), workers))
        lengths.append([len(labels) for _, labels, *_ in batches])
        for _, _, columns, weights in batches:
            assert weights.dtype == torch.float32
            numbers += columns["number"][weights == 1].tolist()
            assert set(weights.tolist()) <= {0, 1}
    assert lengths[0] == lengths[1] == [8, 8]
    assert sorted(numbers) == list(range(TRAINED, TRAINED + EVALUATED))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_damaged_record_is_named_through_a_worker(records, tmp_path, workers):
    shutil.copytree(records, tmp_path / "records")
    [shard, *_] = sorted((tmp_path / "records" / "Split-eval").iterdir())
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    loader = make_loader(open_split(tmp_path / "records", "eval"), workers)
    with pytest.raises(DataError, match=rf"{shard.name}.*record [0-9]+") as caught:
        list(loader)
    assert "damaged" in str(caught.value) or "checksum" in str(caught.value)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_of_numpy_is_not_for_the_dataloader(records, workers):
    batches = darkroom.load(records, image_size=8, framework="numpy")["train"]
    with pytest.raises(UsageError, match=r"no items by number.*\"torch\""):
        next(iter(make_loader(batches, workers)))


def test_the_first_batch_does_not_wait_for_pandas(records):
    code = """
import sys, darkroom
batch = next(iter(darkroom.load(sys.argv[1], image_size=8, framework="torch")["train"]))
sys.exit("pandas" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code, str(records)], check=True)


TRAINEE = Path(__file__).with_name("trainee.py")
JOB = Path(__file__).parents[2] / "kubernetes/components/trainer/pytorch.yaml"


def start_nodes(records, folder, stop):
    """Starts the nodes of the TrainJob, with the environment that Kubeflow Trainer 2.3 gives them.

    See `EnforceMLPolicy` in pkg/runtime/framework/plugins/torch/torch.go. There a node has a
    process for each GPU, or else for each CPU that it asks for.
    """
    trainer = yaml.safe_load(JOB.read_text())["spec"]["trainer"]
    assert (trainer["command"][0], trainer["numNodes"]) == ("torchrun", 2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "NNODES": 2, "NPROC_PER_NODE": 1}
    torchrun = [sys.executable, "-m", "torch.distributed.run"]
    return [
        subprocess.Popen(
            [*torchrun, str(TRAINEE), str(records), str(folder), stop],
            env=os.environ
            | {f"PET_{key}": str(each) for key, each in {**told, "NODE_RANK": node}.items()},
        )
        for node in range(2)
    ]


def test_a_dataset_that_was_replaced_is_named_through_a_worker_that_stays(tmp_path):
    folder = write_records(tmp_path, 40)
    loader = make_loader(open_split(folder), persistent_workers=True)
    images = torch.utils.data.DataLoader(open_split(folder).images, num_workers=2)
    list(loader)
    darkroom.convert(tmp_path / "list.jsonl", folder, overwrite=True, seed=1)
    for each in (loader, images):
        with pytest.raises(DataError, match="was replaced while it was read"):
            list(each)


def test_a_killed_training_of_two_nodes_has_the_batches_of_an_undisturbed_one(
    records, epochs, tmp_path
):
    # Nobody ends the other node.
    assert [each.wait(60) for each in start_nodes(records, tmp_path, "1")] == [1, 1]
    assert [each.wait(60) for each in start_nodes(records, tmp_path, "")] == [0, 0]
    found = {}
    for rank in range(2):
        for line in (tmp_path / f"{rank}.jsonl").read_text().splitlines():
            epoch, number, numbers, total = json.loads(line)
            # What was done after the last checkpoint is done again, with the same images.
            assert found.setdefault((epoch, number, rank), (numbers, total)) == (numbers, total)
    assert len(found) == 2 * 3 * EPOCH
    for (epoch, number, rank), (numbers, total) in found.items():
        images, _, columns = epochs[epoch][number]
        assert numbers == columns["number"][rank::2].tolist()
        assert total == images.long().sum()
