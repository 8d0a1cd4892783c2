"""tfds.ImageFolder: the JPEG files themselves, read and decoded by tf.data in one parallel map."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import contract
import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds
from tensorflow_pixels import crop_center, crop_randomly


def write(photographs: Path, target: Path) -> None:
    """Links the folder: ImageFolder has no other format."""
    target.symlink_to(photographs.resolve(), target_is_directory=True)


def read(target: Path, use: str, cores: int) -> Iterator[np.ndarray]:
    """Yields an epoch; tf.data uses a thread for each core."""
    decoder = crop_randomly if use == "train" else crop_center
    data = tfds.ImageFolder(str(target)).as_dataset(
        split="train", shuffle_files=use == "train", decoders={"image": decoder()}
    )
    for batch in data.batch(contract.BATCH).prefetch(tf.data.AUTOTUNE):
        yield batch["image"].numpy()


if __name__ == "__main__":
    contract.run(write, read)
