"""Drivers that compute a fingerprint of a node's files, before TFX looks into its cache.

TFX's cache compares properties and input artifacts. A path stays the same when the file behind it
changes, so the state of that file becomes a property. A component's constructor would be too early,
because a component may run several times. TFX calls the driver in each run, before it computes the
key of its cache.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from absl import logging
from tfx.dsl.components.base import base_driver
from tfx.orchestration.portable import base_driver as portable_driver
from tfx.orchestration.portable import data_types
from tfx.proto.orchestration import driver_output_pb2

from darkroom import storage
from darkroom.errors import DarkroomError, DataError, UsageError, describe_os_error
from darkroom.runtime import progress

# The property's value until the driver replaces it by the fingerprint. Kubeflow Pipelines and
# Vertex AI do not run drivers: they replace this text by the id of the run before they look into
# their caches, so the node runs each time.
TAKEN_BY_EACH_RUN = "{{$.pipeline_job_uuid}}"
# The property of nodes that TFX defines; ManifestGen has its own.
FINGERPRINT_KEY = "fingerprint"


class StateDriver(base_driver.BaseDriver, portable_driver.BaseDriver):
    """Puts the state of a node's files into one of its properties, unless one is given.

    LocalDagRunner and BeamDagRunner call `run`; TFX's InteractiveContext calls
    `resolve_exec_properties`.
    """

    KEY: ClassVar[str] = FINGERPRINT_KEY
    # For a message: the node and its files.
    NODE: ClassVar[str]
    READS: ClassVar[str]

    def __init__(self, metadata_handle: Any) -> None:
        base_driver.BaseDriver.__init__(self, metadata_handle)
        portable_driver.BaseDriver.__init__(self, metadata_handle)

    def read_state(self, properties: Mapping[str, Any]) -> str:
        """Returns a text that changes when something does that the node reads.

        Raises:
            DarkroomError: It cannot be read.
            OSError: The same.
        """
        raise NotImplementedError

    def run(self, execution_info: data_types.ExecutionInfo) -> driver_output_pb2.DriverOutput:
        """Returns the changed properties."""
        output = driver_output_pb2.DriverOutput()
        fingerprint = self._find_fingerprint(execution_info.exec_properties)
        output.exec_properties[self.KEY].string_value = fingerprint
        return output

    def resolve_exec_properties(
        self, exec_properties: dict[str, Any], pipeline_info: Any, component_info: Any
    ) -> dict[str, Any]:
        """Returns all properties; the component's own stay unchanged, for its next run."""
        return {**exec_properties, self.KEY: self._find_fingerprint(exec_properties)}

    def _find_fingerprint(self, properties: Mapping[str, Any]) -> str:
        """Returns the given fingerprint, that of the files, or a text that no other run has.

        Unusable files raise nothing here: the executor reports them, and TFX records that the node
        failed.
        """
        given = str(properties[self.KEY])
        if given != TAKEN_BY_EACH_RUN:
            return given
        try:
            return self.read_state(properties)
        except (DataError, UsageError, FileNotFoundError):
            pass  # the executor raises the same error
        except (DarkroomError, OSError) as error:
            said = error.message if isinstance(error, DarkroomError) else describe_os_error(error)
            text = (
                f"{self.NODE} cannot use the cache, because its {self.READS} cannot be read: {said}"
            )
            logging.warning("%s", text)
            progress.note(text)
        return f"unknown-{uuid.uuid4().hex}"


def read_file_states(paths: Iterable[str]) -> dict[str, Any]:
    """Returns size and version of files, and of all files in folders, by path; None for missing.

    Raises:
        OSError: A file exists, but its state cannot be read.
    """
    return {path: _read_state(path) for path in sorted({*paths})}


def _read_state(path: str) -> Any:
    try:
        if storage.is_folder(path):
            return sorted(storage.look_up_files(path).items())
        return storage.stat_file(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def hash_states(*states: Any) -> str:
    """Returns the hash of values that JSON knows."""
    return hashlib.sha256(json.dumps(states, sort_keys=True).encode()).hexdigest()
