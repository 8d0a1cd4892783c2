"""The other process, which decodes images; its parent is `decoder_process`.

A socket to the parent is its standard input. It reads the files and options of a split, and then
the places and positions of one chunk after the other. It answers each with the columns of the
images, followed by their pixels, or with an error. It ends when the parent is gone.
"""

from __future__ import annotations

import os
from contextlib import suppress
from multiprocessing.connection import Connection

import numpy as np

from darkroom.images.memory import READ_BUDGET
from darkroom.reader.decoding import Decoding


def serve() -> None:
    """Decodes until the parent is gone."""
    connection = Connection(os.dup(0))
    with suppress(EOFError, OSError):
        files, options, processes = connection.recv()
        READ_BUDGET.divide(processes)
        connection.send(None)
        views = np.empty((0, *options.image_size, 3), np.uint8)
        while True:
            places, positions, epoch = connection.recv()
            count = len(positions)
            if len(views) < count:
                views = np.empty((count, *views.shape[1:]), np.uint8)
            chunk = views[:count]
            try:
                decoding = Decoding(
                    files, places, options, positions=positions, epoch=epoch, views=chunk
                )
                decoding.run(range(count))
            except Exception as error:  # noqa: BLE001  the parent raises it
                connection.send(error)
                continue
            connection.send(decoding.features)
            left = chunk.data.cast("B")
            while left:
                left = left[os.write(connection.fileno(), left) :]
