"""The pipeline: from a list of images to a pushed model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ml_metadata.proto import metadata_store_pb2
from tfx.components import ExampleValidator, SchemaGen
from tfx.components.schema_gen.import_schema_gen import component as tfx_schema
from tfx.dsl.components.base import base_node
from tfx.orchestration.pipeline import Pipeline
from tfx.proto import pusher_pb2, trainer_pb2

from darkroom import storage
from darkroom.components import (
    ImageStatisticsGen,
    ImageToTFRecord,
    ImageValidator,
    ImportSchemaGen,
    ManifestGen,
    ModelRegistrar,
    ModelReport,
    Pusher,
    ValidationGate,
)
from darkroom.components.state_driver import TAKEN_BY_EACH_RUN, StateDriver
from darkroom.components.trainer.component import DescribingTrainer
from darkroom.dataset.splits import EVAL, TEST
from darkroom.errors import UsageError
from darkroom.options.checks import pick_fields
from darkroom.options.conversion import ConversionFields, EmbedFields
from darkroom.options.source import SourceFields
from darkroom.options.training import CHECKPOINT_DIR_KEY, CONFIG_KEY
from darkroom.pipelines.config import METADATA_FILE, PipelineConfig
from darkroom.pipelines.evaluation import create_evaluation
from darkroom.pipelines.model_state import MODEL_STATE

__all__ = ["create_pipeline"]

RUN_FN = "darkroom.training.run_fn"
_CUSTOM_CONFIG = "custom_config"


def create_pipeline(
    config: PipelineConfig,
    labels: Sequence[str] | None = None,
    *,
    beam_args: Sequence[str] | None = None,
    push_dir: str | None = None,
) -> Pipeline:
    """Returns the pipeline of a configuration; reads the label map, and writes nothing.

    Args:
        config: The options of the pipeline.
        labels: The label map itself, for runs that cannot see its file; when None, each run reads
            the file.
        beam_args: Arguments of Beam in a cluster; when None, those of the configuration.
        push_dir: Folder of the pushed models, "" for the artifact alone; `config.push_dir` when
            None.

    Raises:
        UsageError: A run on this machine has no root.
    """
    if beam_args is None and not config.root:
        raise UsageError("A run on this machine needs a root.", "Give root, or --root.")
    source = pick_fields(config, SourceFields)
    manifest_gen = ManifestGen(
        config.data,
        **{**source, "label_map": config.label_map if labels is None else labels},
        source_fingerprint=config.source_fingerprint,
    )
    image_to_tfrecord = ImageToTFRecord(
        manifest_gen.outputs["manifest"],
        manifest_gen.outputs["list_rejects"],
        **pick_fields(config, ConversionFields),
        **pick_fields(config, EmbedFields),
    )
    *checks, image_validator, gate = _create_checks(
        config, manifest_gen, image_to_tfrecord, is_local=beam_args is None
    )
    trainer = _create_trainer(config, image_to_tfrecord)
    # The gate has no output for the trainer, so this edge makes the trainer wait.
    trainer.add_upstream_node(gate)
    resolvers, evaluator = create_evaluation(
        config, image_to_tfrecord.outputs["examples"], trainer.outputs["model"]
    )
    model_report = ModelReport(
        evaluator.outputs["evaluation"],
        image_validator.outputs["report"],
        model=trainer.outputs["model"],
        model_run=trainer.outputs["model_run"],
        examples=image_to_tfrecord.outputs["examples"],
    )
    pusher = Pusher(
        model=trainer.outputs["model"],
        model_blessing=evaluator.outputs["blessing"],
        push_destination=pusher_pb2.PushDestination(
            filesystem=pusher_pb2.PushDestination.Filesystem(
                base_directory=config.push_dir if push_dir is None else push_dir
            )
        ),
    )
    of_data = [manifest_gen, image_to_tfrecord, *checks, image_validator, gate]
    of_model = [trainer, *resolvers, evaluator, model_report, pusher]
    if config.registry:
        registrar = ModelRegistrar(
            pusher.outputs["pushed_model"],
            model_report.outputs["page"],
            registry=config.registry,
            model_name=config.model_name or config.name,
            # A service puts the id of the run in its place.
            run=storage.absolute(config.root) if beam_args is None else TAKEN_BY_EACH_RUN,
        )
        of_model.append(registrar)
    return Pipeline(
        pipeline_name=config.name,
        pipeline_root=config.pipeline_root,
        components=[*of_data, *of_model],
        enable_cache=config.cache,
        metadata_connection_config=make_connection_config(config.root),
        beam_pipeline_args=list(config.beam_args if beam_args is None else beam_args),
    )


def _create_checks(
    config: PipelineConfig,
    manifest_gen: ManifestGen,
    image_to_tfrecord: ImageToTFRecord,
    *,
    is_local: bool,
) -> list[base_node.BaseNode]:
    """Returns the nodes between conversion and training: ImageValidator and the gate are last."""
    statistics_gen = ImageStatisticsGen(image_to_tfrecord.outputs["index"])
    statistics = statistics_gen.outputs["statistics"]
    if config.schema is None:
        # From the training split alone: values that only other splits have must be anomalies.
        schema_gen = SchemaGen(
            statistics=statistics, infer_feature_shape=True, exclude_splits=[EVAL, TEST]
        )
    else:
        # A service runs no driver, and each run imports the schema.
        schema_gen = (ImportSchemaGen if is_local else tfx_schema.ImportSchemaGen)(config.schema)
    example_validator = ExampleValidator(statistics=statistics, schema=schema_gen.outputs["schema"])
    image_validator = ImageValidator(
        index=image_to_tfrecord.outputs["index"],
        rejects=image_to_tfrecord.outputs["rejects"],
        manifest=manifest_gen.outputs["manifest"],
        anomalies=example_validator.outputs["anomalies"],
        options=config.validation,
        # Kubeflow's launcher would download all records for a few pictures; a gallery needs them.
        examples=image_to_tfrecord.outputs["examples"] if is_local or config.gallery else None,
    )
    gate = ValidationGate(image_validator.outputs["report"])
    return [statistics_gen, schema_gen, example_validator, image_validator, gate]


def _create_trainer(
    config: PipelineConfig, image_to_tfrecord: ImageToTFRecord
) -> DescribingTrainer:
    trainer: DescribingTrainer = DescribingTrainer(
        run_fn=RUN_FN,
        examples=image_to_tfrecord.outputs["examples"],
        # Zero steps: run_fn counts epochs, and the records say how long one is.
        train_args=trainer_pb2.TrainArgs(num_steps=0),
        eval_args=trainer_pb2.EvalArgs(num_steps=0),
        custom_config={
            CONFIG_KEY: config.training.to_dict(),
            CHECKPOINT_DIR_KEY: config.checkpoint_dir,
            MODEL_STATE.key: config.model_fingerprint,
        },
    ).with_id(MODEL_STATE.node)
    trainer.driver_class = ModelDriver
    return trainer


class ModelDriver(StateDriver):
    """Puts the state of the model's files into `custom_config`, unless one is given."""

    STATE = MODEL_STATE

    def change(self, properties: Mapping[str, Any]) -> dict[str, str]:
        """Returns `custom_config` with the state, as it is in this run."""
        config = json.loads(properties[_CUSTOM_CONFIG])
        config[MODEL_STATE.key] = config[MODEL_STATE.key] or self.take_state(properties)
        return {_CUSTOM_CONFIG: json.dumps(config, sort_keys=True)}


def make_connection_config(root: str) -> Any:
    """Returns the connection to the ML Metadata of a root, an sqlite file in it; writes nothing."""
    sqlite = metadata_store_pb2.SqliteMetadataSourceConfig(
        filename_uri=storage.join(root, METADATA_FILE),
        connection_mode=metadata_store_pb2.SqliteMetadataSourceConfig.READWRITE_OPENCREATE,
    )
    return metadata_store_pb2.ConnectionConfig(sqlite=sqlite)
