"""What the images of a training are labelled with, in large arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from darkroom.input.source import ImageSource
from darkroom.options.input import NO_CACHE, InputOptions
from darkroom.runtime import progress
from darkroom.targets.head import Array

_BATCH_RECORDS = 1024


def list_targets(source: ImageSource, options: InputOptions) -> Iterator[Array]:
    """Yields the targets of all images, [N, ...] each. It reads records for that.

    Args:
        source: The images.
        options: How they are read.
    """
    # A cache is filled by the training.
    options = replace(options, record_cache=NO_CACHE, service=None)
    with progress.step("Reading what images are labelled with"):
        targets = source.make_elements(options, None).map(source.parse_label)
        yield from targets.batch(_BATCH_RECORDS).as_numpy_iterator()
