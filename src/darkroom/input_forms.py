"""What input would gain if images were stored in another form, measured on some of them."""

from __future__ import annotations

import dataclasses
import math
import statistics
import tempfile
import time
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import tensorflow as tf

from darkroom import progress
from darkroom.converter import convert
from darkroom.errors import DarkroomError, convert_error
from darkroom.image_bytes import JPEG, sniff_format
from darkroom.image_source import EpochOrder, ImageSource
from darkroom.input_pipeline import decode_view, make_train_dataset, map_images
from darkroom.input_stages import time_in_turn
from darkroom.options import NO_CACHE, InputOptions, choose_short_side
from darkroom.record_source import RecordSource, check_commits, list_files
from darkroom.verdict import StoredForm

_MAX_IMAGES, _MAX_BYTES = 256, 64 << 20
_SHARDS = 4
# An epoch of so few images is short, and a pipeline starts and runs empty at its ends.
_MIN_BATCHES, _MIN_PASSES = 12, 4
_SAMPLED_SHAPES = 64
_AS_IT_IS = ""


def measure_forms(source: ImageSource, options: InputOptions) -> tuple[StoredForm, ...]:
    """Converts the first images of an epoch into other forms, and reads each in turn.

    Args:
        source: Where images come from; those that are stored as pixels have no other form.
        options: How they become batches.

    Returns:
        The forms, those that take less room first, each with the share of time that it leaves; none
        where they could not be measured, with a note that says why.
    """
    try:
        return _measure_forms(source, options)
    except (DarkroomError, OSError, RuntimeError, tf.errors.OpError) as error:
        # A training that is done must not fail for want of advice.
        said = error.message if isinstance(error, tf.errors.OpError) else convert_error(error)
        progress.note(f"What other forms of the images would bring was not measured: {said}")
        return ()


def _measure_forms(source: ImageSource, options: InputOptions) -> tuple[StoredForm, ...]:
    options = dataclasses.replace(options, shard=(0, 1), repeat=1, cache=NO_CACHE, service=None)
    stored = choose_short_side(options.image_size)
    too_large = _measure_short_side(source, options) > stored
    smaller: dict[str, Any] = {"resize_short_side": stored} if too_large else {}
    flags = f"--resize-short-side {stored}" if smaller else ""
    forms: dict[str, dict[str, Any]] = {_AS_IT_IS: {}}
    if smaller:
        forms[f"store at {stored} px ({flags})"] = smaller
    forms[f"store pixels ({f'{flags} --encoding raw'.strip()})"] = {**smaller, "encoding": "raw"}
    with (
        progress.step("Other forms of storage"),
        tempfile.TemporaryDirectory(prefix="darkroom-") as scratch,
    ):
        images = Path(scratch, "images")
        labels, count = _write_images(source, options, images)
        if not count:
            return ()
        passes = max(_MIN_PASSES, math.ceil(_MIN_BATCHES * options.batch_size / count))
        sources = {}
        for number, (advice, how) in enumerate(forms.items()):
            target = Path(scratch, str(number))
            convert(
                images,
                target,
                split_ratios="100/0/0",
                label_map=labels,
                num_shards=_SHARDS,
                max_rejects=1.0,
                **how,
            )
            files = list_files(f"{target}/Split-train/*")
            sources[advice] = RecordSource(files * passes, check_commits(files, False))
        fastest = time_in_turn(
            {name: partial(_time_epoch, each, options) for name, each in sources.items()}
        )
    whole = fastest.pop(_AS_IT_IS)
    return tuple(StoredForm(advice, seconds / whole) for advice, seconds in fastest.items())


def _measure_short_side(source: ImageSource, options: InputOptions) -> float:
    """Returns the mean shorter side of the first images, which are decoded for it."""

    def measure(element: tf.Tensor) -> tf.Tensor:
        image = source.parse(element)
        whole = dataclasses.replace(options, scaled_decoding=False, resize="stretch")
        return tf.reduce_min(tf.shape(decode_view(image, whole, resized=False))[:2])

    sides = map_images(source.make_elements(options, None), measure, options)
    return statistics.fmean(map(float, islice(sides.as_numpy_iterator(), _SAMPLED_SHAPES)))


def _write_images(
    source: ImageSource, options: InputOptions, folder: Path
) -> tuple[list[str], int]:
    """Writes images below folders that are named by their labels.

    Returns:
        These names, and the number of images.
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
    next(batches)  # for which a pipeline has to start
    started = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - started
