"""Images through TFX's Transform, Tuner, Trainer and Evaluator, here or on a cluster.

    python examples/tuned_images.py IMAGES ROOT
    PYTHONPATH=examples darkroom compile --target kubeflow --pipeline tuned_images:make_pipeline \
        --set image=registry.example.com/ml/photos:1 -o pipeline.yaml

The functions below are found by name, as `tuned_images.run_fn`. So on a cluster the image of the
tasks must have this module where Python finds it.
"""

import sys

import keras
import keras_tuner
import tensorflow as tf
import tensorflow_model_analysis as tfma
import tensorflow_transform as tft
from tfx.v1.components import (
    Evaluator,
    SchemaGen,
    StatisticsGen,
    Trainer,
    Transform,
    Tuner,
    TunerFnResult,
)
from tfx.v1.dsl import Pipeline
from tfx.v1.orchestration.metadata import sqlite_metadata_connection_config
from tfx_bsl.public.tfxio import TensorFlowDatasetOptions

from darkroom.components import ImageToTFRecord, ManifestGen
from darkroom.pipelines import LocalRunner

# A list of images, where the tasks see it.
IMAGES = "s3://photos/images.csv"
SIDE = 16
ENCODED, LABEL = "image/encoded", "image/class/label"
PIXELS = "pixels"


def _decode(encoded):
    """Returns an encoded image as one row of gray levels."""
    image = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    image = tf.image.resize(tf.image.rgb_to_grayscale(image), (SIDE, SIDE))
    return tf.reshape(image, (SIDE * SIDE,))


def preprocessing_fn(inputs):
    """Makes features of a batch of records; Transform calls it."""
    encoded = tf.reshape(inputs[ENCODED], (-1,))
    pixels = tf.map_fn(_decode, encoded, fn_output_signature=tf.TensorSpec((SIDE * SIDE,)))
    # By the mean and the deviation of all training images, which are part of the model then.
    return {PIXELS: tft.scale_to_z_score(pixels), LABEL: tf.reshape(inputs[LABEL], (-1, 1))}


def _read(files, fn_args, transformed):
    options = TensorFlowDatasetOptions(batch_size=8, num_epochs=1, label_key=LABEL)
    schema = transformed.transformed_metadata.schema
    return fn_args.data_accessor.tf_dataset_factory(files, options, schema)


def build_model(hyperparameters):
    """Returns a network that takes `PIXELS`; the tuner tries several numbers of units."""
    units = hyperparameters.Choice("units", [4, 8])
    pixels = keras.Input((SIDE * SIDE,), name=PIXELS)
    hidden = keras.layers.Dense(units, activation="relu")(pixels)
    model = keras.Model({PIXELS: pixels}, keras.layers.Dense(2, activation="softmax")(hidden))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def tuner_fn(fn_args):
    """Returns what is tried, and on which data; Tuner calls it."""
    transformed = tft.TFTransformOutput(fn_args.transform_graph_path)
    tuner = keras_tuner.RandomSearch(
        build_model, "val_accuracy", max_trials=2, seed=1, directory=fn_args.working_dir
    )
    data = {
        "x": _read(fn_args.train_files, fn_args, transformed),
        "validation_data": _read(fn_args.eval_files, fn_args, transformed),
        "epochs": 1,
        "shuffle": False,
    }
    return TunerFnResult(tuner, data)


def run_fn(fn_args):
    """Trains with the best hyperparameters, and exports; Trainer calls it."""
    transformed = tft.TFTransformOutput(fn_args.transform_output)
    model = build_model(keras_tuner.HyperParameters.from_config(fn_args.hyperparameters))
    model.fit(
        _read(fn_args.train_files, fn_args, transformed),
        validation_data=_read(fn_args.eval_files, fn_args, transformed),
        epochs=fn_args.custom_config["epochs"],
        shuffle=False,  # the data is
    )
    _export(model, transformed, fn_args.serving_model_dir)


def _export(model, transformed, folder):
    """Writes a SavedModel that takes records, as Evaluator has them."""
    module = tf.Module()
    module.model_variables = [variable.value for variable in model.variables]
    module.transform = transformed.transform_features_layer()
    features = {ENCODED: transformed.raw_feature_spec()[ENCODED]}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
    def serve(examples):
        pixels = module.transform(tf.io.parse_example(examples, features))[PIXELS]
        return {"probabilities": model({PIXELS: pixels}, training=False)}

    tf.saved_model.save(module, folder, signatures={"serving_examples": serve})


def make_eval_config():
    """Returns what is measured: the accuracy, which must not be worse than a guess."""
    better = tfma.MetricThreshold(
        value_threshold=tfma.GenericValueThreshold(lower_bound={"value": 0.5})
    )
    accuracy = tfma.MetricConfig(class_name="SparseCategoricalAccuracy", threshold=better)
    return tfma.EvalConfig(
        model_specs=[
            tfma.ModelSpec(
                signature_name="serving_examples",
                model_type="tf_generic",
                label_key=LABEL,
                prediction_key="probabilities",
            )
        ],
        slicing_specs=[tfma.SlicingSpec()],
        metrics_specs=[tfma.MetricsSpec(metrics=[accuracy])],
    )


def make_pipeline(root, images=IMAGES, epochs=5, metadata=None):
    """Returns the pipeline; `darkroom compile` passes the root, and a cluster has metadata."""
    manifest = ManifestGen(images)
    records = ImageToTFRecord(manifest.outputs["manifest"], manifest.outputs["list_rejects"])
    examples = records.outputs["examples"]
    # It reads the images. For many of them, import a schema instead: ImportSchemaGen.
    statistics = StatisticsGen(examples)
    schema = SchemaGen(statistics.outputs["statistics"], infer_feature_shape=True)
    transform = Transform(
        examples,
        schema.outputs["schema"],
        preprocessing_fn="tuned_images.preprocessing_fn",
        disable_statistics=True,
    )
    tuner = Tuner(
        transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        tuner_fn="tuned_images.tuner_fn",
    )
    trainer = Trainer(
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        hyperparameters=tuner.outputs["best_hyperparameters"],
        run_fn="tuned_images.run_fn",
        custom_config={"epochs": epochs},
    )
    evaluator = Evaluator(
        examples,
        trainer.outputs["model"],
        example_splits=["eval"],
        eval_config=make_eval_config(),
    )
    return Pipeline(
        pipeline_name="tuned-images",
        pipeline_root=root,
        components=[
            manifest,
            records,
            statistics,
            schema,
            transform,
            tuner,
            trainer,
            evaluator,
        ],
        enable_cache=True,
        metadata_connection_config=metadata,
        # The second argument keeps TFX from building a package of itself for Beam.
        beam_pipeline_args=["--runner=FnApiRunner", "--sdk_container_image=local"],
    )


if __name__ == "__main__":
    images, root = sys.argv[1:]
    metadata = sqlite_metadata_connection_config(f"{root}/metadata.sqlite")
    LocalRunner().run(make_pipeline(f"{root}/artifacts", images, metadata=metadata))
