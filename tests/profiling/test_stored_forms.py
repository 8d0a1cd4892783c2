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
    """JPEGs of noise, which take long to decode."""
    root = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for number in range(8):
        pixels = rng.integers(0, 255, (300, 400, 3), np.uint8)
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


def _measure_none(source):
    """Returns the note that says why no form was measured."""
    told = io.StringIO()
    with progress.use(PlainProgress(told)):
        assert measure_forms(source, OPTIONS) == ()
    return told.getvalue()


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


@pytest.mark.long
def test_much_too_large_images_gain_from_both_forms(folder, tmp_path):
    smaller, pixels = measure_forms(_read(folder, tmp_path), OPTIONS)
    assert 0 < smaller.left_share < 0.7
    assert 0 < pixels.left_share < 0.7


def test_images_that_are_small_already_could_only_be_stored_as_pixels(folder, tmp_path):
    source = _read(folder, tmp_path, resize_short_side=37)
    forms = measure_forms(source, OPTIONS, _run_once(4.0, 6.0))
    assert forms == (StoredForm("store pixels (--encoding raw)", 1.5),)


def test_pixels_have_no_other_form(folder, tmp_path):
    source = _read(folder, tmp_path, resize_short_side=37, encoding="raw")
    raw = RecordSource(source.files)
    assert measure_forms(raw, OPTIONS) == ()


def test_images_that_were_not_converted_have_the_same_forms(folder):
    _, splits = open_images(folder)
    assert len(measure_forms(splits["train"], OPTIONS, _run_once(3.0, 2.0, 1.0))) == 2


def test_a_full_disk_costs_the_advice_and_nothing_else(folder, tmp_path, monkeypatch):
    source = _read(folder, tmp_path)

    def fail(*_arguments, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("darkroom.profiling.stored_forms.convert", fail)
    assert "were not measured: No space left on device." in _measure_none(source)


def test_a_damaged_image_is_left_to_the_training(helpers, folder, tmp_path):
    good = sorted(folder.rglob("*.jpg"))[0].read_bytes()
    records = [
        helpers.make_example({"image/encoded": data, "image/class/label": 0})
        for data in (good, good[:5000], b"no image at all", good)
    ]
    source = RecordSource(helpers.write_split(tmp_path, "train", records))
    smaller, _ = measure_forms(source, OPTIONS, _run_once(4.0, 2.0, 1.0))
    assert smaller.left_share == 0.5


def test_files_that_are_read_several_times_keep_the_sizes_that_were_noted(folder, tmp_path):
    source = _read(folder, tmp_path)
    twice = RecordSource(source.files * 2)
    assert twice.count_images() == 2 * source.count_images() == 16
    record = next(iter(twice.make_elements(OPTIONS, None)))
    assert twice.parse(record).shape.numpy().tolist() == [300, 400]
