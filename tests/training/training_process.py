"""Trainings in a process of their own, which can be killed, or be one of several workers.

    python training_process.py DATASET FOLDER CASES [CPUS [EPOCH STEP]]

CASES: JSON, options by name; with "network": "small", efficientnet-lite0 has few layers. Case NAME
runs in FOLDER/NAME; FOLDER/NAME-WORKER.npz gets its history
and weights. CPUS: logical devices. EPOCH STEP: kills itself in that epoch (from 0) after that many
batches.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import types
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf


def make_plain(num_classes: int, image_size: tuple[int, int]) -> keras.Model:
    """No layer depends on which images share a device, so every split gives the same weights."""
    inputs = keras.Input((*image_size, 3), dtype="uint8")
    x = keras.layers.Conv2D(4, 3, activation="tanh")(keras.layers.Rescaling(1 / 255)(inputs))
    x = keras.layers.GlobalAveragePooling2D()(x)
    outputs = keras.layers.Dense(num_classes, activation="softmax", dtype="float32")(x)
    return keras.Model(inputs, outputs)


def make_tiny(num_classes: int, image_size: tuple[int, int]) -> keras.Model:
    """One layer of weights, which is traced quickly."""
    inputs = keras.Input((*image_size, 3), dtype="uint8")
    x = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(inputs))
    return keras.Model(inputs, keras.layers.Dense(num_classes, activation="softmax")(x))


def make_random(num_classes: int, image_size: tuple[int, int]) -> keras.Model:
    """Layers with a random state, and with a state that is not trained."""
    inputs = keras.Input((*image_size, 3), dtype="uint8")
    x = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(inputs))
    x = keras.layers.Dense(8)(keras.layers.BatchNormalization()(x))
    x = keras.layers.Dropout(0.5)(x)
    return keras.Model(inputs, keras.layers.Dense(num_classes, activation="softmax")(x))


def make_split(num_classes: int, image_size: tuple[int, int]) -> keras.Model:
    """The model `plain` on two devices, as an example builds it."""
    example = Path(__file__).parents[2] / "examples/two_devices.py"
    return runpy.run_path(str(example))["build"](num_classes, image_size, ("CPU:0", "CPU:1"))


def build_small_network(image_size: tuple[int, int]) -> keras.Model:
    """What takes the place of efficientnet-lite0, so that tests are quick."""
    inputs = keras.Input((*image_size, 3))
    x = keras.layers.Rescaling(1 / 255)(inputs)
    x = keras.layers.Conv2D(4, 3, strides=2, name="conv_0")(x)
    x = keras.layers.ReLU()(keras.layers.BatchNormalization(name="norm_0")(x))
    for number in (1, 2):
        x = keras.layers.Conv2D(4, 3, strides=2, name=f"conv_{number}")(x)
    return keras.Model(inputs, x, name="efficientnet-lite0")


def register_models() -> None:
    """Makes the models available as own_models:NAME."""
    module = types.ModuleType("own_models")
    module.plain, module.tiny = make_plain, make_tiny
    module.random, module.split = make_random, make_split
    sys.modules["own_models"] = module


def kill_at(epoch: int, step: int) -> None:
    """Makes the process kill itself, as no code of its own can prevent."""
    from darkroom.training.state.training_run import TrainingRun

    inner = TrainingRun._end_step

    def end_step(run: TrainingRun, done: int) -> None:
        inner(run, done)
        if (len(run.history), done) == (epoch, step):
            os.kill(os.getpid(), signal.SIGKILL)

    TrainingRun._end_step = end_step


def main(root: str, folder: str, cases: str, cpus: str = "1", *kill: str) -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    devices = [tf.config.LogicalDeviceConfiguration()] * int(cpus)
    tf.config.set_logical_device_configuration(cpu, devices)
    register_models()
    if kill:
        kill_at(*map(int, kill))
    for name, options in json.loads(cases).items():
        if options.pop("network", "") == "small":
            from darkroom.features.networks import efficientnet_lite

            efficientnet_lite.build_network = build_small_network
        train_case(root, f"{folder}/{name}", options)


def train_dataset(root, run_dir, options, splits=("train", "eval")):
    """Trains on two splits of a dataset of two labels; returns the result."""
    from darkroom.data.open import open_data
    from darkroom.input.opening import open_splits
    from darkroom.training.devices.placement import make_placement
    from darkroom.training.run import train

    placement = make_placement(options.strategy)
    opened = open_splits(open_data([root]).splits)
    training, evaluation = (opened[split] for split in splits)
    return train(
        options,
        placement,
        training=training,
        evaluation=evaluation,
        run_dir=str(run_dir),
    )


def train_case(root: str, run_dir: str, options: dict[str, object]) -> None:
    from darkroom.options.training import TrainingOptions
    from darkroom.training.devices.environment import read_cluster

    trained = train_dataset(root, run_dir, TrainingOptions.from_dict(options))
    devices = [weight.value.device.rpartition("device:")[2] for weight in trained.model.weights]
    texts = {"history": json.dumps(trained.history), "devices": json.dumps(devices)}
    texts["best_epoch"] = json.dumps(trained.best_epoch)
    output = f"{run_dir}-{read_cluster().worker}.npz"
    np.savez(output, *trained.model.get_weights(), **texts)


if __name__ == "__main__":
    main(*sys.argv[1:])
