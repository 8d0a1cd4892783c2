"""Driver of ManifestGen: computes the fingerprint of the source before TFX looks into its cache.

TFX's cache compares properties and input artifacts. A path stays the same when the file behind it
changes, so the state of that file becomes a property. The component's constructor would be too
early, because a component may run several times. TFX calls the driver in each run, before it
computes the key of its cache.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from absl import logging
from tfx.dsl.components.base import base_driver
from tfx.orchestration.portable import base_driver as portable_driver
from tfx.orchestration.portable import data_types
from tfx.proto.orchestration import driver_output_pb2

from darkroom.components.manifest_gen.executor import (
    FINGERPRINT_KEY,
    OPTIONS_KEY,
    SOURCE_KEY,
    TAKEN_BY_EACH_RUN,
)
from darkroom.errors import DarkroomError, DataError, UsageError, describe_os_error
from darkroom.manifest.fingerprint import read_source_state
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime import progress


class Driver(base_driver.BaseDriver, portable_driver.BaseDriver):
    """Puts the state of the source into the property `source_fingerprint`, unless one is given.

    LocalDagRunner and BeamDagRunner call `run`; TFX's InteractiveContext calls
    `resolve_exec_properties`.
    """

    def __init__(self, metadata_handle: Any) -> None:
        base_driver.BaseDriver.__init__(self, metadata_handle)
        portable_driver.BaseDriver.__init__(self, metadata_handle)

    def run(self, execution_info: data_types.ExecutionInfo) -> driver_output_pb2.DriverOutput:
        """Returns the changed properties."""
        output = driver_output_pb2.DriverOutput()
        fingerprint = _find_fingerprint(execution_info.exec_properties)
        output.exec_properties[FINGERPRINT_KEY].string_value = fingerprint
        return output

    def resolve_exec_properties(
        self, exec_properties: dict[str, Any], pipeline_info: Any, component_info: Any
    ) -> dict[str, Any]:
        """Returns all properties; the component's own stay unchanged, for its next run."""
        return {**exec_properties, FINGERPRINT_KEY: _find_fingerprint(exec_properties)}


def _find_fingerprint(properties: Mapping[str, Any]) -> str:
    """Returns the given fingerprint, that of the source, or a text that no other run has.

    An unusable source raises nothing here: the executor reports it, and TFX records that the node
    failed.
    """
    given = str(properties[FINGERPRINT_KEY])
    if given != TAKEN_BY_EACH_RUN:
        return given
    try:
        options = ManifestOptions.from_json(properties[OPTIONS_KEY])
        return read_source_state(properties[SOURCE_KEY], options)
    except (DataError, UsageError, FileNotFoundError):
        pass  # the executor raises the same error
    except (DarkroomError, OSError) as error:
        said = error.message if isinstance(error, DarkroomError) else describe_os_error(error)
        text = f"ManifestGen cannot use the cache, because its source cannot be read: {said}"
        logging.warning("%s", text)
        progress.note(text)
    return f"unknown-{uuid.uuid4().hex}"
