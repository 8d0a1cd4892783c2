"""Driver of ManifestGen: takes the fingerprint of the source in each run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from darkroom.components.manifest_gen.executor import (
    BASE_KEY,
    FINGERPRINT_KEY,
    OPTIONS_KEY,
    SOURCE_KEY,
)
from darkroom.components.state_driver import StateDriver
from darkroom.dataset.commit import find_dataset
from darkroom.dataset.named import find_named
from darkroom.dataset.pointer import find_data
from darkroom.manifest.fingerprint import read_source_state
from darkroom.options.manifest import ManifestOptions


class Driver(StateDriver):
    """Puts the state of the source into the property `source_fingerprint`, unless one is given."""

    KEY = FINGERPRINT_KEY
    NODE = "ManifestGen"
    READS = "source"

    def read_state(self, properties: Mapping[str, Any]) -> str:
        """Returns the state of the source, its images, exclusions and label map, and the base."""
        options = ManifestOptions.from_json(properties[OPTIONS_KEY])
        state = read_source_state(properties[SOURCE_KEY], options)
        if not properties.get(BASE_KEY):
            return state
        dataset = find_dataset(find_data(find_named(properties[BASE_KEY])))
        return f"{state}-{dataset.fingerprint if dataset else 'new'}"
