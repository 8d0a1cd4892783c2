"""Driver of ManifestGen: takes the fingerprint of the source when a run decides about the cache.

TFX's cache compares properties and input artifacts. A path stays the same when the file behind it
changes, so the state of that file goes into a property. The component's constructor would take it
too early, as one component may run several times; TFX asks the driver in each run, before it
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

    `run` is what LocalDagRunner and BeamDagRunner call, `resolve_exec_properties` what TFX's
    InteractiveContext does.
    """

    def __init__(self, metadata_handle: Any) -> None:
        base_driver.BaseDriver.__init__(self, metadata_handle)
        portable_driver.BaseDriver.__init__(self, metadata_handle)

    def run(self, execution_info: data_types.ExecutionInfo) -> driver_output_pb2.DriverOutput:
        """Returns the properties that change."""
        output = driver_output_pb2.DriverOutput()
        fingerprint = _find_fingerprint(execution_info.exec_properties)
        output.exec_properties[FINGERPRINT_KEY].string_value = fingerprint
        return output

    def resolve_exec_properties(
        self, exec_properties: dict[str, Any], pipeline_info: Any, component_info: Any
    ) -> dict[str, Any]:
        """Returns all properties; those of the component stay as they are, for its next run."""
        return {**exec_properties, FINGERPRINT_KEY: _find_fingerprint(exec_properties)}


def _find_fingerprint(properties: Mapping[str, Any]) -> str:
    """Returns the given fingerprint, the source's, or a text that no other run has.

    Never raises because of the source: the executor says what is wrong with it, and TFX records
    that the node failed.
    """
    given = str(properties[FINGERPRINT_KEY])
    if given != TAKEN_BY_EACH_RUN:
        return given
    try:
        options = ManifestOptions.from_json(properties[OPTIONS_KEY])
        return read_source_state(properties[SOURCE_KEY], options)
    except (DataError, UsageError, FileNotFoundError):
        pass  # the executor will say the same
    except (DarkroomError, OSError) as error:
        said = error.message if isinstance(error, DarkroomError) else describe_os_error(error)
        text = f"ManifestGen does not come from the cache, as its source cannot be seen: {said}"
        logging.warning("%s", text)
        progress.note(text)
    return f"unknown-{uuid.uuid4().hex}"
