from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import darkroom
from darkroom.errors import DataError, UsageError
from darkroom.images.prepare import prepare_image
from darkroom.input.loading import load
from darkroom.input.opening import input_fn, open_files
from darkroom.input.pipeline import make_train_dataset
from darkroom.options.conversion import ConversionOptions
from darkroom.options.image import ImageOptions
from darkroom.options.input import InputOptions

from ..pictures import encode

pytestmark = pytest.mark.tensorflow

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The same PNGs, RGB and gray, as files and as pixels."""
    root = tmp_path_factory.mktemp("raw")
    lines = ["split,image_uri,label"]
    for number in range(12):
        shape = (10 + number, 14, 3) if number % 3 else (10 + number, 14)
        (root / f"{number}.png").write_bytes(encode(RNG.integers(0, 256, shape, np.uint8)))
        lines.append(f"{('train', 'test')[number % 4 == 3]},{number}.png,{'ab'[number % 2]}")
    (root / "images.csv").write_text("\n".join(lines) + "\n")
    for encoding in ("keep", "raw"):
        darkroom.convert(
            root / "images.csv",
            root / encoding,
            num_shards=2,
            options=ConversionOptions(encoding=encoding),
        )
    return root


def _assert_same(first, second):
    pairs = list(zip(first.as_numpy_iterator(), second.as_numpy_iterator(), strict=True))
    assert pairs
    for (pixels, labels), (other_pixels, other_labels) in pairs:
        np.testing.assert_array_equal(pixels, other_pixels)
        np.testing.assert_array_equal(labels, other_labels)


@pytest.mark.parametrize("resize", ["stretch", "center_crop"])
def test_pixels_are_those_of_the_files(folders, resize):
    keep, raw = (
        load(folders / name, options=InputOptions((9, 9), batch_size=4, resize=resize))
        for name in ("keep", "raw")
    )
    for split in ("train", "test"):
        _assert_same(keep[split], raw[split])


def test_random_windows_are_those_of_the_files(folders):
    options = InputOptions((8, 8), batch_size=4, augment="crop_flip", seed=3)
    keep, raw = (
        make_train_dataset(sorted(map(str, folders.glob(f"{name}/Split-train/*"))), options)
        for name in ("keep", "raw")
    )
    _assert_same(keep, raw)


def test_records_and_index_say_what_is_stored(folders):
    record = next(iter(tf.data.TFRecordDataset(str(next(folders.glob("raw/Split-test/*"))))))
    features = tf.train.Example.FromString(record.numpy()).features.feature
    number = int(features["image/filename"].bytes_list.value[0].decode().split(".")[0])
    assert features["image/format"].bytes_list.value[0] == b"RAW"
    pixels = np.asarray(Image.open(folders / f"{number}.png"))
    assert features["image/encoded"].bytes_list.value[0] == pixels.tobytes()
    sizes = [features[f"image/{name}"].int64_list.value[0] for name in ("height", "width")]
    assert sizes == list(pixels.shape[:2])
    assert features["image/channels"].int64_list.value[0] == pixels[..., None].shape[2]
    assert darkroom.verify(folders / "raw").findings == ()


def test_a_photo_is_stored_upright_with_the_pixels_that_tensorflow_decodes():
    pixels = RNG.integers(0, 256, (8, 12, 3), np.uint8)
    exif = Image.Exif()
    for checks in ("full", "header"):
        exif[0x0112] = 1
        data = encode(pixels, "JPEG", exif=exif)
        stored = prepare_image(data, ImageOptions(image_check=checks, encoding="raw"))
        decoded = tf.io.decode_jpeg(data).numpy()
        assert stored.format == "RAW"
        assert stored.changes == ("raw",)
        assert stored.encoded == decoded.tobytes()
        exif[0x0112] = 6
        turned = prepare_image(
            encode(pixels, "JPEG", exif=exif), ImageOptions(image_check=checks, encoding="raw")
        )
        assert turned.changes == ("orientation", "raw")
        assert (turned.height, turned.width) == (12, 8)
        assert turned.encoded == np.rot90(decoded, -1).tobytes()


@pytest.mark.crosses
def test_the_sheet_shows_the_same_pictures(folders):
    sheets = [
        darkroom.inspect(folders / name, split="test", output_dir=folders / f"{name}-sheet").sheet
        for name in ("keep", "raw")
    ]
    first, second = (np.asarray(Image.open(sheet)) for sheet in sheets)
    np.testing.assert_array_equal(first, second)


def test_raw_and_encoded_datasets_are_not_read_together(folders):
    patterns = [str(folders / name / "Split-train" / "*") for name in ("keep", "raw")]
    with pytest.raises(DataError, match=r"raw stores raw pixels, .*keep does not"):
        input_fn(patterns, InputOptions((8, 8)), training=False)


def test_an_unknown_encoding_is_an_error(folders):
    with pytest.raises(UsageError, match="encoding is 'utf-8', expected one of keep, raw"):
        darkroom.convert(
            folders / "images.csv", folders / "other", options=ConversionOptions(encoding="utf-8")
        )


@pytest.mark.crosses
def test_an_exported_model_reads_records_of_both_kinds(folders, tmp_path):
    import keras

    from darkroom.training.export import export_model

    inputs = keras.Input((6, 6, 3), dtype="uint8")
    means = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(inputs))
    outputs = keras.layers.Dense(2, activation="softmax", use_bias=False)(means)
    export_model(keras.Model(inputs, outputs), ["a", "b"], (6, 6), str(tmp_path / "model"))
    served = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_examples"]
    found = []
    for name in ("keep", "raw"):
        source = open_files(sorted(map(str, folders.glob(f"{name}/Split-train/*"))))
        records = list(source.make_elements(InputOptions((6, 6)), None))
        found.append(served(examples=tf.stack(records))["probabilities"].numpy())
    np.testing.assert_array_equal(found[0], found[1])
    assert np.unique(found[0], axis=0).shape[0] > 1
