"""Measures how much faster input would be if the images were stored in another form."""

from __future__ import annotations

import dataclasses
import math
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from darkroom.conversion.convert import convert
from darkroom.dataset.commit import read_dataset
from darkroom.errors import DarkroomError, convert_error
from darkroom.images.headers import JPEG, sniff_format
from darkroom.input.pipeline import make_train_dataset, map_images
from darkroom.input.records import RecordSource
from darkroom.input.source import EpochOrder, ImageSource
from darkroom.options.conversion import ConversionOptions
from darkroom.options.input import NO_CACHE, InputOptions, choose_short_side
from darkroom.profiling.stages import Measure, time_in_turn
from darkroom.profiling.verdict import StoredForm
from darkroom.runtime import progress

_MAX_IMAGES, _MAX_BYTES = 256, 64 << 20
_SHARDS = 4
# An epoch of few images is short, and a pipeline is slow at its start and its end.
_MIN_BATCHES, _MIN_PASSES = 12, 4
_AS_IT_IS = ""


def measure_forms(
    source: ImageSource, options: InputOptions, measure: Measure = time_in_turn
) -> tuple[StoredForm, ...]:
    """Converts the first images of an epoch to other forms, and reads each form.

    Args:
        source: Where images come from. Images that are stored as raw pixels have no other form.
        options: How they become batches.
        measure: Runs an epoch of each form and returns its seconds.

    Returns:
        The forms, the smallest first, each with the share of time that it leaves. Empty, with a
        note that says why, if they could not be measured.
    """
    try:
        return _measure_forms(source, options, measure)
    except (DarkroomError, OSError, RuntimeError, tf.errors.OpError) as error:
        # The training is done. It must not fail because there is no advice.
        said = error.message if isinstance(error, tf.errors.OpError) else convert_error(error)
        progress.note(f"Other forms of the images were not measured: {said}")
        return ()


def _measure_forms(
    source: ImageSource, options: InputOptions, measure: Measure
) -> tuple[StoredForm, ...]:
    options = dataclasses.replace(
        options, shard=(0, 1), repeat=1, record_cache=NO_CACHE, service=None
    )
    with (
        progress.step("Measure other forms of storage"),
        tempfile.TemporaryDirectory(prefix="darkroom-") as scratch,
    ):
        images = Path(scratch, "images")
        labels, count = _write_images(source, options, images)
        if not count:
            return ()
        passes = max(_MIN_PASSES, math.ceil(_MIN_BATCHES * options.batch_size / count))

        def store(**form: Any) -> RecordSource:
            target = tempfile.mkdtemp(dir=scratch)
            convert(
                images,
                target,
                split_ratios="100/0/0",
                label_map=labels,
                num_shards=_SHARDS,
                max_rejects=1.0,
                options=ConversionOptions(**form),
            )
            dataset = read_dataset(target)
            files = [f"{target}/{shard.file}" for shard in dataset.splits["train"].shards]
            return RecordSource(files * passes, {target: dataset})

        sources = {_AS_IT_IS: store()}
        short_side = choose_short_side(options.image_size)
        smaller: dict[str, Any] = {}
        flags = "--encoding raw"
        if _measure_short_side(sources[_AS_IT_IS], options) > short_side:
            smaller = {"resize_short_side": short_side}
            smaller_flag = f"--resize-short-side {short_side}"
            sources[f"store at {short_side} px ({smaller_flag})"] = store(**smaller)
            flags = f"{smaller_flag} {flags}"
        sources[f"store pixels ({flags})"] = store(**smaller, encoding="raw")
        fastest = measure(
            {name: partial(_time_epoch, each, options) for name, each in sources.items()}
        )
    whole = fastest.pop(_AS_IT_IS)
    return tuple(StoredForm(advice, seconds / whole) for advice, seconds in fastest.items())


def _measure_short_side(stored: RecordSource, options: InputOptions) -> float:
    """Returns the mean shorter side of the images in pixels, from their records."""

    def measure(element: tf.Tensor) -> tf.Tensor:
        return tf.reduce_min(stored.parse(element).shape)

    sides = map_images(stored.make_elements(options, None), measure, options)
    return statistics.fmean(map(float, sides.as_numpy_iterator()))


def _write_images(
    source: ImageSource, options: InputOptions, folder: Path
) -> tuple[list[str], int]:
    """Writes images into folders that are named by their labels.

    Returns:
        The names of the folders, and the number of images.
    """

    def parse(element: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        image = source.parse(element)
        return image.encoded, image.label, tf.constant(image.channels is None)

    elements = source.make_elements(options, EpochOrder(options.seed, 0)).take(_MAX_IMAGES)
    names: set[str] = set()
    count = num_bytes = 0
    images = map_images(elements, parse, options).as_numpy_iterator()
    for encoded, label, is_file in images:
        if not is_file:
            break
        names.add(name := f"{label:06d}")
        path = folder / name / f"{count:06d}.{'jpg' if sniff_format(encoded) == JPEG else 'png'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded)
        count, num_bytes = count + 1, num_bytes + len(encoded)
        if num_bytes >= _MAX_BYTES:
            break
    return sorted(names), count


def _time_epoch(source: ImageSource, options: InputOptions) -> float:
    """Returns the seconds of an epoch after its first batch."""
    batches = iter(make_train_dataset(source, options, epoch=0))
    next(batches)  # The pipeline starts for this one.
    started = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - started
