from __future__ import annotations

import dataclasses
import errno
import io

import numpy as np
import pytest
import tensorflow as tf

from darkroom.conversion.convert import convert
from darkroom.input.files import open_images
from darkroom.input.records import RecordSource
from darkroom.options.conversion import ConversionOptions
from darkroom.options.input import InputOptions
from darkroom.profiling.stored_forms import measure_forms
from darkroom.profiling.verdict import StoredForm
from darkroom.runtime import progress
from darkroom.runtime.display import PlainProgress

pytestmark = pytest.mark.tensorflow

OPTIONS = InputOptions((32, 32), batch_size=2, augment="none", scaled_decoding=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """JPEGs of noise."""
    root = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for number in range(8):
        pixels = rng.integers(0, 255, (90, 120, 3), np.uint8)
        target = root / "ab"[number % 2] / f"{number}.jpg"
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(tf.io.encode_jpeg(pixels, quality=95).numpy())
    return root


def _read(folder, tmp_path, **options):
    made = ConversionOptions(split_ratios="100/0/0", **options)
    convert(folder, tmp_path / "records", options=made)
    return RecordSource([str(path) for path in sorted(tmp_path.glob("records/Split-train/*"))])


def _run_once(*seconds):
    """Measures nothing: runs each pipeline once, and says that they took these seconds."""

    def measure(runs):
        assert all(run() >= 0 for run in runs.values())
        return dict(zip(runs, seconds, strict=True))

    return measure


def test_images_that_are_too_large_could_be_stored_smaller_and_as_pixels(folder, tmp_path):
    # That it is a part of many processes and has a cache is not taken over.
    cache = tmp_path / "cache"
    options = dataclasses.replace(OPTIONS, shard=(1, 2), repeat=None, record_cache=str(cache))
    forms = measure_forms(_read(folder, tmp_path), options, _run_once(8.0, 2.0, 1.0))
    assert not cache.exists()
    assert forms == (
        StoredForm("store at 37 px (--resize-short-side 37)", 0.25),
        StoredForm("store pixels (--resize-short-side 37 --encoding raw)", 0.125),
    )


@pytest.mark.parametrize(
    ("encoding", "forms"),
    [("keep", (StoredForm("store pixels (--encoding raw)", 1.5),)), ("raw", ())],
)
def test_images_that_are_small_already_could_only_be_stored_as_pixels(
    folder, tmp_path, encoding, forms
):
    source = _read(folder, tmp_path, resize_short_side=37, encoding=encoding)
    assert measure_forms(source, OPTIONS, _run_once(4.0, 6.0)) == forms


def test_a_full_disk_costs_the_advice_and_nothing_else(folder, monkeypatch):
    def fail(*_arguments, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("darkroom.profiling.stored_forms.convert", fail)
    told = io.StringIO()
    with progress.use(PlainProgress(told)):
        assert measure_forms(open_images(folder).splits["train"], OPTIONS) == ()
    assert "were not measured: No space left on device." in told.getvalue()


def test_a_damaged_image_is_left_to_the_training(helpers, folder, tmp_path):
    good = sorted(folder.rglob("*.jpg"))[0].read_bytes()
    records = [
        helpers.make_example({"image/encoded": data, "image/class/label": 0})
        for data in (good, good[: len(good) // 2], b"no image at all", good)
    ]
    source = RecordSource(helpers.write_split(tmp_path, "train", records))
    smaller, _ = measure_forms(source, OPTIONS, _run_once(4.0, 2.0, 1.0))
    assert smaller.left_share == 0.5
