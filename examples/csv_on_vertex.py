"""A table, read by a stock ExampleGen, for Vertex AI Pipelines.

    PYTHONPATH=examples darkroom compile --target vertex --pipeline csv_on_vertex:make_pipeline \
        --set root=gs://artifacts/table --set image=europe-docker.pkg.dev/p/ml/darkroom:1 \
        -o pipeline.json

Kubeflow Pipelines does not run the driver of CsvExampleGen, which finds the files of a span. So
compiling this for Kubeflow is an error that says what to use there.
"""

from tfx.v1.components import CsvExampleGen, ExampleValidator, SchemaGen, StatisticsGen
from tfx.v1.dsl import Pipeline
from tfx.v1.dsl.experimental import RuntimeParameter
from tfx.v1.proto import Input

# Vertex mounts buckets below /gcs; CsvExampleGen also reads gs://.
TABLES = "gs://photos/tables"


def make_pipeline():
    """Returns the pipeline: the newest span of a table, its statistics, and its anomalies."""
    tables = RuntimeParameter(name="tables", ptype=str, default=TABLES)
    newest = Input(splits=[Input.Split(name="train", pattern="span-{SPAN}/*.csv")])
    examples = CsvExampleGen(input_base=tables, input_config=newest)
    statistics = StatisticsGen(examples.outputs["examples"])
    schema = SchemaGen(statistics.outputs["statistics"], infer_feature_shape=True)
    anomalies = ExampleValidator(statistics.outputs["statistics"], schema.outputs["schema"])
    return Pipeline(
        pipeline_name="csv-on-vertex",
        components=[examples, statistics, schema, anomalies],
        enable_cache=True,
    )
