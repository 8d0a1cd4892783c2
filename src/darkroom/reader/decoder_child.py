"""The other process, which decodes images; its parent is `decoder_process`.

A socket to the parent is its standard input. It reads the number of processes, then files with
options and places with positions of chunks of batches, in any order. It answers each chunk with
pixels, as soon as it has those of an image, and then with the columns of all images, or with an
error. It ends when the parent is gone.
"""

from __future__ import annotations

import os
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from darkroom.images.memory import READ_BUDGET
from darkroom.reader.decoding import Decoding, ViewOptions
from darkroom.reader.record_files import Places, RecordFiles
from darkroom.runtime.arrays import Array


def serve() -> None:
    """Decodes until the parent is gone."""
    connection = Connection(os.dup(0))
    with suppress(EOFError, OSError):
        READ_BUDGET.divide(connection.recv())
        connection.send(None)
        while True:
            task = connection.recv()
            if len(task) == 2:
                files, options = task
            else:
                connection.send(_send_pixels(connection.fileno(), files, options, *task))


def _send_pixels(
    target: int,
    files: RecordFiles,
    options: ViewOptions,
    places: Places,
    positions: Array,
    epoch: int,
) -> Any:
    """Decodes images, and sends the pixels of each while they are in the caches of the processor.

    Returns:
        The columns of each image; or the first error, after which pixels have any values.
    """
    views = np.empty((len(positions), *(options.image_size or ()), 3), np.uint8)
    decoding = Decoding(files, places, options, positions=positions, epoch=epoch, views=views)
    failure = None
    for number, view in enumerate(views):
        try:
            if failure is None:
                decoding.run([number])
        except Exception as error:  # noqa: BLE001  the parent raises it
            failure = error
        left = view.data.cast("B")
        while left:
            left = left[os.write(target, left) :]
    return failure or decoding.features
