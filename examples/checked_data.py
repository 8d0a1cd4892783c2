"""From images to checked records, with a schema and policies of one's own.

    python examples/checked_data.py IMAGES ROOT

IMAGES is a list of images or a folder of them, ROOT the folder of the run. Run it twice: nothing is
done again. Change an image, a label or the schema, and run it a third time.
"""

import sys
from pathlib import Path

from tfx.v1.components import ExampleValidator
from tfx.v1.dsl import Pipeline
from tfx.v1.orchestration.metadata import sqlite_metadata_connection_config

from darkroom.components import (
    ImageStatisticsGen,
    ImageToTFRecord,
    ImageValidator,
    ImportSchemaGen,
    ManifestGen,
    ValidationGate,
    ValidationOptions,
)
from darkroom.pipelines import LocalRunner

SCHEMA = Path(__file__).with_name("schema.pbtxt")
# Images that are twice in a split stop the run; small classes do not even make a warning.
STRICT = ValidationOptions(policies={"duplicates": "fail", "small_classes": "off"})


def make_data_nodes(images, schema=SCHEMA):
    """Returns the nodes that make records of images; the gate is the last of them."""
    manifest = ManifestGen(images)
    records = ImageToTFRecord(manifest.outputs["manifest"], manifest.outputs["list_rejects"])
    statistics = ImageStatisticsGen(records.outputs["index"])
    wanted = ImportSchemaGen(str(schema))
    anomalies = ExampleValidator(statistics.outputs["statistics"], wanted.outputs["schema"])
    validator = ImageValidator(
        records.outputs["index"],
        records.outputs["rejects"],
        manifest.outputs["manifest"],
        anomalies.outputs["anomalies"],
        options=STRICT,
        examples=records.outputs["examples"],
    )
    gate = ValidationGate(validator.outputs["report"])
    return [manifest, records, statistics, wanted, anomalies, validator, gate]


def make_pipeline(name, root, components):
    """Returns a pipeline that keeps all it knows in the folder `root`."""
    return Pipeline(
        pipeline_name=name,
        pipeline_root=f"{root}/artifacts",
        components=components,
        enable_cache=True,
        metadata_connection_config=sqlite_metadata_connection_config(f"{root}/metadata.sqlite"),
        # The second argument keeps TFX from building a package of itself for Beam.
        beam_pipeline_args=["--runner=FnApiRunner", "--sdk_container_image=local"],
    )


if __name__ == "__main__":
    images, root = sys.argv[1:]
    LocalRunner().run(make_pipeline("checked-data", root, make_data_nodes(images)))
