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
from darkroom.conversion.base import find_base
from darkroom.dataset.commit import read_dataset
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
        place = properties.get(BASE_KEY)
        base = find_base(place) if place else None
        state = read_source_state(properties[SOURCE_KEY], options, shown=[base] if base else ())
        if not place:
            return state
        return f"{state}-{read_dataset(base.examples).fingerprint if base else 'new'}"
