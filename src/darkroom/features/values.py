"""Arrays as large as the features of a dataset, in temporary files."""

from __future__ import annotations

import errno
import math
import os
import tempfile
from typing import Any

import numpy as np

from darkroom.errors import StorageError
from darkroom.runtime.arrays import Array


def make_values(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    """Returns zeros in a temporary file: the system can take their memory back.

    Raises:
        StorageError: There is no room for it.
    """
    num_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    with tempfile.TemporaryFile(prefix="darkroom-") as scratch:
        try:
            if hasattr(os, "posix_fallocate"):  # not on macOS
                # To write into memory whose block the disk has no room for ends the process.
                os.posix_fallocate(scratch.fileno(), 0, max(1, num_bytes))
            scratch.truncate(num_bytes)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise StorageError(
                f"{tempfile.gettempdir()} has no room for {num_bytes:,} bytes of features: "
                f"{error.strerror}.",
                "Free some, or name another folder for temporary files: TMPDIR=/DIR.",
            ) from error
        if not num_bytes:
            return np.zeros(shape, dtype)
        return np.memmap(scratch, dtype, "r+", shape=shape)
