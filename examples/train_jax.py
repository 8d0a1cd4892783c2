"""Keras on JAX, on records that darkroom wrote. It needs neither TensorFlow nor PyTorch.

    python examples/train_jax.py records runs/jax

With several processes of JAX, each reads its share of every batch.
"""

import os
import sys
import time

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import keras

import darkroom
from darkroom.options import InputOptions


class Generator:
    """Makes the generators that Keras takes, and counts the seconds that batches take."""

    def __init__(self, loader):
        self.loader, self.seconds = loader, 0.0

    def repeat(self):
        """Yields the batches of epoch after epoch."""
        while True:
            batches = iter(self.loader)
            for _ in range(len(self.loader)):
                before = time.monotonic()
                batch = next(batches)
                self.seconds += time.monotonic() - before
                yield batch


def build_model(num_classes, image_size):
    """Returns a network that takes pixels from 0 to 255 and returns probabilities."""
    layers = [keras.Input((*image_size, 3)), keras.layers.Rescaling(1 / 255)]
    for width in (16, 32, 64):
        layers += [
            keras.layers.Conv2D(width, 3, padding="same", use_bias=False),
            keras.layers.BatchNormalization(momentum=0.9),
            keras.layers.ReLU(),
            keras.layers.MaxPooling2D(),
        ]
    layers.append(keras.layers.GlobalAveragePooling2D())
    return keras.Sequential([*layers, keras.layers.Dense(num_classes, activation="softmax")])


def train(records, output_dir, epochs=8, image_size=32, batch_size=64):
    """Trains, saves model.keras, and returns the accuracy on eval.

    Args:
        records: The dataset.
        output_dir: Folder for the model.
        epochs: How often each image is seen.
        image_size: Height and width in pixels.
        batch_size: Images in a batch of all processes together.
    """
    size = (image_size, image_size)
    shard = jax.process_index(), jax.process_count()
    options = InputOptions(size, batch_size=batch_size // shard[1], augment="none", shard=shard)
    data = darkroom.load(records, options=options, training=True, framework="numpy")
    keras.utils.set_random_seed(0)
    model = build_model(data["train"].num_classes, size)
    rate = keras.optimizers.schedules.CosineDecay(4e-3, epochs * len(data["train"]))
    # Images that only fill up the last batch of a process have the weight 0.
    model.compile(
        keras.optimizers.Adam(rate),
        "sparse_categorical_crossentropy",
        weighted_metrics=["accuracy"],
    )
    batches, steps, started = Generator(data["train"]), len(data["train"]), time.monotonic()
    model.fit(batches.repeat(), steps_per_epoch=steps, epochs=epochs, shuffle=False, verbose=2)
    share = batches.seconds / (time.monotonic() - started)
    batches, steps = Generator(data["eval"]).repeat(), len(data["eval"])
    accuracy = model.evaluate(batches, steps=steps, verbose=0, return_dict=True)["accuracy"]
    os.makedirs(output_dir, exist_ok=True)
    model.save(os.path.join(output_dir, "model.keras"))
    print(f"accuracy {accuracy:.4f}, waited {share:.1%} of the time for input")
    return {"accuracy": accuracy}


if __name__ == "__main__":
    records, output_dir, *rest = sys.argv[1:]
    train(records, output_dir, *map(int, rest))
