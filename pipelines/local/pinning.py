"""Pins the files that a local run reads, so that TFX's cache notices when one changes.

The cache compares properties and input artifacts. A path stays the same when the file behind it
changes, so a file's state becomes a property, or the file is copied to a path that names its state.
"""

from __future__ import annotations

import dataclasses
import hashlib

from darkroom import storage
from darkroom.components.user_code import fingerprint_sources, read_sources
from darkroom.options.training import APPLICATIONS_PREFIX
from darkroom.pipelines.config import PipelineConfig
from darkroom.training.networks.weights import find_state_file
from darkroom.validation.anomalies import read_schema

_INPUTS_FOLDER = "inputs"
_CHECKPOINTS_FOLDER = "checkpoints"


def pin_inputs(config: PipelineConfig) -> PipelineConfig:
    """Returns the configuration of a local run with the state of the files that its nodes read.

    The source and the label map are left out, because ManifestGen's driver reads their state.

    Raises:
        UsageError: The schema is not a schema.
        OSError: A file cannot be read.
    """
    schema = None
    if config.schema is not None:
        # Into a folder that its contents name.
        read_schema(config.schema)
        data = storage.read_bytes(config.schema)
        digest = hashlib.sha256(data).hexdigest()[:16]
        schema = storage.join(config.root, _INPUTS_FOLDER, digest, "schema.pbtxt")
        storage.make_folder(schema.rpartition("/")[0])
        storage.write_bytes(schema, data)
    return dataclasses.replace(
        config,
        source_fingerprint=None,
        schema=schema,
        model_fingerprint=fingerprint_model(config.model, config.weights),
        checkpoint_dir=storage.join(config.root, _CHECKPOINTS_FOLDER),
    )


def fingerprint_model(model: str, weights: str | None) -> str:
    """Returns the state of a model's files: its weights, and the code that builds it.

    The code is the module of the function and the user's modules that it imports.
    """
    states = []
    if weights is not None and storage.exists(weights):
        states.append(repr(storage.stat_file(find_state_file(weights))))
    module, colon, _ = model.partition(":")
    if colon and not model.startswith(APPLICATIONS_PREFIX):
        # Empty for an unknown module: the error comes when the model is built.
        states.append(fingerprint_sources(read_sources(module)))
    return "-".join(states)
