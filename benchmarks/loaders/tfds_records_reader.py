"""TFDS's own records, made from the folder: files interleaved, then one parallel map."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import contract
import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds
from tensorflow_pixels import crop_center, crop_randomly

_SHUFFLED = 1000  # as in TFDS's examples


def write(photographs: Path, target: Path) -> None:
    """Writes the files' own bytes into TFDS's TFRecords, in as many shards as TFDS chooses."""
    folder = tfds.ImageFolder(str(photographs))
    data = folder.as_dataset(split="train", decoders={"image": tfds.decode.SkipDecoding()})
    tfds.dataset_builders.store_as_tfds_dataset(
        name="photographs",
        version="1.0.0",
        data_dir=str(target),
        split_datasets={"train": data},
        features=folder.info.features,
    )


def read(target: Path, use: str, cores: int) -> Iterator[np.ndarray]:
    """Yields an epoch; tf.data uses a thread for each core."""
    decoder = crop_randomly if use == "train" else crop_center
    # Otherwise TFDS caches a small dataset, and every epoch has the decoded images of the first.
    config = tfds.ReadConfig(try_autocache=False, skip_prefetch=True)
    data = tfds.load(
        "photographs",
        data_dir=str(target),
        split="train",
        shuffle_files=use == "train",
        decoders={"image": decoder()},
        read_config=config,
    )
    data = data.shuffle(_SHUFFLED) if use == "train" else data
    for batch in data.batch(contract.BATCH).prefetch(tf.data.AUTOTUNE):
        yield batch["image"].numpy()


if __name__ == "__main__":
    contract.run(write, read)
