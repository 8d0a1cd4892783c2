"""A sample of a dataset, in all the forms that `darkroom benchmark input` reads."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from darkroom import storage
from darkroom.conversion.convert import convert
from darkroom.dataset import example
from darkroom.dataset.commit import Dataset
from darkroom.dataset.integrity.opening import open_dataset
from darkroom.dataset.integrity.pointer import find_data
from darkroom.dataset.splits import TRAIN
from darkroom.dataset.tfrecord import read_records
from darkroom.errors import DataError
from darkroom.options.conversion import ConversionOptions
from darkroom.options.input import InputOptions, choose_short_side
from darkroom.runtime import progress

ONE_FILE, SHARDS, RESIZED, RAW, GZIP = "one", "shards", "resized", "raw", "gzip"

_NUM_SHARDS = 8
# A sample is stored six times.
_MAX_SAMPLE_BYTES = 256 << 20
_SUFFIXES = {b"jpeg": ".jpg", b"png": ".png"}
# Pillow uses four bytes for a pixel of RGB.
_BYTES_PER_PIXEL = 4


@dataclass(frozen=True)
class InputSample:
    """Images of a dataset as files, and as TFRecords of several forms.

    Attributes:
        options: How they become batches.
        paths: The files, JPEG or PNG.
        labels: Their labels' numbers.
        records: Paths of the TFRecords of each form.
        num_bytes: Size of all files.
        memory_bytes: Memory of all decoded images.
        is_jpeg: Whether all files are JPEGs.
        resources: Closed together with the sample.
        passes: How many times an epoch reads the sample. An epoch of one pass over a small sample
            would be short, and a pipeline is slow at its start and its end.
    """

    options: InputOptions
    paths: tuple[str, ...]
    labels: tuple[int, ...]
    records: Mapping[str, list[str]]
    num_bytes: int
    memory_bytes: int
    is_jpeg: bool
    resources: ExitStack
    passes: int = 1


@dataclass(frozen=True)
class _StoredImage:
    path: str
    label: int
    num_bytes: int
    memory_bytes: int


@contextmanager
def open_sample(
    directory: str | os.PathLike[str], num_images: int, options: InputOptions, passes: int = 1
) -> Iterator[InputSample]:
    """Stores the first images of a dataset, which are a random sample, in a temporary folder.

    Args:
        directory: A dataset. The train split is used, or the first split that has records.
        num_images: Number of images, if there are so many and they are not too large.
        options: How they become batches.
        passes: How many times an epoch reads the sample.

    Yields:
        The sample. The folder is deleted when the block ends.

    Raises:
        DataError: There is no dataset, or it has no images, labels or records.
        OSError: Storage failed.
    """
    root = find_data(storage.absolute(directory))
    dataset = open_dataset(root)
    records = _read_split(root, dataset)
    with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch, ExitStack() as resources:
        images = _write_images(records, Path(scratch) / "images", num_images)
        yield InputSample(
            options=options,
            paths=tuple(image.path for image in images),
            labels=tuple(image.label for image in images),
            records=_convert_images(Path(scratch), len(dataset.labels), len(images), options),
            num_bytes=sum(image.num_bytes for image in images),
            memory_bytes=sum(image.memory_bytes for image in images),
            is_jpeg=all(image.path.endswith(_SUFFIXES[b"jpeg"]) for image in images),
            resources=resources,
            passes=passes,
        )


def _read_split(root: str, dataset: Dataset) -> Iterator[bytes]:
    missing = [
        name
        for name in (example.IMAGE_ENCODED, example.LABEL_NUMBER)
        if name not in dataset.features
    ]
    if missing:
        raise DataError(
            f"The records of {root} have no {' and no '.join(missing)}.",
            "Use a dataset of images with labels.",
        )
    filled = [name for name, split in dataset.splits.items() if split.records]
    if not filled:
        raise DataError(f"{root} has no records.", "Use a dataset with images.")
    split = dataset.splits[TRAIN if TRAIN in filled else filled[0]]
    paths = [storage.join(root, shard.file) for shard in split.shards]
    return chain.from_iterable(map(read_records, paths))


def _write_images(records: Iterator[bytes], folder: Path, num_images: int) -> list[_StoredImage]:
    """Writes images into folders that are named by the numbers of their labels."""
    images: list[_StoredImage] = []
    total_bytes = 0
    with progress.step("Sample"):
        for record in records:
            image = _write_image(example.decode_example(record), folder, len(images))
            images.append(image)
            total_bytes += image.num_bytes
            progress.advance(len(images), num_images, "images")
            if len(images) == num_images or total_bytes >= _MAX_SAMPLE_BYTES:
                break
    return images


def _write_image(features: Mapping[str, Any], folder: Path, number: int) -> _StoredImage:
    image_format = features[example.IMAGE_FORMAT][0]
    if image_format not in _SUFFIXES:
        raise DataError(
            f"The dataset has images of the format {image_format.decode(errors='replace')}, "
            f"expected JPEG or PNG.",
            "Use a dataset that stores images as files (--encoding keep).",
        )
    data, label = features[example.IMAGE_ENCODED][0], features[example.LABEL_NUMBER][0]
    path = folder / _name_label(label) / f"{number:06d}{_SUFFIXES[image_format]}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    pixels = features[example.IMAGE_HEIGHT][0] * features[example.IMAGE_WIDTH][0]
    return _StoredImage(str(path), label, len(data), pixels * _BYTES_PER_PIXEL)


def _name_label(number: int) -> str:
    return f"{number:06d}"


def _convert_images(
    scratch: Path, num_labels: int, num_images: int, wanted: InputOptions
) -> dict[str, list[str]]:
    """Returns the TFRecords of each form."""
    short_side = choose_short_side(wanted.image_size)
    forms: dict[str, dict[str, Any]] = {
        ONE_FILE: {"num_shards": 1},
        SHARDS: {},
        RESIZED: {"resize_short_side": short_side},
        RAW: {"resize_short_side": short_side, "encoding": "raw"},
        GZIP: {"compression": "gzip"},
    }
    shared: dict[str, Any] = {
        "split_ratios": "100/0/0",
        "label_map": [_name_label(number) for number in range(num_labels)],
        "image_check": "header",
        "num_shards": min(_NUM_SHARDS, num_images),
    }
    records = {}
    for number, (form, how) in enumerate(forms.items(), 1):
        target = scratch / form
        with progress.step(f"Store {form}", number, len(forms)):
            options = ConversionOptions(**(shared | how))
            convert(scratch / "images", target, options=options)
        records[form] = sorted(str(path) for path in target.glob("Split-train/*"))
    return records
