from __future__ import annotations

import csv
import dataclasses
import json
import os
import socket
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import darkroom
from darkroom.data.splits import ImageSplit
from darkroom.dataset.labels import SEE_FORMS
from darkroom.errors import DataError, UsageError
from darkroom.input import files
from darkroom.input.damage import explain_damage
from darkroom.input.files import FileSource, open_images
from darkroom.input.graph.file_forms import describe_form
from darkroom.input.loading import load
from darkroom.input.pipeline import make_eval_dataset, make_train_dataset
from darkroom.options.input import InputOptions
from darkroom.options.manifest import ManifestOptions

from ..image_forms import make_profile
from ..pictures import encode
from ..simple_decoder import decode_simply

pytestmark = pytest.mark.tensorflow

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (12, 16, 3), np.uint8)
RGB = Image.fromarray(PIXELS)
GRAY = RGB.convert("L")


def _turn(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


_OTHER = make_profile("Another RGB")
REJECTED = {
    "a CMYK JPEG": encode(RGB.convert("CMYK"), "JPEG"),
    "a turned JPEG with a color profile other than sRGB or Display P3": encode(
        RGB, "JPEG", exif=_turn(6), icc_profile=_OTHER
    ),
    "a PNG with a color profile that a conversion applies": encode(
        RGB.convert("P"), "PNG", icc_profile=_OTHER
    ),
    "a BMP that is compressed, or of a rare kind": b"BM" + bytes(60),
    "a WebP": encode(RGB, "WEBP"),
    "a TIFF": encode(RGB, "TIFF"),
    "an AVIF": b"\0\0\0\x1cftypavif" + bytes(32),
    "a HEIC or a relative of it": b"\0\0\0\x1cftypheic" + bytes(32),
    "an empty file": b"",
    "neither JPEG, PNG, GIF nor BMP": b"<!doctype html>",
}


@pytest.fixture(scope="module")
def forms():
    """What is said of each image above. Each test would optimize the graph again."""
    traced = tf.function(describe_form, input_signature=[tf.TensorSpec((), tf.string)])
    return {data: traced(data).numpy().decode() for data in REJECTED.values()}


@pytest.mark.parametrize("form", REJECTED)
def test_every_other_form_is_named(form, forms):
    assert forms[REJECTED[form]] == form


def _write_list(folder: Path, images, splits=("train", "validation", "test")) -> Path:
    folder.mkdir(exist_ok=True)
    lines = []
    for number, (name, data) in enumerate(images.items()):
        (folder / name).write_bytes(data)
        lines.append((splits[number % len(splits)], name, f"label {number % 3}"))
    with open(folder / "images.csv", "w", newline="") as file:
        csv.writer(file).writerows([("split", "image_uri", "label"), *lines])
    return folder / "images.csv"


def _make_images(count: int):
    """JPEGs and PNGs, in turn, of random pixels."""
    images = {}
    for number in range(count):
        image = Image.fromarray(RNG.integers(0, 256, (16, 24, 3), np.uint8))
        kind, ending = ("JPEG", "jpg") if number % 2 else ("PNG", "png")
        images[f"{number}.{ending}"] = encode(image, kind)
    return images


def _collect(dataset):
    """Returns the images of a dataset with their labels, in an order that does not matter."""
    pairs = [
        (image.tobytes(), int(label))
        for images, labels in dataset.as_numpy_iterator()
        for image, label in zip(images, labels, strict=True)
    ]
    return sorted(pairs)


@pytest.fixture
def small_graph():
    with decode_simply():
        yield


@pytest.fixture
def simple_reading(small_graph, monkeypatch):
    """Reads files of sound images by a small graph, as `decode_simply` says."""
    monkeypatch.setattr(files, "check_decodable", lambda encoded, uri: encoded)


@pytest.fixture
def listed(tmp_path):
    return _write_list(tmp_path / "photos", _make_images(18))


@pytest.mark.usefixtures("simple_reading")
def test_a_list_gives_the_splits_labels_and_pixels_of_its_conversion(listed, tmp_path):
    darkroom.convert(listed, tmp_path / "records", num_shards=2)
    converted = load(tmp_path / "records", image_size=(9, 9), batch_size=4)
    direct = load(listed, image_size=(9, 9), batch_size=4)
    assert list(direct) == list(converted) == ["train", "eval", "test"]
    for name, dataset in direct.items():
        assert dataset.cardinality() == converted[name].cardinality() == 2
        assert _collect(dataset) == _collect(converted[name])


@pytest.mark.usefixtures("simple_reading")
def test_training_takes_every_image_once_in_a_new_order_and_in_parts(listed):
    source = open_images(listed).splits["train"]
    whole = _collect(make_eval_dataset(source, InputOptions((16, 24))))
    train = make_train_dataset(source, InputOptions((16, 24), augment="none", batch_size=4))
    orders = [[image.tobytes() for images, _ in train for image in images.numpy()] for _ in "ab"]
    assert orders[0] != orders[1]
    assert _collect(train) == whole
    cropped = make_train_dataset(source, InputOptions((8, 8), augment="crop_flip"))
    assert sum(len(labels) for _, labels in cropped) == source.count_images() == len(whole)
    options = InputOptions((16, 24), augment="none", batch_size=1, shard_by="file")
    parts = [
        make_train_dataset(source, dataclasses.replace(options, shard=(part, 2)))
        for part in range(2)
    ]
    assert sorted([*_collect(parts[0]), *_collect(parts[1])]) == whole


# tests/input/graph/test_orientation.py has what the graph does.
@pytest.mark.long
def test_a_turned_photo_arrives_upright(tmp_path):
    smooth = np.zeros((32, 48, 3), np.uint8)
    smooth[:16] = 255
    turned = {
        f"{number}.jpg": encode(Image.fromarray(smooth), "JPEG", quality=95, exif=_turn(number))
        for number in range(1, 9)
    }
    source = _write_list(tmp_path / "photos", turned, splits=("train",))
    darkroom.convert(source, tmp_path / "records", num_shards=1)
    options = {"image_size": (24, 24), "batch_size": 8}
    (converted, numbers), *_ = load(tmp_path / "records", **options)["train"]
    (direct, same_numbers), *_ = load(source, **options)["train"]
    np.testing.assert_array_equal(numbers, same_numbers)
    # Conversion encodes what it turns again, so that single values differ a little.
    np.testing.assert_allclose(np.int32(direct), np.int32(converted), atol=6)


@pytest.mark.usefixtures("simple_reading")
def test_a_folder_and_a_frame_are_read_as_they_are_converted(tmp_path):
    pd = pytest.importorskip("pandas")
    images = _make_images(6)
    for number, (name, data) in enumerate(images.items()):
        path = tmp_path / "photos" / ("train", "test")[number % 2] / f"label {number % 3}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    splits = load(tmp_path / "photos", image_size=(8, 8))
    assert {name: len(_collect(split)) for name, split in splits.items()} == {"train": 3, "test": 3}
    paths = sorted(tmp_path.glob("photos/*/*/*"))
    frame = pd.DataFrame(
        {
            "split": [path.parts[-3] for path in paths],
            "image_uri": [str(path) for path in paths],
            "label": [path.parts[-2] for path in paths],
        }
    )
    for name, split in load(frame, image_size=(8, 8)).items():
        assert _collect(split) == _collect(splits[name])


def test_a_label_map_numbers_the_labels(listed):
    label_map = ["label 2", "label 0", "label 1"]
    opened = open_images(listed, ManifestOptions.parse(label_map=label_map))
    assert opened.labels == tuple(label_map)
    # The splits take turns with the labels.
    for name, number in (("train", 1), ("eval", 2), ("test", 0)):
        assert set(opened.splits[name].split.numbers) == {number}


@pytest.mark.usefixtures("small_graph")
def test_the_images_of_all_splits_that_cannot_be_read_are_named_and_counted(listed):
    splits = open_images(listed).splits
    chosen = {name: splits[name] for name in ("train", "eval")}
    folder = listed.parent
    (folder / "0.png").write_bytes((folder / "0.png").read_bytes()[:-30])
    (folder / "1.jpg").write_bytes(REJECTED["a CMYK JPEG"])
    (folder / "3.jpg").unlink()

    def read() -> None:
        with explain_damage(*chosen.values()):
            list(make_eval_dataset(chosen["train"], InputOptions((8, 8))))

    with pytest.raises(DataError) as caught:
        read()
    found = caught.value.message.removeprefix("3 of 12 images cannot be decoded: ")
    assert sorted(found.rstrip(".").split("; ")) == [
        f"{folder}/0.png (it is damaged)",
        f"{folder}/1.jpg (it is a CMYK JPEG)",
        f"{folder}/3.jpg (it is missing)",
    ]
    assert "darkroom convert" in caught.value.hint
    for number in (4, 6, 7, 9, 10, 12, 13, 15, 16):
        start = b"\xff\xd8\xff" if number % 2 else b"\x89PNG"
        next(folder.glob(f"{number}.*")).write_bytes(start + b" rubbish")
    with pytest.raises(DataError, match="12 of 12 images") as caught:
        read()
    assert caught.value.message.count(f"{folder}/") == 10
    assert caught.value.message.endswith("; and 2 more.")


@pytest.mark.usefixtures("small_graph")
def test_an_error_of_the_training_itself_is_not_changed(listed):
    splits = {"train": open_images(listed).splits["train"]}
    error = tf.errors.InvalidArgumentError(None, None, "the model's own")
    with (
        pytest.raises(tf.errors.InvalidArgumentError, match="own"),
        explain_damage(*splits.values()),
    ):
        raise error


def test_too_many_rejected_rows_are_an_error_that_lists_them(listed):
    options = ManifestOptions.parse(label_map=["label 0", "label 1"])
    with pytest.raises(DataError, match=r"(?s)6 of 18 rows .*unknown_label.*2\.png") as caught:
        open_images(listed, options)
    assert caught.value.hint.splitlines() == [
        "Fix these rows or remove them.",
        "unknown_label: Correct the label, or add it to the label map.",
        SEE_FORMS,
    ]
    opened = open_images(listed, options, max_rejects=0.5)
    assert list(opened.splits) == ["train", "eval"]


def test_images_and_labels_must_be_there(tmp_path):
    path = tmp_path / "images.csv"
    path.write_text("split,image_uri\ntrain,a.jpg\n")
    with pytest.raises(DataError, match="no labels"):
        open_images(path)


def test_rows_of_one_image_with_other_values_are_merged_only_if_that_is_asked_for(tmp_path):
    path = tmp_path / "images.csv"
    path.write_text("split,image_uri,label,box\ntrain,a.jpg,cat,1\ntrain,a.jpg,cat,2\n")
    told = "Rows 1 and 2 name the same image, and further columns differ"
    with pytest.raises(DataError, match=told) as caught:
        open_images(path)
    assert "--merge-rows first (merge_rows= in Python)" in caught.value.hint
    columns = {"split": "split", "image_uri": "image", "label": "string_label"}
    for options in ({"merge_rows": "first"}, {"columns": columns}):
        opened = open_images(path, ManifestOptions.parse(**options))
        assert opened.splits["train"].count_images() == 1


def test_a_store_that_tensorflow_cannot_read_is_named():
    with pytest.raises(UsageError, match=r"s3://bucket/a\.jpg .*cannot read"):
        FileSource(ImageSplit("train", "list", ["a"], ["s3://bucket/a.jpg"], [0], ""))


def test_a_cache_and_options_that_do_not_apply_are_errors(listed, tmp_path):
    source = open_images(listed).splits["train"]
    with pytest.raises(UsageError, match="cache is 'memory'"):
        make_train_dataset(source, InputOptions((8, 8), record_cache="memory"))
    with pytest.raises(UsageError, match="verify"):
        load(listed, image_size=(8, 8), verify=True)
    darkroom.convert(listed, tmp_path / "records")
    with pytest.raises(UsageError, match="converted"):
        load(tmp_path / "records", image_size=(8, 8), manifest=ManifestOptions())


def test_the_identity_changes_with_files_rows_and_parts(listed):
    first = open_images(listed).splits["train"]
    assert first.identify() == open_images(listed).splits["train"].identify()
    assert first.identify() != first.select((0, 2)).identify()
    (listed.parent / "0.png").write_bytes(encode(GRAY, "PNG"))
    assert first.identify() != open_images(listed).splits["train"].identify()


def test_opening_images_makes_no_tensor(listed, tmp_path, warm_python):
    """A training with several workers must find them before TensorFlow makes a tensor."""
    (tmp_path / "train.py").write_text(
        "import sys, tensorflow as tf\n"
        "from darkroom.input import open_images\n"
        "assert open_images(sys.argv[1]).splits['train'].count_images()\n"
        "tf.distribute.MultiWorkerMirroredStrategy()\n"
    )
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
    config = {"cluster": {"worker": [f"localhost:{port}"]}, "task": {"type": "worker", "index": 0}}
    environment = {**os.environ, "TF_CONFIG": json.dumps(config)}
    done = warm_python.run(tmp_path / "train.py", listed, env=environment)
    assert done.returncode == 0, done.stderr
