"""What input would gain if images were stored in another form, measured on some of them."""

from __future__ import annotations

import dataclasses
import math
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from darkroom import progress
from darkroom.converter import convert
from darkroom.image_bytes import JPEG, sniff_format
from darkroom.image_source import EpochOrder, ImageSource
from darkroom.input_pipeline import make_train_dataset, map_images
from darkroom.options import NO_CACHE, InputOptions, choose_short_side
from darkroom.record_source import RecordSource, check_commits, list_files
from darkroom.verdict import StoredForm

_MAX_IMAGES, _MAX_BYTES = 256, 64 << 20
_SHARDS = 4
# An epoch of so few images is short, and a pipeline starts and runs empty at its ends.
_MIN_BATCHES, _MIN_PASSES, _ROUNDS = 12, 4, 3
_AS_IT_IS = ""


def measure_forms(
    source: ImageSource, options: InputOptions, short_side: float
) -> tuple[StoredForm, ...]:
    """Converts the first images of an epoch into other forms, and reads each in turn.

    Args:
        source: Where images come from; those that are stored as pixels have no other form.
        options: How they become batches.
        short_side: Mean shorter side of the images, in pixels.

    Returns:
        The forms, those that take less room first, each with the share of time that it leaves.
    """
    options = dataclasses.replace(options, shard=(0, 1), repeat=1, cache=NO_CACHE, service=None)
    stored = choose_short_side(options.image_size)
    smaller: dict[str, Any] = {"resize_short_side": stored} if short_side > stored else {}
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


def time_in_turn(runs: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Runs each in turn, so that what else the machine does meets all; returns their fastest."""
    fastest = dict.fromkeys(runs, math.inf)
    for _ in range(_ROUNDS):
        for name, run in runs.items():
            fastest[name] = min(fastest[name], run())
    return fastest
