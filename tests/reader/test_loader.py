"""Batches, epochs and states of a split, without a framework."""

from __future__ import annotations

import os
import pickle
import shutil
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import darkroom
from darkroom.conversion.convert import convert
from darkroom.dataset.index import read_index
from darkroom.errors import DataError, MissingExtraError, UsageError
from darkroom.options import ConversionOptions, InputOptions

from .conftest import COLUMNS

pytest.importorskip("cv2")


def load(records: Path | str, split: str = "train", **arguments):
    arguments = {"image_size": 16, "batch_size": 8, "training": True, "augment": "none"} | arguments
    return darkroom.load(records, framework="numpy", **arguments)[split]


def list_names(loader) -> list[str]:
    return [name for batch in loader for name in batch[2]["image/filename"]]


def test_a_loader_has_every_image_once_with_its_label_and_columns(records, photos):
    for training in (False, True):
        loader = load(records, training=training, columns=["image/filename", "price"])
        batches = list(loader)
        assert [len(batch[0]) for batch in batches] == [8] * 9 + [3]
        assert len(loader) == 10
        assert batches[0][0].shape == (8, 16, 16, 3)
        assert batches[0][0].dtype == np.uint8
        got = {
            (name, "abc"[label], price)
            for _, labels, columns in batches
            for name, label, price in zip(
                columns["image/filename"], labels, columns["price"], strict=True
            )
        }
        train = photos[photos.split == "train"]
        names = [Path(uri).name for uri in train.image_uri]
        assert {(Path(name).name, *rest) for name, *rest in got} == {
            *zip(names, train.label, train.price, strict=True)
        }
    assert loader.class_names == ("a", "b", "c")
    assert loader.num_classes == 3


def test_each_iteration_is_the_next_epoch_and_an_evaluation_is_always_the_same(records):
    loader = load(records, columns=["image/filename"])
    epochs = [list_names(loader) for _ in range(3)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(epochs[2])
    assert epochs[0] != epochs[1] != epochs[2]
    loader.set_epoch(1)
    assert list_names(loader) == epochs[1]
    assert list_names(loader) == epochs[2]
    evaluation = load(records, "eval", columns=["image/filename"])
    assert list_names(evaluation) == list_names(evaluation)


def test_a_state_goes_on_in_the_middle_with_any_number_of_processes(records):
    whole = load(records, columns=["image/filename"], batch_size=12)
    whole.set_epoch(4)
    names = list_names(whole)
    whole.set_epoch(4)
    batches = iter(whole)
    assert (
        list(next(batches)[2]["image/filename"] + next(batches)[2]["image/filename"]) == names[:24]
    )
    state = whole.state_dict()
    assert {k: state[k] for k in ("epoch", "position", "seed")} == {
        "epoch": 4,
        "position": 24,
        "seed": 0,
    }
    parts = []
    for rank in range(3):
        options = InputOptions((16, 16), shard=(rank, 3))
        part = load(records, columns=["image/filename"], batch_size=4, options=options)
        part.load_state_dict(pickle.loads(pickle.dumps(state)))
        # As trainers do, whether they resume or not.
        part.set_epoch(4)
        parts.append(list_names(part))
    together = [name for names in zip(*parts, strict=True) for name in names]
    # 75 images: three fill no batch of all processes.
    assert together == names[24:72]
    assert part.dropped == 3
    assert part.state_dict()["epoch"] == 5
    assert len(part) == 6


def test_a_state_of_another_dataset_or_order_is_refused(records, tmp_path, photos):
    state = load(records).state_dict()
    convert(photos[:50], tmp_path / "other", columns=COLUMNS)
    for other, wrong in (
        (load(tmp_path / "other"), "commit"),
        (load(records, options=InputOptions((8, 8), seed=1)), "seed"),
        (load(records, order="window"), "order"),
    ):
        with pytest.raises(UsageError, match=f"The state is of the {wrong} "):
            other.load_state_dict(state)
    for odd in ({}, None, {"epoch": 1}):
        with pytest.raises(UsageError, match="not the state of a loader"):
            load(records).load_state_dict(odd)
    for position in (-1, 75, 10**9, 10**30):
        with pytest.raises(
            UsageError, match=r"position is .*, expected a whole number from 0 to 74"
        ):
            load(records).load_state_dict({**state, "position": position})


def test_processes_that_share_an_evaluation_have_as_many_batches_and_weights(records):
    parts = []
    for rank in range(2):
        options = InputOptions((16, 16), shard=(rank, 2))
        part = load(records, "eval", options=options, columns=["image/filename"])
        parts.append(list(part))
    assert [len(part) for part in parts] == [2, 2]
    assert {batch[0].shape[0] for part in parts for batch in part} == {8}
    real = [
        name
        for part in parts
        for *_, columns, weights in part
        for name, weight in zip(columns["image/filename"], weights, strict=True)
        if weight
    ]
    assert sorted(real) == sorted(list_names(load(records, "eval", columns=["image/filename"])))


def test_a_batch_that_does_not_fit_is_named(records):
    with pytest.raises(DataError, match="75 records, fewer than a batch of 40 for each of 2"):
        load(records, batch_size=40, options=InputOptions((8, 8), shard=(0, 2)))
    with pytest.raises(DataError, match="fewer than a batch of 1 for each of 100"):
        load(records, batch_size=1, options=InputOptions((8, 8), shard=(7, 100)))


def test_images_by_number_are_those_of_an_evaluation(records):
    loader = load(records, "eval", columns=["price"])
    images = pickle.loads(pickle.dumps(loader.images))
    [(pixels, labels, columns), *_] = loader
    assert len(images) == 25
    for number in (0, 7):
        image, label, price = images[number]
        assert np.array_equal(image, pixels[number])
        assert (label, price["price"]) == (labels[number], columns["price"][number])
    assert np.array_equal(images[-1][0], images[24][0])
    with pytest.raises(IndexError, match="there is no image 25: there are 25"):
        images[25]


def test_a_transform_gets_each_image_and_may_keep_its_size(records, photos):
    sizes = []

    def shrink(image: np.ndarray) -> np.ndarray:
        sizes.append(image.shape)
        return image[:2, :3].astype(np.float32)

    [batch, *_] = load(records, transform=shrink, augment=None)
    assert batch[0].shape == (8, 2, 3, 3)
    assert batch[0].dtype == np.float32
    assert set(sizes) == {(16, 16, 3)}
    keep = {"image_size": None, "transform": lambda image: image, "augment": None}
    loader = load(records, columns=["price"], **keep)
    index = read_index(str(records / "index"))
    known = {*zip(index["height"].to_pylist(), index["width"].to_pylist(), strict=True)}
    [batch, *_] = loader
    assert len(batch) == 8
    assert {image.shape[:2] for image, _, _ in batch} <= known
    assert all(label in (0, 1, 2) for _, label, _ in batch)
    by_price = {2 * columns["price"]: image.shape[:2] for image, _, columns in batch}
    for number, shape in by_price.items():
        with Image.open(photos.image_uri[int(number)]) as picture:
            assert picture.size == shape[::-1]


def test_a_transform_does_not_go_with_mixup(records):
    with pytest.raises(UsageError, match="mixup"):
        load(records, transform=lambda image: image, augment="mixup")
    # Nothing random that was not asked for.
    plain = load(records, transform=lambda image: image, augment=None)
    assert np.array_equal(next(iter(plain))[0], next(iter(load(records)))[0])


def test_each_split_may_have_a_transform(records):
    data = darkroom.load(
        records,
        image_size=8,
        training=True,
        framework="numpy",
        augment="none",
        transform={"train": lambda image: image[:4], "validation": lambda image: image[:2]},
    )
    assert next(iter(data["train"]))[0].shape == (32, 4, 8, 3)
    assert next(iter(data["eval"]))[0].shape == (25, 2, 8, 3)
    # Without one, images are as they are stored.
    [batch, *_] = load(records, "eval", image_size=None, transform={})
    assert all(image.dtype == np.uint8 and image.ndim == 3 for image, _ in batch)


@pytest.mark.parametrize(
    ("transform", "said"),
    [
        (lambda image: 1 / 0, "transform failed with record .* of .*: ZeroDivisionError"),
        (lambda image: image[: image.mean().astype(int)], "makes no batch: all input arrays must"),
        (lambda image: None, "makes no batch: NoneType is not an array"),
        (lambda image: {"image": image}, "makes no batch: dict is not an array"),
        ("flip", "transform is 'flip', expected a function"),
    ],
)
def test_a_transform_that_fails_is_said(records, transform, said):
    with pytest.raises(UsageError, match=said):
        next(iter(load(records, transform=transform, image_size=200)))


def test_options_are_taken_by_name(records):
    loader = load(records, seed=3, resize="center_crop", options=InputOptions((9, 9), seed=1))
    same = load(records, options=InputOptions((9, 9), seed=3, resize="center_crop"))
    assert loader.state_dict() == same.state_dict()
    assert np.array_equal(next(iter(loader))[0], next(iter(same))[0])


def test_a_loader_says_that_it_has_no_items(records):
    with pytest.raises(UsageError, match=r"Take single images from .images, and .*\"torch\""):
        load(records)[0]


def test_a_count_that_an_epoch_does_not_have_is_refused(records):
    loader = load(records)
    assert repr(loader) == "Loader(train, 75 images, 10 batches)"
    batches = iter(loader)
    next(batches)
    loader.load_state_dict(loader.state_dict(4))
    assert len(list(loader)) == 6
    # From here on, six batches are all.
    assert (loader.state_dict(5)["position"], loader.state_dict(6)["epoch"]) == (72, 1)
    with pytest.raises(UsageError, match="got 7 batches, and this iteration has 6"):
        loader.state_dict(7)


def test_batches_that_another_process_began_are_refused(records):
    batches = iter(load(records))
    next(batches)
    child = os.fork()
    if not child:
        try:
            next(batches)
        except UsageError as error:
            os._exit(0 if "begun in another process" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert len(list(batches)) == 9


def test_several_threads_may_take_batches_of_one_iterator(records):
    batches, taken = iter(load(records, columns=["image/filename"])), []

    def take() -> None:
        taken.extend(batch[2]["image/filename"] for batch in batches)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({name for names in taken for name in names}) == 75


def test_a_damaged_record_is_named(records, tmp_path):
    folder = shutil.copytree(records, tmp_path / "records")
    [file] = (folder / "Split-eval").iterdir()
    index = read_index(str(folder / "index")).to_pylist()
    row = [row for row in index if row["split"] == "eval"][7]
    place = row["offset"] + row["length"] - 100
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)
    loader = load(folder, "eval")
    with pytest.raises(DataError, match=r"data_tfrecord-00000-of-00001: record 7 is damaged"):
        list(loader)
    assert loader.images[6][0].shape == (16, 16, 3)


def test_a_file_or_an_index_that_is_gone_is_named(records, tmp_path):
    folder = shutil.copytree(records, tmp_path / "records")
    loader = load(folder, "eval")
    list(loader)
    [file] = (folder / "Split-eval").iterdir()
    file.unlink()
    with pytest.raises(DataError, match=f"{file.name} is missing"):
        list(loader)
    folder = shutil.copytree(records, tmp_path / "again")
    first = sorted((folder / "index").iterdir())[0]
    first.unlink()
    with pytest.raises(DataError, match=f"{first.name} is missing: the index says where"):
        load(folder)


@pytest.fixture
def replaceable(tmp_path) -> Path:
    """A dataset of equally long records in 8 files; see `replace`."""
    for number in range(64):
        Image.new("L", (8, 8), 3 * number).save(tmp_path / f"{number:02d}.png")
    replace(tmp_path / "records", "abcd" * 16)
    return tmp_path / "records"


def replace(folder: Path, labels: str) -> None:
    """Makes a dataset of the same images with other labels, in another order."""
    rows = [(str(folder.parent / f"{n:02d}.png"), label, "train") for n, label in enumerate(labels)]
    options = ConversionOptions(encoding="raw", num_shards=8, seed=len(set(labels[:4])))
    table = pd.DataFrame(rows, columns=["image_uri", "label", "split"])
    convert(table, folder, overwrite=True, options=options)


@pytest.mark.parametrize("order", ["exact", "window"])
def test_a_dataset_that_is_replaced_in_an_epoch_is_never_mixed(replaceable, order):
    options = InputOptions((8, 8), num_threads=1, prefetch=0)
    loader = load(replaceable, order=order, options=options, training=order == "window")
    batches = iter(loader)
    images, labels = next(batches)
    assert [value // 3 % 4 for value in images[:, 0, 0, 0]] == [*labels]
    replace(replaceable, "aabbccdd" * 8)
    for rest in (batches, loader):
        with pytest.raises(DataError, match="was replaced while it was read"):
            list(rest)


def test_a_dataset_that_is_replaced_after_all_files_were_opened_ends_the_epoch(replaceable):
    loader = load(replaceable)
    os.utime(replaceable / "dataset.json")  # the same dataset
    batches = iter(loader)
    assert len([next(batches) for _ in range(len(loader))]) == 8
    replace(replaceable, "aabbccdd" * 8)
    with pytest.raises(DataError, match="was replaced while it was read"):
        next(batches)


def test_single_images_of_a_dataset_that_is_replaced_are_never_mixed(replaceable):
    images = load(replaceable).images
    before = images[0]
    replace(replaceable, "aabbccdd" * 8)
    for reader in (images, pickle.loads(pickle.dumps(images))):
        with pytest.raises(DataError, match="was replaced while it was read"):
            reader[63]
    # Its file was open.
    assert np.array_equal(images[0][0], before[0])


def test_records_without_a_label_are_counted(records, tmp_path):
    folder = shutil.copytree(records, tmp_path / "records")
    path = str(sorted((folder / "index").iterdir())[-1])
    index = pq.read_table(path)
    labels = pa.array([None, None, *index["label"].to_pylist()[2:]], pa.string())
    pq.write_table(index.set_column(index.column_names.index("label"), "label", labels), path)
    with pytest.raises(DataError, match=f"{path} has 2 records without label"):
        load(folder)


def test_data_that_cannot_be_read_by_its_places_is_refused(photos, records, tmp_path):
    convert(photos[:20], tmp_path / "gz", options=ConversionOptions(compression="gzip"))
    with pytest.raises(UsageError, match="is compressed"):
        load(tmp_path / "gz")
    with pytest.raises(UsageError, match="which applies to a converted dataset, not to a list"):
        load(photos, training=False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"framework": "jax"}, "framework is 'jax', expected one of tensorflow, numpy, torch"),
        ({"order": "random"}, "order is 'random', expected one of exact, window"),
        ({"image_size": None}, "image_size is missing"),
        ({"columns": "price"}, "columns is 'price', expected a list"),
        ({"columns": ["none"]}, "columns names 'none', which the records do not have"),
        ({"columns": ["image/class/label"]}, "which the records do not have beside their labels"),
        ({"columns": 5}, "columns is 5, expected a list"),
        ({"options": InputOptions((8, 8), record_cache="memory")}, "record_cache is 'memory'"),
        ({"record_cache": "memory"}, "record_cache is 'memory'"),
        ({"repeat": None}, "repeat is None, which applies to tensorflow, not to numpy"),
        ({"batchsize": 8}, "load has no option 'batchsize'. Did you mean batch_size?"),
        ({"frame": "torch"}, "load has no option 'frame'. Did you mean framework?"),
        ({"xyz": 1}, "load has no option 'xyz'. Options: .*, seed, "),
        ({"image_size": "8"}, r"image_size is '8', expected two whole numbers, \(height, width\)"),
        ({"transform": {"trian": np.flip}}, "no split 'trian'. Did you mean train?"),
    ],
)
def test_a_wrong_argument_is_named(records, arguments, said):
    with pytest.raises(UsageError, match=said):
        darkroom.load(records, **{"image_size": 8, "framework": "numpy"} | arguments)


def test_opencv_that_is_missing_is_asked_for_by_its_extra(records, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cv2", None)
    with pytest.raises(MissingExtraError, match="extra 'reader'"):
        # In this process, which lacks it.
        next(iter(load(records, num_threads=1)))


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_targets_of_every_kind_are_those_of_the_list(photos, tmp_path, kind):
    table = photos[:24].drop(columns="price")
    if kind == "labels":
        table["label"] = ["a;b", "c", "", "b"] * 6
        options = ConversionOptions(label_separator=";", empty_labels="none")
        want = {"a;b": [1, 1, 0], "c": [0, 0, 1], "": [0, 0, 0], "b": [0, 1, 0]}
    else:
        table["price"] = [float(number) if number % 5 else None for number in range(24)]
        table = table.drop(columns="label")
        options = ConversionOptions(target_columns=("price",))
    convert(table, tmp_path / "records", options=options)
    loader = load(tmp_path / "records", columns=["image/filename"])
    found = {
        Path(name).name: label
        for _, labels, columns in loader
        for name, label in zip(columns["image/filename"], labels, strict=True)
    }
    for row in table[table.split == "train"].itertuples():
        label = found[Path(row.image_uri).name]
        assert label.dtype == np.float32
        if kind == "labels":
            assert list(label) == want[row.label]
        else:
            assert label[0] == row.price or (np.isnan(label[0]) and np.isnan(row.price))


def test_raw_pixels_are_read(photos, tmp_path):
    convert(photos[:20], tmp_path / "raw", options=ConversionOptions(encoding="raw"))
    convert(photos[:20], tmp_path / "files")
    whole = InputOptions((16, 16), scaled_decoding=False)
    raw, files = (load(tmp_path / name, "eval", options=whole).images for name in ("raw", "files"))
    for number in range(5):
        assert np.array_equal(raw[number][0], files[number][0])
