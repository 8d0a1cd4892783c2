r"""A model whose layers are on two devices, for one that does not fit on one.

    PYTHONPATH=examples darkroom train --data records --checkpoint-dir runs/split \
        --model two_devices:build --strategy one

It is not faster.
"""

import keras
import tensorflow as tf


class OnDevice(keras.layers.Layer):
    """A layer with its variables and work on one device."""

    def __init__(self, layer, device, **options):
        super().__init__(**options)
        self.layer, self.device_name = layer, device

    def build(self, shape):
        """Makes the variables of the layer."""
        with tf.device(self.device_name):
            self.layer.build(shape)

    def call(self, x):
        """Returns what the layer makes of a batch."""
        with tf.device(self.device_name):
            return self.layer(x)


def build(num_classes, image_size, devices=("GPU:0", "GPU:1")):
    """Returns convolutions on the first device, and the head on the second one."""
    inputs = keras.Input((*image_size, 3), dtype="uint8")
    convolution = OnDevice(keras.layers.Conv2D(4, 3, activation="tanh"), devices[0])
    head = OnDevice(keras.layers.Dense(num_classes, activation="softmax"), devices[1])
    x = convolution(keras.layers.Rescaling(1 / 255)(inputs))
    return keras.Model(inputs, head(keras.layers.GlobalAveragePooling2D()(x)))
