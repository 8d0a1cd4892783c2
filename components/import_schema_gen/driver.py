"""Driver of ImportSchemaGen: takes the fingerprint of the schema in each run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx.types.standard_component_specs import SCHEMA_FILE_KEY

from darkroom import storage
from darkroom.components.state_driver import StateDriver


class Driver(StateDriver):
    """Puts the hash of the schema's file into the property `fingerprint`, unless one is given."""

    NODE = "ImportSchemaGen"
    READS = "schema"

    def read_state(self, properties: Mapping[str, Any]) -> str:
        """Returns the SHA-256 of the schema's file."""
        return storage.hash_file(properties[SCHEMA_FILE_KEY])
