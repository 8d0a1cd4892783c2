from __future__ import annotations

import itertools
import re
from collections import Counter
from functools import partial
from inspect import signature
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
import tensorflow as tf

from darkroom.data.open import list_files
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.named import name_dataset
from darkroom.errors import DataError, StorageError, UsageError
from darkroom.input.graph import decode
from darkroom.input.graph.decode import view_image
from darkroom.input.loading import LoadedSplits, load
from darkroom.input.opening import input_fn, open_files
from darkroom.input.pipeline import (
    _count_batch_calls,
    _count_prefetched,
    _count_shuffled,
    make_eval_dataset,
    make_train_dataset,
)
from darkroom.input.records import RecordSource, bound_reading
from darkroom.options.input import InputOptions

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder")]

SIZE = (8, 8)


def _numbers(dataset):
    """The rows' numbers, which `make_rows` writes into the first pixel."""
    return [int(image[0, 0, 0]) for images, _ in dataset for image in images.numpy()]


def _same(first, second):
    return len(first) == len(second) and all(
        np.array_equal(a, b)
        for one, two in zip(first, second, strict=True)
        for a, b in zip(one, two, strict=True)
    )


def _options(**values):
    return InputOptions(SIZE, **{"batch_size": 4, "augment": "none", **values})


@pytest.fixture
def files(helpers, tmp_path):
    records = [
        helpers.make_example({"image/encoded": image, "image/class/label": label})
        for image, label in helpers.make_rows(30)
    ]
    return helpers.write_split(tmp_path, "train", records, shards=3)


@pytest.fixture
def source(files):
    """The same records, opened once for all epochs of a test."""
    return open_files(files)


def test_batches_are_uint8_pixels_and_int64_labels(files):
    dataset = make_train_dataset(files, InputOptions((6, 5), batch_size=4, drop_remainder=True))
    assert dataset.element_spec == (
        tf.TensorSpec((4, 6, 5, 3), tf.uint8),
        tf.TensorSpec((4,), tf.int64),
    )
    whole = make_eval_dataset(files, InputOptions((6, 5), batch_size=4))
    assert whole.element_spec[0] == tf.TensorSpec((None, 6, 5, 3), tf.uint8)


@pytest.mark.parametrize("deterministic", [True, False])
def test_each_record_exactly_once_an_epoch_in_a_new_order(files, deterministic):
    dataset = make_train_dataset(files, _options(deterministic=deterministic))
    first, second = (_list_batches(dataset) for _ in range(2))
    assert first != second
    for batches in (first, second):
        assert Counter(itertools.chain(*batches)) == Counter(range(30))
        assert [len(batch) for batch in batches] == [4] * 7 + [2]


def test_all_epochs_share_the_graph_that_decodes(files, monkeypatch):
    traced = []

    def trace(*arguments):
        traced.append(arguments)
        return decode_png(*arguments)

    decode_png = decode._Decoder.decode
    monkeypatch.setattr(decode._Decoder, "decode", trace)
    for epoch in range(3):
        # No other test has images of this size.
        options = InputOptions((5, 9), batch_size=4, augment="crop")
        assert len(list(make_train_dataset(files, options, epoch=epoch))) == 8
    assert len(traced) == 1


def test_labels_stay_with_their_images(files):
    for images, labels in make_train_dataset(files, _options()):
        np.testing.assert_array_equal(images[:, 0, 0, 0] % 2, labels)


def test_repeat_and_drop_remainder(files):
    twice = _numbers(make_train_dataset(files, _options(repeat=2)))
    assert Counter(twice) == Counter(list(range(30)) * 2)
    assert len(_numbers(make_train_dataset(files, _options(drop_remainder=True)))) == 28
    endless = make_train_dataset(files, _options(repeat=None))
    assert len(_numbers(endless.take(20))) == 2 * 30 + 4 * 4


def test_deterministic_batches_are_the_same_in_two_runs_and_new_in_each_epoch(source):
    options = _options(deterministic=True, seed=3)
    epochs = []
    for _ in range(2):
        dataset = make_train_dataset(source, options)
        epochs.append([list(dataset.as_numpy_iterator()) for _ in range(2)])
    assert _same(epochs[0][0], epochs[1][0])
    assert _same(epochs[0][1], epochs[1][1])
    assert not _same(epochs[0][0], epochs[0][1])
    other = make_train_dataset(source, _options(deterministic=True, seed=4))
    assert not _same(epochs[0][0], list(other.as_numpy_iterator()))


@pytest.mark.parametrize("make", [make_eval_dataset, make_train_dataset])
def test_no_tuner_runs_for_which_the_end_of_an_epoch_could_wait(files, make):
    """Waiting for the tuner is a race, so a test that measures time could not show it."""
    assert make(files, _options()).options().autotune.enabled is False


def test_crops_of_one_image_differ_between_epochs(files, helpers):
    options = _options(augment="crop", deterministic=True, shuffle_records=0)
    dataset = make_train_dataset(files[:1], options)
    epochs = [np.concatenate([images for images, _ in dataset]) for _ in range(2)]
    assert epochs[0].shape == epochs[1].shape == (10, *SIZE, 3)
    assert not np.array_equal(epochs[0], epochs[1])


def test_evaluation_gives_whole_images_in_one_order(files, helpers):
    dataset = make_eval_dataset(files, _options(augment="crop_flip"))
    first, second = (list(dataset.as_numpy_iterator()) for _ in range(2))
    assert _same(first, second)
    rows = helpers.make_rows(30)
    assert sorted(_numbers(dataset)) == list(range(30))
    for images, labels in first:
        for image, label in zip(images, labels, strict=True):
            encoded, expected = rows[image[0, 0, 0]]
            np.testing.assert_array_equal(image, view_image(tf.constant(encoded), SIZE)[0])
            assert label == expected


@pytest.mark.parametrize("training", [True, False])
def test_input_fn_reads_patterns_plain_and_gzip(files, helpers, tmp_path, training):
    records = [
        helpers.make_example({"image/encoded": image, "image/class/label": label})
        for image, label in helpers.make_rows(40)[30:]
    ]
    helpers.write_split(tmp_path / "more", "train", records, suffix=".gz")
    patterns = [f"{tmp_path}/Split-train/*", f"{tmp_path}/more/Split-train/*"]
    assert sorted(_numbers(input_fn(patterns, _options(), training))) == list(range(40))
    assert len(_numbers(input_fn(patterns[0], _options(), training))) == 30


def test_fewer_records_than_a_batch(files):
    options = _options(batch_size=64)
    assert [len(labels) for _, labels in make_train_dataset(files, options)] == [30]
    assert [len(labels) for _, labels in make_eval_dataset(files, options)] == [30]


def test_no_file_and_no_record_are_named(helpers, tmp_path):
    with pytest.raises(DataError, match=r"No file matches .*/Split-eval/\*"):
        input_fn(f"{tmp_path}/Split-eval/*", _options(), training=False)
    empty = helpers.write_split(tmp_path, "train", [])
    with pytest.raises(DataError, match=r"no record in 2 files: .*data_tfrecord-00000"):
        make_train_dataset(empty, _options())


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"image/encoded": b"x"}, r"has no image/class/label; it has image/encoded\."),
        ({"image/class/label": 1}, r"has no image/encoded; it has image/class/label\."),
        ({"age": 1}, r"has no image/encoded and no image/class/label; it has age\."),
    ],
)
def test_records_without_image_or_label_are_an_immediate_error(
    helpers, tmp_path, features, message
):
    files = helpers.write_split(tmp_path, "train", [helpers.make_example(features)])
    for make in (make_train_dataset, make_eval_dataset):
        with pytest.raises(DataError, match=message):
            make(files, _options())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("image_size", (0, 8)),
        ("image_size", (8,)),
        ("image_size", (8.0, 8)),
        ("batch_size", 0),
        ("batch_size", True),
        ("shuffle_records", -1),
        ("cycle_length", 0),
        ("shuffle_bytes", None),
        ("block_length", 0),
        ("prefetch", -1),
        ("num_threads", 1.5),
        ("ram_budget_bytes", 1000),
        ("resize", "pad"),
        ("record_cache", ""),
        ("dtype", "float16"),
        ("shard", (2, 2)),
        ("shard", (0, 0)),
        ("shard_by", "image"),
        ("batch_size", 10**9),
        ("num_threads", 100_000),
        ("cycle_length", 100_000),
        ("seed", "1"),
        ("seed", 1 << 70),
        ("repeat", 0),
        ("augment", "spin"),
    ],
)
def test_the_error_for_a_wrong_option_has_its_name_and_value(name, value):
    with pytest.raises(UsageError) as caught:
        InputOptions(**{"image_size": SIZE, name: value})
    assert str(caught.value).startswith(f"{name} is {value!r}, expected ")


def test_load_gives_each_split_that_has_records(helpers, write_dataset):
    rows = helpers.make_rows(20)
    root = write_dataset({"train": rows[:12], "eval": rows[12:17], "test": []})
    splits = load(str(root), image_size=SIZE, batch_size=5)
    assert list(splits) == ["train", "eval"]
    assert [int(split.cardinality()) for split in splits.values()] == [3, 1]
    assert sorted(_numbers(splits["train"])) == list(range(12))
    assert _numbers(splits["train"]) == _numbers(splits["train"])
    assert sorted(_numbers(splits["eval"])) == list(range(12, 17))


def test_load_for_training_mirrors_some_images_of_the_train_split_only(helpers, write_dataset):
    rows = helpers.make_rows(40)
    root = write_dataset({"train": rows, "eval": rows})
    splits = load(
        str(root),
        training=True,
        options=InputOptions(SIZE, batch_size=40, deterministic=True),
    )
    whole = load(str(root), image_size=SIZE, batch_size=40)
    (train,), (evaluation,) = splits["train"], splits["eval"]
    (expected,) = whole["eval"]
    np.testing.assert_array_equal(evaluation[0], expected[0])
    untouched = {image.tobytes() for image in expected[0].numpy()}
    mirrored = {image.tobytes() for image in expected[0].numpy()[:, :, ::-1]}
    seen = {image.tobytes() for image in train[0].numpy()}
    assert seen < untouched | mirrored
    assert len(seen) == 40
    assert 10 < len(seen & untouched) < 30

    plain = load(str(root), image_size=SIZE, batch_size=40, training=True, augment="none")
    (train,) = plain["train"]
    assert {image.tobytes() for image in train[0].numpy()} == untouched
    assert not np.array_equal(train[0], expected[0])


def test_the_types_of_load_can_be_looked_up():
    hints = get_type_hints(load)
    assert hints["return"] is LoadedSplits
    assert len(hints) == len(signature(load).parameters) + 1


def test_load_does_not_take_a_source_of_another_type():
    with pytest.raises(
        UsageError, match="The source is of type int, expected a path or a DataFrame"
    ):
        load(5, image_size=(8, 8))


def test_load_takes_every_option_of_input(helpers, write_dataset, tmp_path):
    rows = helpers.make_rows(20)
    root = str(write_dataset({"train": rows[:13], "eval": rows[13:]}))
    options = {"image_size": SIZE, "batch_size": 4, "training": True, "augment": "none"}
    splits = load(
        root,
        **options,
        options=InputOptions(
            SIZE, drop_remainder=True, dtype="float32", record_cache=str(tmp_path / "new")
        ),
    )
    assert [int(split.cardinality()) for split in splits.values()] == [3, 2]
    assert splits["train"].element_spec[0] == tf.TensorSpec((4, *SIZE, 3), tf.float32)
    assert len(set(_numbers(splits["train"]))) == 12
    # Each split has a cache of its own.
    assert sorted(_numbers(splits["eval"])) == list(range(13, 20))
    with pytest.raises(UsageError, match="no option 'shuffle'"):
        load(root, **options, shuffle=True)


def test_load_knows_that_a_training_has_no_end(helpers, write_dataset):
    root = str(write_dataset({"train": helpers.make_rows(13)}))
    splits = load(root, training=True, options=InputOptions(SIZE, repeat=None))
    assert splits["train"].cardinality() == tf.data.INFINITE_CARDINALITY


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shard_by", ["record", "file"])
def test_load_knows_how_many_batches_a_part_has(helpers, write_dataset, training, shard_by):
    rows = helpers.make_rows(23)
    root = str(write_dataset({"train": rows}))
    seen = []
    for index in range(2):
        part = load(
            root,
            training=training,
            options=InputOptions(
                SIZE, batch_size=4, augment="none", shard=(index, 2), shard_by=shard_by
            ),
        )["train"]
        assert part.cardinality() == (2 if training else 3)
        batches = _list_batches(part)
        assert len(batches) == part.cardinality()
        seen += itertools.chain(*batches)
    assert len(seen) == len(set(seen)) == (16 if training else 23)


def test_evaluation_has_the_labels_that_a_training_with_mixup_has(helpers, write_dataset, tmp_path):
    rows = helpers.make_rows(12)
    root = str(write_dataset({"train": rows, "eval": rows[:6]}))
    splits = load(root, image_size=SIZE, batch_size=6, training=True, augment="mixup")
    (images, labels), *_ = splits["eval"]
    assert splits["eval"].element_spec == splits["train"].element_spec
    numbers = [rows[int(image[0, 0, 0])][1] for image in images.numpy()]
    np.testing.assert_array_equal(labels, np.eye(2)[numbers])
    options = InputOptions(SIZE, batch_size=6, augment="mixup")
    [(_, labels)] = input_fn(f"{root}/Split-eval/*", options, training=False)
    np.testing.assert_array_equal(labels, np.eye(2)[numbers])
    # Files of another tool have no label map.
    (image, label), *_ = rows
    record = helpers.make_example({"image/encoded": image, "image/class/label": label})
    files = helpers.write_split(tmp_path / "other", "eval", [record], 1)
    with pytest.raises(UsageError, match="mixup needs num_classes"):
        input_fn(files, options, training=False)


def test_load_shares_only_the_train_split_by_file(helpers, tmp_path):
    rows = [
        helpers.make_example({"image/encoded": image, "image/class/label": label})
        for image, label in helpers.make_rows(20)
    ]
    helpers.write_split(tmp_path, "train", rows[:16], shards=2)
    # Smaller splits have fewer files, down to one.
    helpers.write_split(tmp_path, "eval", rows[16:], shards=1)
    (tmp_path / "labels.txt").write_text("dark\nlight\n")
    helpers.commit(tmp_path, ["dark", "light"], {"train": 16, "eval": 4})
    options = {"image_size": SIZE, "batch_size": 4, "training": True, "augment": "none"}
    parts = [
        load(str(tmp_path), **options, options=InputOptions(SIZE, shard=(n, 2), shard_by="file"))
        for n in range(2)
    ]
    assert [sorted(_numbers(part["train"])) for part in parts] == [
        [*range(0, 16, 2)],
        [*range(1, 16, 2)],
    ]
    assert [_numbers(part["eval"]) for part in parts] == [[16, 18], [17, 19]]


def test_an_epoch_without_a_full_batch_is_an_error(helpers, write_dataset):
    root = str(write_dataset({"train": helpers.make_rows(10)}))
    for options in ({"batch_size": 11, "drop_remainder": True}, {"batch_size": 6, "shard": (0, 2)}):
        for repeat in (1, None):
            with pytest.raises(UsageError, match="There is no full batch of"):
                load(root, training=True, options=InputOptions(SIZE, repeat=repeat, **options))


@pytest.mark.parametrize(("name", "value"), [("epoch", 2.5), ("epoch", -1), ("skip_batches", -1)])
def test_a_wrong_epoch_or_number_of_batches_is_an_error(files, name, value):
    with pytest.raises(UsageError, match=f"{name} is {value}, expected "):
        make_train_dataset(files, _options(), **{"epoch": 0, name: value})


@pytest.mark.parametrize(
    ("options", "place", "length"),
    [
        ({}, {}, 4),
        ({"repeat": 3}, {}, 12),
        ({"repeat": 3}, {"epoch": 2}, 4),
        ({}, {"epoch": 1, "skip_batches": 3}, 1),
        ({"repeat": 2}, {"skip_batches": 3}, 2),
        ({"repeat": None}, {"epoch": 1, "skip_batches": 9}, 0),
    ],
)
def test_input_fn_knows_the_batches_of_a_dataset(helpers, write_dataset, options, place, length):
    files = f"{write_dataset({'train': helpers.make_rows(13)})}/Split-train/*"
    train = input_fn(files, _options(**options), training=True, **place)
    assert train.cardinality() == length == len(list(train))
    assert input_fn(files, _options(**options), training=False).cardinality() == 4


def _truncate(root):
    path = root / "Split-train" / "data_tfrecord-00001-of-00002"
    path.write_bytes(path.read_bytes()[:-20])


def _rename(root):
    folder = root / "Split-train"
    (folder / "data_tfrecord-00001-of-00002").rename(folder / "data_tfrecord-00001-of-00003")


def _flip(root):
    """Flips one bit within an image. All sizes stay; only hash and checksum change."""
    path = root / "Split-train" / "data_tfrecord-00001-of-00002"
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(data)


def _input(root, *, verify=False):
    return input_fn(f"{root}/Split-train/*", _options(), True, verify=verify)


@pytest.mark.parametrize(
    "damage",
    [
        _truncate,
        _rename,
        lambda root: (root / "dataset.json").unlink(),
        lambda root: (root / "dataset.json").write_text("{}"),
        lambda root: (root / "Split-train" / "more").touch(),
        lambda root: (root / "Split-new").mkdir(),
    ],
)
def test_a_dataset_that_differs_from_its_commit_is_rejected(helpers, write_dataset, damage):
    root = write_dataset({"train": helpers.make_rows(8)})
    assert _numbers(_input(root).take(1))
    damage(root)
    for read in (_input, partial(load, image_size=SIZE)):
        with pytest.raises(DataError, match=r"Split-train|Split-new|dataset\.json"):
            read(root)


def test_verify_finds_a_flipped_bit(helpers, write_dataset):
    root = write_dataset({"train": helpers.make_rows(8), "eval": helpers.make_rows(4)})
    for verify in (False, True):
        assert set(load(root, image_size=SIZE, verify=verify)) == {"train", "eval"}
        assert _input(root, verify=verify)
    _flip(root)
    load(root, image_size=SIZE)
    message = r"Split-train/data_tfrecord-00001-of-00002 has the right length, but after 0 whole"
    with pytest.raises(DataError, match=message):
        load(root, image_size=SIZE, verify=True)
    with pytest.raises(DataError, match=message):
        _input(root, verify=True)
    # The other split is not damaged, and only the files that are read are verified.
    assert input_fn(f"{root}/Split-eval/*", _options(), False, verify=True)


def test_examples_of_other_tools_are_read_but_cannot_be_verified(files, tmp_path):
    assert len(_numbers(input_fn(f"{tmp_path}/Split-train/*", _options(), False))) == 30
    with pytest.raises(DataError, match=r"cannot be verified: it has no dataset\.json"):
        input_fn(f"{tmp_path}/Split-train/*", _options(), False, verify=True)


def _epoch(source, number=0, skip=0, **values):
    dataset = make_train_dataset(source, _options(**values), epoch=number, skip_batches=skip)
    return list(dataset.as_numpy_iterator())


def test_an_epoch_is_a_function_of_seed_and_number(source):
    augment = "crop_flip"
    first = _epoch(source, 5, augment=augment, seed=1)
    assert _same(first, _epoch(source, 5, augment=augment, seed=1))
    assert not _same(first, _epoch(source, 6, augment=augment, seed=1))
    assert not _same(first, _epoch(source, 5, augment=augment, seed=2))


def test_skipped_batches_leave_the_rest_as_it_is(source):
    whole = _epoch(source, augment="crop_flip,rotate")
    for skip in (5, 9):
        rest = _epoch(source, skip=skip, augment="crop_flip,rotate")
        assert _same(whole[skip:], rest)


def _merge_shards(shards):
    """The images of the k-th batches of all shards, by number."""
    return [
        {image.tobytes() for images, _ in batches for image in images}
        for batches in zip(*shards, strict=True)
    ]


def test_shards_by_record_share_the_batches_of_the_whole(source):
    count = 3
    whole = _epoch(source, batch_size=4 * count, augment="crop_flip", drop_remainder=True)
    shards = [_epoch(source, shard=(n, count), augment="crop_flip") for n in range(count)]
    assert [len(shard) for shard in shards] == [len(whole)] * count
    assert _merge_shards(shards) == _merge_shards([whole])


def test_shards_by_file_make_as_many_steps_each(files):
    shards = [_epoch(files, shard=(n, 2), shard_by="file") for n in range(2)]
    # Two files of ten records, and one.
    assert [len(shard) for shard in shards] == [2, 2]
    numbers = [[int(image[0, 0, 0]) for images, _ in s for image in images] for s in shards]
    assert all(number % 3 in (0, 2) for number in numbers[0])
    assert all(number % 3 == 1 for number in numbers[1])
    with pytest.raises(UsageError, match=r"shard is \(3, 4\), but the number of files is only 3"):
        _epoch(files, shard=(3, 4), shard_by="file")


@pytest.mark.parametrize("shard_by", ["record", "file"])
def test_evaluation_is_shared_without_loss(files, shard_by):
    parts = [
        _numbers(make_eval_dataset(files, _options(shard=(n, 3), shard_by=shard_by)))
        for n in range(3)
    ]
    assert sorted(number for part in parts for number in part) == list(range(30))


@pytest.mark.parametrize("cache", ["memory", "files"])
def test_a_cache_keeps_records_and_not_views(files, tmp_path, cache):
    path = cache if cache == "memory" else str(tmp_path / "new" / "cache")
    source = open_files(files)
    first = _epoch(source, 0, record_cache=path, augment="crop")
    for file in files:
        open(file, "wb").close()
    second = _epoch(source, 1, record_cache=path, augment="crop")
    assert Counter(labels.tolist()[0] for _, labels in second).total() == len(first)
    assert sorted(label for _, labels in second for label in labels) == [0] * 15 + [1] * 15
    assert not _same(first, second)


def test_files_of_a_cache_are_found_again_and_only_for_the_same_records(
    helpers, write_dataset, tmp_path, monkeypatch
):
    rows, options = helpers.make_rows(20), _options(record_cache=str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/index").write_bytes(b"mine")
    root = write_dataset({"train": rows[:12], "eval": rows[12:]})
    other = tf.data.Dataset.from_tensors("read again")
    for split, numbers in (("train", range(12)), ("eval", range(12, 20))):
        files = list_files(f"{root}/Split-{split}/*")
        assert sorted(_numbers(make_eval_dataset(files, options))) == list(numbers)
        with monkeypatch.context() as patch:
            patch.setattr(RecordSource, "_interleave", lambda *_: other)
            assert sorted(_numbers(make_eval_dataset(files, options))) == list(numbers)
    assert (tmp_path / "cache/index").read_bytes() == b"mine"
    names = {path.name for path in (tmp_path / "cache").iterdir()} - {"index"}
    assert all(re.match(r"[0-9a-f]{64}\.", name) for name in names)


def test_the_error_names_a_folder_that_cannot_be_a_cache(files, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=f"{tmp_path}/file/cache: Not a directory"):
        make_train_dataset(files, _options(record_cache=str(tmp_path / "file" / "cache")))


def test_records_that_do_not_fit_the_budget_are_not_cached(helpers, tmp_path):
    records = [
        helpers.make_example({"image/encoded": image, "image/class/label": label})
        for image, label in helpers.make_rows(12, size=250)
    ]
    source = open_files(helpers.write_split(tmp_path, "train", records))
    assert 12 * source.element_bytes > 1 << 21
    for budget, cached in ((1 << 22, False), (1 << 23, True)):
        options = _options(record_cache="memory", ram_budget_bytes=budget)
        make_train_dataset(source, options)
        assert (source._cached is not None) == cached


def test_large_records_wait_in_smaller_numbers(source):
    size = source.element_bytes
    assert 100 < size < 1000
    for options, waiting in (
        (_options(), 2048),
        (_options(shuffle_bytes=int(10.5 * size)), 10),
        (_options(shuffle_bytes=1 << 40, shuffle_records=1 << 40), int((1 << 29) / size)),
        (_options(shuffle_bytes=0), 0),
    ):
        assert _count_shuffled(source, options) == waiting


@pytest.mark.parametrize("training", [True, False])
def test_float_pixels_have_the_values_of_bytes(files, training):
    patterns = [str(file) for file in files]
    (floats, *_), (numbers, *_) = (
        list(input_fn(patterns, _options(dtype=dtype, shuffle_records=0), training))
        for dtype in ("float32", "uint8")
    )
    assert floats[0].dtype == tf.float32
    np.testing.assert_array_equal(floats[0], numbers[0])


def test_records_of_others_are_counted_by_reading_them(files, helpers, write_dataset):
    assert open_files(files).count_images() == 30
    assert open_files(files).count_images((0, 2)) == 20
    root = write_dataset({"train": helpers.make_rows(9)}, shards=2)
    own = open_files([str(file) for file in sorted((root / "Split-train").iterdir())])
    for file in own.files:
        open(file, "wb").close()
    assert [own.count_images((part, 2)) for part in range(2)] == [5, 4]


def test_reading_ahead_has_a_budget():
    """Three times as many files as the cycle has, of each two blocks, a record and a buffer."""
    for record_bytes, budget_mib, expected in (
        (28_000, 1024, (16, 4)),
        (3_000_000, 1024, (8, 1)),
        (3_000_000, 64, (1, 1)),
        (28_000, 64, (4, 1)),
        (28_000, 1, (1, 1)),
    ):
        options = _options(ram_budget_bytes=budget_mib << 20)
        cycle_length, block_length = bound_reading(options, record_bytes)
        assert (cycle_length, block_length) == expected
        read_bytes = 3 * cycle_length * ((1 << 20) + (2 * block_length + 1) * record_bytes)
        assert read_bytes <= options.ram_budget_bytes / 4 or expected == (1, 1)


def test_batches_do_not_depend_on_the_budget(source):
    values = {"augment": "crop_flip", "num_threads": 3, "shuffle_records": 5}
    small, large = (
        _epoch(source, 1, **values, ram_budget_bytes=1 << bits, cycle_length=1, block_length=1)
        for bits in (20, 30)
    )
    assert _same(small, large)


def test_few_batches_wait_however_many_threads_there_are():
    def count(**values):
        options = InputOptions((224, 224), batch_size=64, num_threads=96, **values)
        return _count_batch_calls(options), _count_prefetched(options)

    # An eighth of the budget each, of 9.6 MB a batch.
    assert count() == (13, 2)
    assert count(dtype="float32") == (3, 2)
    assert count(ram_budget_bytes=1 << 20) == (1, 1)
    assert count(prefetch=0) == (13, 0)
    small = InputOptions((224, 224), batch_size=64, num_threads=2)
    assert _count_batch_calls(small) == 2


@pytest.mark.crosses
@pytest.mark.parametrize(
    ("count", "sizes"),
    [(30, [[4, 4, 4, 3], [4, 4, 4, 3]]), (25, [[4, 4, 4, 1], [4, 4, 4, 0]]), (1, [[1], [0]])],
)
def test_processes_evaluate_each_image_once_in_as_many_batches(files, helpers, count, sizes):
    from darkroom.training.batches import make_evaluation_part

    rows = helpers.make_rows(count)
    records = [
        helpers.make_example({"image/encoded": image, "image/class/label": label})
        for image, label in rows
    ]
    folder = Path(files[0]).parents[1]
    source = open_files(helpers.write_split(folder, "eval", records))
    parts = [
        _list_batches(make_evaluation_part(source, _options(shard=(index, 2))))
        for index in range(2)
    ]
    assert [[len(batch) for batch in part] for part in parts] == sizes
    assert Counter(itertools.chain(*parts[0], *parts[1])) == Counter(range(count))
    # Together the batches are those of one process.
    whole = _list_batches(make_eval_dataset(source, _options(batch_size=8)))
    for batch, *shared in zip(whole, *parts, strict=True):
        assert sorted(batch) == sorted(shared[0] + shared[1])


def _list_batches(dataset):
    return [[int(number) for number in images[:, 0, 0, 0]] for images, _ in dataset]


def test_a_commit_is_read_once(helpers, write_dataset, count_commits):
    root = write_dataset({"train": helpers.make_rows(9), "eval": helpers.make_rows(3)})
    with count_commits() as read:
        assert sorted(load(root, image_size=SIZE)) == ["eval", "train"]
    assert read == [f"{root}/dataset.json"]
    named = name_dataset(root, read_dataset(root).fingerprint)
    with count_commits() as read:
        load(named, image_size=SIZE)
    assert read == [f"{root}/dataset.json"] * 2  # to find the dataset, and to open it
    options = _options(shard=(1, 2), shard_by="file")
    with count_commits() as read:
        assert len(_numbers(input_fn(f"{root}/Split-train/*", options, training=True))) == 4
    assert read == [f"{root}/dataset.json"]


def test_input_fn_takes_an_open_source(helpers, write_dataset, count_commits):
    root = write_dataset({"train": helpers.make_rows(9)})
    files = f"{root}/Split-train/*"
    source = open_files(files)
    with count_commits() as read:
        batches = input_fn(source, _options(), training=True, epoch=1, skip_batches=1)
        assert batches.cardinality() == 2
    assert read == []
    again = input_fn(files, _options(), training=True, epoch=1, skip_batches=1)
    assert _same(list(batches.as_numpy_iterator()), list(again.as_numpy_iterator()))
    with pytest.raises(UsageError, match="this source is open already"):
        input_fn(source, _options(), training=False, verify=True)


def test_the_length_of_other_examples_is_known_after_counting_them(files):
    source = open_files(files)
    unknown = input_fn(source, _options(), training=False)
    assert unknown.cardinality() == tf.data.UNKNOWN_CARDINALITY
    assert source.count_images() == 30
    assert input_fn(source, _options(), training=False).cardinality() == 8


def test_a_source_is_identified_by_its_records_and_not_by_its_folder(
    helpers, write_dataset, tmp_path
):
    def identify(root):
        return open_files([str(path) for path in (root / "Split-train").iterdir()]).identify()

    root = write_dataset({"train": helpers.make_rows(9)})
    found = identify(root)
    moved = root.rename(tmp_path / "moved")
    assert identify(moved) == found
    other = write_dataset({"train": helpers.make_rows(9, seed=1)})
    assert identify(other) != found
    # Without a commit, a file counts by name and size.
    for each in (moved, other):
        for name in ("dataset.json", "labels.txt"):
            (each / name).unlink()
    uncommitted = identify(moved)
    assert uncommitted != found
    assert identify(moved.rename(tmp_path / "again")) == uncommitted
    shard = tmp_path / "again" / "Split-train" / "data_tfrecord-00001-of-00002"
    shard.write_bytes(b"")
    assert identify(tmp_path / "again") != uncommitted
