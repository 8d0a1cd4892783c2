"""Writes drawings that the demo does not have, into the folder `new`."""

from pathlib import Path

import numpy as np

from darkroom.pipelines.local.drawings import LABELS, draw_label

Path("new").mkdir()
for number in range(20):
    image = draw_label(LABELS[number % 7], np.random.default_rng([number % 7, 57 + number]))
    image.save(f"new/{number:02}.jpg", quality=90)
