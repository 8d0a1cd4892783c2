"""What the images of a training are labelled with, in large arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from darkroom.errors import DataError
from darkroom.input.source import ImageSource
from darkroom.options.input import NO_CACHE, InputOptions
from darkroom.runtime import progress
from darkroom.runtime.arrays import Array

_BATCH_RECORDS = 1024


def check_annotated(source: ImageSource, split: str, options: InputOptions) -> None:
    """Checks that an image is annotated. It reads records until there is one.

    Args:
        source: The images of a split.
        split: Its name.
        options: How they are read.

    Raises:
        DataError: None is.
    """
    if not any((~np.isnan(each)).any() for each in list_targets(source, options)):
        raise DataError(
            f"None of the images of the {split} split is annotated.",
            "Annotate some, or move images that are into it. If empty cells mean that an image has "
            "no label, convert with --empty-labels none (empty_labels= in Python).",
        )


def list_targets(
    source: ImageSource, options: InputOptions, sample: int | None = None
) -> Iterator[Array]:
    """Yields the targets of images, [N, ...] each. It reads records for that.

    Args:
        source: The images.
        options: How they are read.
        sample: Number of images, from all spans; None for all of them.
    """
    # A cache is filled by the training.
    options = replace(options, record_cache=NO_CACHE, service=None)
    with progress.step("Reading what images are labelled with"):
        elements = source.make_sample(sample) if sample else source.make_elements(options, None)
        targets = elements.map(source.parse_label)
        yield from targets.batch(_BATCH_RECORDS).as_numpy_iterator()
