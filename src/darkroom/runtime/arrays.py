"""The type of arrays of NumPy; docstrings say their shapes and the types of their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
