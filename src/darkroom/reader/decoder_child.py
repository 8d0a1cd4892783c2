"""The other process, which decodes images; its parent is `decoder_process`.

A socket to the parent is its standard input. It reads the number of processes, then files with
options and places with positions of chunks of batches, in any order. It answers each chunk with the
columns of its images, followed by their pixels, or with an error. It ends when the parent is gone.
"""

from __future__ import annotations

import os
from contextlib import suppress
from multiprocessing.connection import Connection

from darkroom.images.memory import READ_BUDGET
from darkroom.reader.decoding import Decoding
from darkroom.reader.memory import BatchMemory


def serve() -> None:
    """Decodes until the parent is gone."""
    connection = Connection(os.dup(0))
    with suppress(EOFError, OSError):
        READ_BUDGET.divide(connection.recv())
        connection.send(None)
        memory = BatchMemory()
        while True:
            task = connection.recv()
            if len(task) == 2:
                files, options = task
                continue
            places, positions, epoch = task
            views = memory.make((len(positions), *options.image_size, 3))
            try:
                decoding = Decoding(
                    files, places, options, positions=positions, epoch=epoch, views=views
                )
                decoding.run(range(len(positions)))
            except Exception as error:  # noqa: BLE001  the parent raises it
                connection.send(error)
                continue
            connection.send(decoding.features)
            left = views.data.cast("B")
            while left:
                left = left[os.write(connection.fileno(), left) :]
