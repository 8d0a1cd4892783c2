"""TFX components: from a list of images to verified TFRecords.

Each is loaded when it is first used: what needs no TFX, as `darkroom.components.parameters`, can be
imported without the seconds that TFX takes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from darkroom.components.artifacts import ImageManifest, RecordIndex, Rejects, ValidationReport
    from darkroom.components.image_statistics_gen.component import ImageStatisticsGen
    from darkroom.components.image_to_tfrecord.component import ImageToTFRecord
    from darkroom.components.image_validator.component import ImageValidator
    from darkroom.components.manifest_gen.component import ManifestGen
    from darkroom.components.model_report.component import ModelReport
    from darkroom.components.pusher.component import Pusher
    from darkroom.components.validation_gate.component import ValidationGate

__all__ = [
    "ImageManifest",
    "ImageStatisticsGen",
    "ImageToTFRecord",
    "ImageValidator",
    "ManifestGen",
    "ModelReport",
    "Pusher",
    "RecordIndex",
    "Rejects",
    "ValidationGate",
    "ValidationReport",
]

_HOMES = {
    "ImageManifest": "artifacts",
    "ImageStatisticsGen": "image_statistics_gen.component",
    "ImageToTFRecord": "image_to_tfrecord.component",
    "ImageValidator": "image_validator.component",
    "ManifestGen": "manifest_gen.component",
    "ModelReport": "model_report.component",
    "Pusher": "pusher.component",
    "RecordIndex": "artifacts",
    "Rejects": "artifacts",
    "ValidationGate": "validation_gate.component",
    "ValidationReport": "artifacts",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
