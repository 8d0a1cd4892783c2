"""Drivers that put the state of a node's files into a property, before TFX looks into its cache.

A component's constructor would be too early, because a component may run several times. TFX calls
the driver in each run, before it computes the key of its cache.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, ClassVar

from absl import logging
from tfx.dsl.components.base import base_driver
from tfx.orchestration.portable import base_driver as portable_driver
from tfx.orchestration.portable import data_types
from tfx.proto.orchestration import driver_output_pb2

from darkroom.components.file_state import (
    SCHEMA_STATE,
    SOURCE_STATE,
    TRAINING_STATE,
    FileState,
    accept,
)
from darkroom.errors import DarkroomError, DataError, UsageError, describe_os_error
from darkroom.runtime import progress

# The property's value until the driver replaces it by the state. Kubeflow Pipelines and Vertex AI
# do not run drivers: they replace this text by the id of the run before they look into their
# caches, so the node runs each time.
TAKEN_BY_EACH_RUN = "{{$.pipeline_job_uuid}}"


class StateDriver(base_driver.BaseDriver, portable_driver.BaseDriver):
    """Puts the state of a node's files into one of its properties, unless one is given.

    LocalDagRunner and BeamDagRunner call `run`; TFX's InteractiveContext calls
    `resolve_exec_properties`.
    """

    STATE: ClassVar[FileState]

    def __init__(self, metadata_handle: Any) -> None:
        base_driver.BaseDriver.__init__(self, metadata_handle)
        portable_driver.BaseDriver.__init__(self, metadata_handle)

    def run(self, execution_info: data_types.ExecutionInfo) -> driver_output_pb2.DriverOutput:
        """Returns the changed properties."""
        output = driver_output_pb2.DriverOutput()
        for name, value in self.change(execution_info.exec_properties).items():
            output.exec_properties[name].string_value = value
        return output

    def resolve_exec_properties(
        self, exec_properties: dict[str, Any], pipeline_info: Any, component_info: Any
    ) -> dict[str, Any]:
        """Returns all properties; the component's own stay unchanged, for its next run."""
        return {**exec_properties, **self.change(exec_properties)}

    def change(self, properties: Mapping[str, Any]) -> dict[str, str]:
        """Returns the property with the state, as it is in this run."""
        given = str(properties[self.STATE.key])
        is_given = given != TAKEN_BY_EACH_RUN
        return {self.STATE.key: given if is_given else self.take_state(properties)}

    def take_state(self, properties: Mapping[str, Any]) -> str:
        """Returns the state of the files, or a text that no other run has.

        Unusable files raise nothing here: the executor reports them, and TFX records that the node
        failed.
        """
        state = self.STATE
        try:
            return state.read(properties, accept)
        except (DataError, UsageError, FileNotFoundError):
            pass  # the executor raises the same error
        except (DarkroomError, OSError) as error:
            said = error.message if isinstance(error, DarkroomError) else describe_os_error(error)
            text = (
                f"{state.node} cannot use the cache, because its {state.reads} cannot be read: "
                f"{said}"
            )
            logging.warning("%s", text)
            progress.note(text)
        return f"unknown-{uuid.uuid4().hex}"


class SourceDriver(StateDriver):
    """The driver of ManifestGen."""

    STATE = SOURCE_STATE


class SchemaDriver(StateDriver):
    """The driver of ImportSchemaGen."""

    STATE = SCHEMA_STATE


class TrainingDriver(StateDriver):
    """The driver of Trainer."""

    STATE = TRAINING_STATE
