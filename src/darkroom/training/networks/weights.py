"""Weights to start from: which there may be, checked without TensorFlow."""

from __future__ import annotations

import os

from darkroom import storage
from darkroom.errors import UsageError

# The first bytes of such a file.
_HDF5 = b"\x89HDF\r\n\x1a\n"


def check_weights(path: str | None) -> None:
    """Checks that weights to start from are a file, if there are any.

    Raises:
        UsageError: They are not, or a file of HDF5 by its name is of another kind.
    """
    if path is None:
        return
    place = storage.expand_home(path)
    if not os.path.isfile(place):
        near = None if os.path.exists(place) else storage.find_near(place)
        hint = f"Did you mean {near}?" if near else "Pass the path of a file."
        raise UsageError(f"weights is {path!r}, which is not a file.", hint)
    if not place.endswith((".h5", ".hdf5")):
        return
    with open(place, "rb") as file:
        if file.read(len(_HDF5)) != _HDF5:
            hint = "Save weights with model.save_weights('NAME.weights.h5')."
            raise UsageError(f"weights is {path!r}, which is not a file of HDF5.", hint)
