"""Batches of boxes for TensorFlow and Keras."""

from __future__ import annotations

import json
import math
import shutil
import socket

import keras
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import darkroom
from darkroom.dataset.example import IMAGE_HEIGHT, IMAGE_WIDTH, decode_example, encode_example
from darkroom.dataset.tfrecord import frame_record, read_records
from darkroom.errors import DataError, UsageError
from darkroom.input import input_fn
from darkroom.input.service import run_dispatcher, run_worker
from darkroom.options.input import BOX_FORMATS, InputOptions
from darkroom.targets.boxes.kind import (
    AREA,
    CORNERS,
    DIFFICULT,
    IS_CROWD,
    OBJECT_NUMBER,
    OBJECTS_KNOWN,
)
from darkroom.targets.boxes.learning import LEARNING
from darkroom.targets.geometry import Matrix, scale
from darkroom.targets.learned import Learned

pytestmark = pytest.mark.tensorflow

LABELS = ("red", "green", "blue")
SIZE = (96, 128)
COUNT = 24


@pytest.fixture(scope="module")
def objects() -> list:
    """What the list says of each image: up to three objects; null for number 6."""
    random = np.random.default_rng(1)

    def draw(width: int, height: int, label: str) -> dict:
        left, top = random.uniform(0, width - 40), random.uniform(0, height - 40)
        right, bottom = random.uniform(left + 30, width), random.uniform(top + 30, height)
        return {"label": label, "box": [left, top, right, bottom], "is_crowd": label == "blue"}

    found = []
    for number in range(COUNT):
        sides = (400, 260) if number % 2 else (300, 330)
        found.append([draw(*sides, label) for label in LABELS[: number % 4]])
    found[6] = None
    return found


@pytest.fixture(scope="module")
def folder(objects, tmp_path_factory: pytest.TempPathFactory):
    """A list of images in which each object fills its box in the color of its label."""
    folder = tmp_path_factory.mktemp("boxes")
    rows = []
    for number, cell in enumerate(objects):
        width, height = (400, 260) if number % 2 else (300, 330)
        pixels = np.zeros((height, width, 3), np.uint8)
        for each in cell or ():
            left, top, right, bottom = map(round, each["box"])
            pixels[top:bottom, left:right, LABELS.index(each["label"])] = 250
        name = f"{number}.{'png' if number % 3 else 'jpg'}"
        Image.fromarray(pixels).save(folder / name, quality=95, subsampling=0)
        split = "train" if number < 16 else "eval"
        rows.append({"image_uri": name, "split": split, "objects": cell, "number": number})
    (folder / "list.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def records(folder):
    """The dataset of the list."""
    darkroom.convert(folder / "list.jsonl", folder / "records", label_map=LABELS, num_shards=4)
    return folder / "records"


def join(batches) -> tuple[np.ndarray, dict]:
    """Returns all images of batches, and all of each tensor of their targets."""
    images, targets = zip(*((images, targets) for images, targets, *_ in batches), strict=True)
    names = targets[0]
    return tf.concat(images, 0).numpy(), {
        name: tf.concat([each[name] for each in targets], 0) for name in names
    }


def test_whole_images_have_their_boxes_in_pixels_of_the_view(records, objects):
    data = darkroom.load(records, image_size=SIZE, batch_size=5, columns=["number"])
    assert data.labels == LABELS
    seen = 0
    for images, targets, columns in [*data["train"], *data["eval"]]:
        assert images.shape[1:] == (*SIZE, 3)
        boxes, labels, is_crowd, difficult, area, annotated = (
            each.numpy() for each in targets.values()
        )
        assert (boxes.dtype, labels.dtype, is_crowd.dtype) == (np.float32, np.int64, bool)
        assert not difficult.any()
        for row, number in enumerate(columns["number"].numpy()):
            said = objects[number]
            assert annotated[row] == (said is not None)
            width, height = (400, 260) if number % 2 else (300, 330)
            scale = np.array([SIZE[1] / width, SIZE[0] / height] * 2)
            for place in range(3):
                # The fullest image has three objects.
                each = said[place] if said and place < len(said) else None
                expected = scale * each["box"] if each else np.zeros(4)
                np.testing.assert_allclose(boxes[row, place], expected, atol=1e-3)
                assert labels[row, place] == (LABELS.index(each["label"]) if each else -1)
                assert is_crowd[row, place] == bool(each and each["is_crowd"])
                left, top, right, bottom = expected
                assert area[row, place] == pytest.approx((right - left) * (bottom - top), rel=1e-4)
            seen += 1
    assert seen == COUNT


def check_colors(images: np.ndarray, targets: dict) -> np.ndarray:
    """Checks that each box is where its color is, and returns which objects are shown."""
    boxes, labels = targets["boxes"].numpy(), targets["labels"].numpy()
    for image, own, numbers in zip(images, boxes, labels, strict=True):
        for color in range(3):
            bright = image[..., color] > 125
            across, down = np.flatnonzero(bright.any(0)), np.flatnonzero(bright.any(1))
            if color not in numbers:
                # A sliver of a pixel may round up to one.
                assert min(len(across), len(down)) <= 1
                continue
            found = own[numbers.tolist().index(color)]
            if len(across):
                expected = across[0], down[0], across[-1] + 1, down[-1] + 1
                np.testing.assert_allclose(found, expected, atol=1.2)
            else:
                assert min(found[2:] - found[:2]) <= 1
    return labels >= 0


@pytest.mark.parametrize(
    ("resize", "augment"), [("stretch", "flip"), ("center_crop", "crop,flip,color=0.2")]
)
def test_a_box_is_where_its_pixels_are(records, resize, augment):
    more = {"image_size": SIZE, "resize": resize, "min_visible": 0, "augment": augment}
    for batches in darkroom.load(records, training=True, **more).values():
        assert check_colors(*join(batches)).sum() > 5


def test_a_window_leaves_out_objects_of_which_it_shows_too_little(records):
    def count(min_visible: float) -> list[np.ndarray]:
        options = InputOptions(SIZE, batch_size=8, augment="crop=0.1-0.3", min_visible=min_visible)
        batches = input_fn(f"{records}/Split-train/*", options, True, epoch=0)
        _, targets = join(batches)
        return targets["labels"].numpy() >= 0, targets["boxes"].numpy()

    (any_part, boxes), (usual, _), (whole, uncut) = map(count, (0, 0.25, 1))
    assert any_part.sum() > usual.sum() > whole.sum() > 0
    assert not (whole & ~usual).any()
    assert not (usual & ~any_part).any()
    # Those that are left are the same ones in the same places.
    np.testing.assert_array_equal(boxes[whole], uncut[whole])
    assert (uncut[~whole] == 0).all()


@pytest.mark.parametrize("name", BOX_FORMATS)
def test_the_formats_are_those_of_keras(name):
    corners = [[0.0, 0.25], [0.125, 0.5], [0.5, 0.75], [1.0, 0.625]]
    features = {
        **dict(zip(CORNERS, map(tf.constant, corners), strict=True)),
        AREA: tf.constant([1.0, 1.0]),
        **dict.fromkeys((OBJECT_NUMBER, IS_CROWD, DIFFICULT), tf.constant([1, 1], tf.int64)),
        **dict.fromkeys((OBJECTS_KNOWN, IMAGE_HEIGHT, IMAGE_WIDTH), tf.constant(1, tf.int64)),
    }
    targets = {key: each[None] for key, each in LEARNING.parse(features, 3).items()}
    height, width = SIZE
    matrix = Matrix(*(tf.constant([value], tf.float64) for value in scale(width, height)))
    options = InputOptions(SIZE, bounding_box_format=name)
    found = LEARNING.follow(targets, matrix, options)["boxes"]
    plain = [[[0, 12, 64, 96], [32, 48, 96, 60], [0, 0, 0, 0]]]
    expected = keras.utils.bounding_boxes.convert_format(
        np.float32(plain), source="xyxy", target=name, height=height, width=width
    )
    np.testing.assert_allclose(found, expected)


def test_ragged_batches_have_the_objects_alone(records):
    padded, batches = (
        input_fn(
            f"{records}/Split-train/*",
            InputOptions(SIZE, augment="crop", first_label=1, ragged=is_ragged),
            training=True,
            epoch=0,
        )
        for is_ragged in (False, True)
    )
    _, padded = join(padded)
    assert isinstance(batches.element_spec[1]["boxes"], tf.RaggedTensorSpec)
    _, found = join(batches)
    for number, labels in enumerate(padded["labels"].numpy()):
        assert set(labels) <= {-1, 1, 2, 3}
        for name in ("boxes", "labels", "is_crowd", "difficult", "area"):
            expected = padded[name][number][labels >= 0]
            np.testing.assert_array_equal(found[name][number], expected)
    np.testing.assert_array_equal(found["annotated"], padded["annotated"])


def test_an_epoch_goes_on_where_it_was_left(records):
    """How workers share it does not depend on what images are labelled with."""
    options = InputOptions(SIZE, batch_size=2, augment="crop,rotate=9", record_cache="memory")

    def read(skip_batches: int) -> np.ndarray:
        files = f"{records}/Split-train/*"
        batches = input_fn(files, options, True, epoch=2, skip_batches=skip_batches)
        return join(batches)[1]["boxes"].numpy()

    np.testing.assert_array_equal(read(3), read(0)[6:])


def test_a_data_service_gives_boxes(records):
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
    with run_dispatcher(0) as address, run_worker(address, port):
        options = InputOptions(SIZE, batch_size=4, augment="none", service=address)
        images, targets = join(input_fn(f"{records}/Split-train/*", options, True))
    assert len(images) == 16
    assert check_colors(images, targets).sum() == 24 - 2


def test_keras_trains_on_the_batches(records):
    """As a detector does: by a loss that is given the dict."""

    class Detector(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.last = keras.layers.Dense(4)

        def call(self, images):
            return self.last(keras.ops.mean(keras.ops.cast(images, "float32"), (1, 2)) / 255)

        def compute_loss(self, x, y, y_pred, *_):
            weights = keras.ops.cast(y["labels"] >= 0, "float32")
            errors = keras.ops.mean(keras.ops.abs(y["boxes"] - y_pred[:, None]), -1)
            return keras.ops.sum(errors * weights) / keras.ops.sum(weights)

    more = {"augment": "none", "bounding_box_format": "rel_yxyx"}
    data = darkroom.load(records, image_size=SIZE, training=True, **more)
    model = Detector()
    model.compile("adam")
    history = model.fit(data["train"], validation_data=data["eval"], epochs=2, verbose=0).history
    assert np.isfinite(history["val_loss"]).all()


def test_boxes_are_not_mixed(records):
    for training in (True, False):
        with pytest.raises(UsageError, match="and boxes cannot be mixed"):
            input_fn(f"{records}/Split-eval/*", InputOptions(SIZE, augment="mixup"), training)


def test_a_list_is_converted_first(folder):
    with pytest.raises(UsageError, match="labelled with boxes, whose places") as caught:
        darkroom.load(folder / "list.jsonl", image_size=8)
    assert caught.value.hint.startswith("Convert the source with darkroom convert")


@pytest.mark.crosses
def test_models_of_darkroom_name_what_trains_instead(records, tmp_path):
    from darkroom.evaluation.scores.serving import check_model_kind

    with pytest.raises(DataError) as caught:
        darkroom.train(records, tmp_path / "training")
    for name in ("labelled with boxes", "darkroom.load", "KerasHub", "torchvision"):
        assert name in f"{caught.value.message} {caught.value.hint}"
    assert not (tmp_path / "training").exists()
    with pytest.raises(DataError, match="labelled with boxes, which"):
        check_model_kind("model", Learned("label", LABELS), "boxes")


FORGED = {
    "a class that is not there": (OBJECT_NUMBER, 99),
    "the background": (OBJECT_NUMBER, 0),
    "a huge class": (OBJECT_NUMBER, 2**62),
    "nan": (CORNERS[0], math.nan),
    "inf": (CORNERS[2], math.inf),
    "crossed corners": (CORNERS[1], 1.0),
    "another crowd": (IS_CROWD, 7),
    "one corner more": (CORNERS[3], [0.9, 0.9]),
    "no flag": (DIFFICULT, []),
    "a flag of another type": (DIFFICULT, [0.5]),
    "many objects": (CORNERS[0], [0.5] * 1_000),
    "no size": (IMAGE_HEIGHT, []),
}


@pytest.fixture(scope="module")
def forged(folder, tmp_path_factory):
    """A file of one record, its features and image, and its batches to train and to evaluate.

    Its index is in another folder, as in TFX.
    """
    root = tmp_path_factory.mktemp("forged")
    row = json.loads((folder / "list.jsonl").read_text().splitlines()[1])
    row["image_uri"] = str(folder / row["image_uri"])
    (root / "list.jsonl").write_text(json.dumps(row))
    darkroom.convert(root / "list.jsonl", root / "records", label_map=LABELS)
    shutil.rmtree(root / "records/index")
    [file] = (root / "records/Split-train").iterdir()
    [record] = read_records(str(file))
    features = decode_example(record)
    [image] = features.pop("image/encoded")
    options = InputOptions(image_size=SIZE, batch_size=1)
    return file, features, image, [input_fn(str(file), options, each) for each in (False, True)]


@pytest.mark.parametrize(("name", "value"), FORGED.values(), ids=FORGED)
def test_objects_that_cannot_be_are_an_error_with_file_and_record(forged, name, value):
    file, features, image, batches = forged
    value = value if isinstance(value, list) else [value]
    head = encode_example(features | {name: value}, image)
    file.write_bytes(b"".join(frame_record(head, image)))
    said = rf"^{file}: what record 0 \(.*1\.png\) is labelled with cannot be right\. It has .*red"
    with pytest.raises(DataError, match=said):
        next(iter(batches[name in CORNERS]))
