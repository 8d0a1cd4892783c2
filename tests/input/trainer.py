"""A training in a process of its own, by batches of a tf.data service.

It prints each batch that it has trained on: the epoch, and the number of each image, which its
first pixel has in red and green.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import keras

from darkroom.input import input_fn
from darkroom.options import InputOptions


def train(files: list[str], options: dict[str, Any], epochs: int, steps: int, go: str) -> None:
    """Trains; after the first batch it waits for a file.

    Args:
        files: Shards of the train split.
        options: Of `InputOptions`, beside the image size.
        epochs: How often it reads its batches to their end.
        steps: Most batches in an epoch; -1 for all.
        go: The file.
    """
    batches = input_fn(files, InputOptions((2, 2), **options), training=True).take(steps)
    model = keras.Sequential(
        [keras.Input((2, 2, 3)), keras.layers.Flatten(), keras.layers.Dense(2)]
    )
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    for epoch in range(epochs):
        for images, labels in batches:
            model.train_on_batch(images / 255, labels)
            red, green, _ = images[:, 0, 0].numpy().astype(int).T
            print(json.dumps([epoch, *(red + 256 * green).tolist()]), flush=True)
            while not Path(go).exists():
                time.sleep(0.05)
    print("The end.", flush=True)


if __name__ == "__main__":
    train(**json.loads(sys.argv[1]))
