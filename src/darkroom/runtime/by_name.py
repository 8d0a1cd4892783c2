"""What one part of darkroom asks of another that it does not import.

The parts share a dataset, and nothing else, so that each can be read, and kept, by itself. Where
one takes a list of images in place of a dataset, it finds what makes one by its name, here. So a
conversion finds what few of them need.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# A name for what is asked, and where it is.
PLACES = {
    "write_manifest": "darkroom.manifest.writer:write_manifest",
    "follow_with_features": "darkroom.conversion.embed:follow_with_features",
    "run_job": "darkroom.conversion.beam.run:run_job",
    "check_job_server": "darkroom.conversion.beam.job_server:check_job_server",
    "DataflowJob": "darkroom.conversion.beam.dataflow:DataflowJob",
}


def find(name: str) -> Any:
    """Returns what has a name in `PLACES`; its module is loaded by the first who asks."""
    return load(PLACES[name])


def load(place: str) -> Any:
    """Returns what is at a place, as `package.module:name`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
