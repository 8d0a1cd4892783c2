"""Damaged and replaced files that are met while batches are read by a program of a user's own."""

from __future__ import annotations

import shutil

import keras
import pytest
import tensorflow as tf

import darkroom
from darkroom.conversion.convert import convert
from darkroom.errors import DataError, MissingPathError, UsageError
from darkroom.input import explain_damage, input_fn
from darkroom.options.conversion import ConversionOptions
from darkroom.options.input import InputOptions

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder")]

_SIZE = 8


@pytest.fixture
def dataset(jpeg_records):
    return jpeg_records


def _flip_last(dataset) -> str:
    """Changes a bit in the last record of the train split. Returns the start of the error."""
    file = sorted((dataset / "Split-train").iterdir())[-1]
    data = bytearray(file.read_bytes())
    data[-8] ^= 4
    file.write_bytes(data)
    return f"^{file}: record \\d+ is damaged: the checksum of its data is wrong. "


def _make_model() -> keras.Model:
    layers = [keras.layers.Rescaling(1 / 255), keras.layers.Flatten(), keras.layers.Dense(3)]
    model = keras.Sequential([keras.layers.Input((_SIZE, _SIZE, 3)), *layers])
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


@tf.function
def _count_all(batches):
    count = tf.constant(0)
    for images, _ in batches:
        count += tf.shape(images)[0]
    return count


_LOOPS = {
    "for": list,
    "numpy": lambda batches: list(batches.as_numpy_iterator()),
    "next": lambda batches: [*map(next, [iter(batches)] * 1000)],
}


@pytest.mark.parametrize(
    ("loop", "training"), [("for", True), ("for", False), ("numpy", False), ("next", False)]
)
def test_a_loop_that_meets_a_damaged_record_names_it(dataset, loop, training):
    data = darkroom.load(dataset, image_size=_SIZE, batch_size=2, training=training)
    text = _flip_last(dataset)
    with pytest.raises(DataError, match=text) as caught:
        _LOOPS[loop](data["train"])
    assert caught.value.hint == f"See all that is wrong with: darkroom verify {dataset}."
    assert caught.value.__suppress_context__
    frames = [frame.name for frame in caught.traceback]
    assert frames[-1] == "call"
    assert not {"check_records", "_check_images"} & set(frames)


def test_a_loop_that_meets_an_image_that_is_damaged_names_its_record(jpeg_set, tmp_path):
    (jpeg_set.folder / "03.jpg").write_bytes((jpeg_set.folder / "03.jpg").read_bytes()[:-20])
    options = ConversionOptions(image_check="header", num_shards=2)
    convert(str(jpeg_set.csv), str(tmp_path / "records"), options=options)
    train = darkroom.load(tmp_path / "records", image_size=_SIZE, batch_size=2)["train"]
    text = r"1 of 32 images cannot be decoded: record \d+ of .*/Split-train/.* \(03\.jpg\)\."
    with pytest.raises(DataError, match=text) as caught:
        list(train)
    assert "--image-check full" in caught.value.hint


def test_the_error_of_a_loop_is_shown_below_the_loop_in_a_block_too(dataset):
    train = darkroom.load(dataset, image_size=_SIZE, batch_size=2)["train"]
    text = _flip_last(dataset)
    with pytest.raises(DataError, match=text) as plain:
        for _ in train:
            pass
    with pytest.raises(DataError, match=text) as inside, explain_damage(train):
        for _ in train:
            pass
    with pytest.raises(DataError, match=text) as block, explain_damage(train):
        _count_all(train)
    for caught in (plain, inside, block):
        assert [frame.name for frame in caught.traceback][1:] == ["call"]
        assert caught.value.__suppress_context__


def _read_in_block(batches) -> None:
    with explain_damage(batches):
        _count_all(batches)


_READS = {"for": list, "next": list, "block": _read_in_block}


@pytest.mark.parametrize("name", ["for", "block"])
def test_a_shard_that_was_deleted_is_an_error_of_ours(dataset, name):
    train = darkroom.load(dataset, image_size=_SIZE, batch_size=2)["train"]
    shard = sorted((dataset / "Split-train").iterdir())[-1]
    shard.unlink()
    with pytest.raises(DataError) as caught:
        _READS[name](train)
    assert caught.value.message == (
        f"{shard.parent} is damaged: shards are missing: {[shard.name]}."
    )
    assert caught.value.hint.startswith(f"List all faults with: darkroom verify {dataset}. ")
    assert [frame.name for frame in caught.traceback][-1] == "call"
    assert caught.value.__suppress_context__


def test_a_deleted_file_of_another_tool_is_an_error_of_ours(dataset, tmp_path):
    other = shutil.copytree(dataset / "Split-train", tmp_path / "other" / "Split-train")
    options = InputOptions((_SIZE, _SIZE), batch_size=2)
    batches = input_fn(f"{other}/*", options, training=False)
    shard = min(other.iterdir())
    shard.unlink()
    with pytest.raises(MissingPathError, match=f"^The file {shard} does not exist. ") as caught:
        list(batches)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("name", ["next", "block"])
def test_a_dataset_that_was_deleted_is_gone(dataset, name):
    train = darkroom.load(dataset, image_size=_SIZE, batch_size=2)["train"]
    batches = iter(train)
    shutil.rmtree(dataset)
    with pytest.raises(DataError, match=f"^The dataset in {dataset} is gone: ") as caught:
        _READS[name](batches if name == "next" else train)
    assert [frame.name for frame in caught.traceback][-1] == "call"


def test_a_loop_over_examples_names_the_damaged_record(dataset):
    options = InputOptions((_SIZE, _SIZE), batch_size=2)
    batches = input_fn(f"{dataset}/Split-train/*", options, training=True, epoch=0)
    text = _flip_last(dataset)
    with pytest.raises(DataError, match=text):
        list(batches)


@pytest.mark.parametrize("name", ["fit", "predict", "function", "derived"])
def test_a_block_names_the_damaged_record_that_tensorflow_meets(dataset, name):
    data = darkroom.load(dataset, image_size=_SIZE, batch_size=2)
    text = _flip_last(dataset)
    train = data["train"]
    reads = {
        "fit": lambda: _make_model().fit(train, verbose=0),
        "predict": lambda: _make_model().predict(train, verbose=0),
        "function": lambda: _count_all(train),
        "derived": lambda: list(train.unbatch()),
    }
    # Keras predicts in a Python loop, so the iterator itself explains the error.
    own = DataError if name == "predict" else tf.errors.DataLossError
    with pytest.raises(own):
        reads[name]()
    for given in (data, train.unbatch().batch(3)):
        with pytest.raises(DataError, match=text), explain_damage(given):
            reads[name]()


def test_keras_and_functions_read_the_batches_as_any_dataset(dataset):
    data = darkroom.load(dataset, image_size=_SIZE, batch_size=2)
    train = data["train"]
    plain = [[each.numpy().tolist() for each in batch] for batch in train.prefetch(1)]
    assert [[each.numpy().tolist() for each in batch] for batch in train] == plain
    assert len(train) == len(plain)
    assert train.options().deterministic
    assert int(_count_all(train)) == int(_count_all(iter(train))) == data.num_images["train"]
    with explain_damage(data):
        history = _make_model().fit(train, epochs=2, validation_data=data["eval"], verbose=0)
    assert len(history.history["val_loss"]) == 2


def _replace(dataset, jpeg_set) -> str:
    shutil.rmtree(dataset)
    convert(str(jpeg_set.csv), str(dataset), seed=1)
    return f"^The dataset in {dataset} was replaced while it was read. "


def test_a_loop_over_a_replaced_dataset_ends_with_an_error(dataset, jpeg_set):
    train = darkroom.load(dataset, image_size=_SIZE, batch_size=2)["train"]
    batches = iter(train)
    next(batches)
    text = _replace(dataset, jpeg_set)
    with pytest.raises(DataError, match=text):
        list(batches)
    with pytest.raises(DataError, match=text):
        list(train)


@pytest.mark.parametrize("how", ["load", "files"])
def test_a_loop_stays_with_the_dataset_that_its_link_led_to(dataset, jpeg_set, tmp_path, how):
    link, other = tmp_path / "link", tmp_path / "other"
    link.symlink_to(dataset)
    if how == "load":
        train = darkroom.load(link, image_size=_SIZE, batch_size=2, training=False)["train"]
    else:
        options = InputOptions((_SIZE, _SIZE), batch_size=2)
        train = input_fn(f"{link}/Split-train/*", options, training=False, verify=True)
    before = [[each.numpy().tolist() for each in batch] for batch in train]
    convert(str(jpeg_set.csv), str(other), seed=1)
    (tmp_path / "new").symlink_to(other)
    (tmp_path / "new").rename(link)
    assert [[each.numpy().tolist() for each in batch] for batch in train] == before


def test_a_block_tells_that_the_dataset_was_replaced(dataset, jpeg_set):
    train = darkroom.load(dataset, image_size=_SIZE, batch_size=2)["train"]
    with explain_damage(train):
        _count_all(train)
    text = _replace(dataset, jpeg_set)
    with pytest.raises(DataError, match=text), explain_damage(train):
        _count_all(train)


def test_a_block_with_other_data_is_a_wrong_use():
    text = "which is not made from a darkroom dataset"
    for data in (tf.data.Dataset.range(3), 7, {}):
        with pytest.raises(UsageError, match=text), explain_damage(data):
            pass
