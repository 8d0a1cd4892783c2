"""Trains on from the last good model, and pushes the new one only if it is not worse.

    python examples/warm_start.py IMAGES ROOT

The first run begins with random weights. Each further run begins with those of the latest model
that the Evaluator blessed, so it trains again even if nothing has changed.
"""

import os
import sys

import keras
import tensorflow_model_analysis as tfma
from checked_data import make_data_nodes, make_pipeline
from own_training import OPTIONS, build_model
from tfx.v1.components import Evaluator, Pusher
from tfx.v1.dsl import Channel, Resolver
from tfx.v1.dsl.experimental import LatestBlessedModelStrategy
from tfx.v1.proto import PushDestination
from tfx.v1.types.standard_artifacts import Model, ModelBlessing

from darkroom.components import Trainer
from darkroom.input import input_fn
from darkroom.pipelines import LocalRunner
from darkroom.training.export import export_model
from darkroom.training.trainer import read_example_labels

EPOCHS = 20
# The folder of a SavedModel that is for files of others: the weights in Keras's form.
WEIGHTS = os.path.join("assets.extra", "model.weights.h5")
ACCURACY = tfma.MetricThreshold(
    value_threshold=tfma.GenericValueThreshold(lower_bound={"value": 0.6}),
    change_threshold=tfma.GenericChangeThreshold(
        direction=tfma.MetricDirection.HIGHER_IS_BETTER, absolute={"value": -0.01}
    ),
)


def run_fn(fn_args):
    """Trains from the weights of `base_model`, if there is one, and exports."""
    labels = read_example_labels(fn_args.train_files)
    model = build_model(len(labels))
    if fn_args.base_model:
        model.load_weights(os.path.join(fn_args.base_model, WEIGHTS))
        print("Trains on from", fn_args.base_model)
    model.compile(
        keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    model.fit(input_fn(fn_args.train_files, OPTIONS, training=True), epochs=EPOCHS)
    export_model(model, labels, OPTIONS.image_size, fn_args.serving_model_dir)
    weights = os.path.join(fn_args.serving_model_dir, WEIGHTS)
    os.makedirs(os.path.dirname(weights))
    model.save_weights(weights)


def make_eval_config():
    """Returns what is measured: the accuracy, against a bound and the last good model."""
    return tfma.EvalConfig(
        model_specs=[
            tfma.ModelSpec(
                signature_name="serving_examples",
                model_type="tf_generic",
                label_key="image/class/label",
                prediction_key="probabilities",
            )
        ],
        slicing_specs=[tfma.SlicingSpec()],
        metrics_specs=[
            tfma.MetricsSpec(
                metrics=[
                    tfma.MetricConfig(class_name="SparseCategoricalAccuracy", threshold=ACCURACY)
                ]
            )
        ],
    )


def make_training_nodes(data, root):
    """Returns the nodes that find the last good model, train on, compare and push."""
    _, records, *_, gate = data
    last = Resolver(
        strategy_class=LatestBlessedModelStrategy,
        model=Channel(type=Model),
        model_blessing=Channel(type=ModelBlessing),
    ).with_id("last_good_model")
    trainer = Trainer(
        records.outputs["examples"],
        run_fn="warm_start.run_fn",
        base_model=last.outputs["model"],
    )
    trainer.add_upstream_node(gate)
    evaluator = Evaluator(
        records.outputs["examples"],
        trainer.outputs["model"],
        baseline_model=last.outputs["model"],
        example_splits=["eval"],
        eval_config=make_eval_config(),
    )
    folder = PushDestination.Filesystem(base_directory=f"{root}/pushed")
    pusher = Pusher(
        trainer.outputs["model"],
        evaluator.outputs["blessing"],
        push_destination=PushDestination(filesystem=folder),
    )
    return [last, trainer, evaluator, pusher]


if __name__ == "__main__":
    images, root = sys.argv[1:]
    data = make_data_nodes(images)
    nodes = [*data, *make_training_nodes(data, root)]
    LocalRunner().run(make_pipeline("warm-start", root, nodes))
