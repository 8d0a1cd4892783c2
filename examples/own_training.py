"""A model and a training loop of one's own, on records that were checked.

    python examples/own_training.py IMAGES ROOT

TFX calls `run_fn` in this file. Change it, and only the training runs again.
"""

import sys

import keras
from checked_data import make_data_nodes, make_pipeline
from tfx.v1.components import Pusher
from tfx.v1.proto import PushDestination

from darkroom.components import Trainer
from darkroom.input import input_fn
from darkroom.options import InputOptions
from darkroom.pipelines import LocalRunner
from darkroom.training.export import export_model
from darkroom.training.trainer import read_example_labels

OPTIONS = InputOptions((32, 32), batch_size=16, augment="flip")


def build_model(num_classes):
    """Returns a network that takes pixels from 0 to 255 and returns probabilities."""
    keras.utils.set_random_seed(1)  # the same data gives the same model
    return keras.Sequential(
        [
            keras.Input((*OPTIONS.image_size, 3)),
            keras.layers.Rescaling(1 / 255),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(num_classes, activation="softmax"),
        ]
    )


def run_fn(fn_args):
    """Trains and exports; TFX's Trainer calls it."""
    labels = read_example_labels(fn_args.train_files)
    model = build_model(len(labels))
    model.compile(
        keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    model.fit(
        input_fn(fn_args.train_files, OPTIONS, training=True),
        validation_data=input_fn(fn_args.eval_files, OPTIONS, training=False),
        epochs=fn_args.custom_config["epochs"],
    )
    export_model(model, labels, OPTIONS.image_size, fn_args.serving_model_dir)


def make_training_nodes(data, root, epochs=10):
    """Returns the nodes that train on the records of `data` and push the model."""
    _, records, *_, gate = data
    trainer = Trainer(
        records.outputs["examples"],
        run_fn="own_training.run_fn",
        custom_config={"epochs": epochs},
    )
    trainer.add_upstream_node(gate)
    folder = PushDestination.Filesystem(base_directory=f"{root}/pushed")
    pusher = Pusher(
        model=trainer.outputs["model"], push_destination=PushDestination(filesystem=folder)
    )
    return [trainer, pusher]


if __name__ == "__main__":
    images, root = sys.argv[1:]
    data = make_data_nodes(images)
    nodes = [*data, *make_training_nodes(data, root)]
    LocalRunner().run(make_pipeline("own-training", root, nodes))
