"""Driver of ManifestGen: takes the fingerprint of the source in each run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from darkroom.components.manifest_gen.executor import FINGERPRINT_KEY, OPTIONS_KEY, SOURCE_KEY
from darkroom.components.state_driver import StateDriver
from darkroom.manifest.fingerprint import read_source_state
from darkroom.options.manifest import ManifestOptions


class Driver(StateDriver):
    """Puts the state of the source into the property `source_fingerprint`, unless one is given."""

    KEY = FINGERPRINT_KEY
    NODE = "ManifestGen"
    READS = "source"

    def read_state(self, properties: Mapping[str, Any]) -> str:
        """Returns the state of the source, its images, the exclusions and the label map."""
        options = ManifestOptions.from_json(properties[OPTIONS_KEY])
        return read_source_state(properties[SOURCE_KEY], options)
