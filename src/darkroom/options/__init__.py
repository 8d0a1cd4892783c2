"""The options of each stage, as frozen dataclasses that check themselves (part: core).

Importing the package loads nothing heavy: each name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from darkroom.runtime import lazy_names as _lazy_names

if TYPE_CHECKING:
    from darkroom.options.conversion import ConversionOptions
    from darkroom.options.image import ImageOptions
    from darkroom.options.input import InputOptions
    from darkroom.options.manifest import ManifestOptions
    from darkroom.options.training import TrainingOptions
    from darkroom.options.validation import ValidationOptions

__all__ = [
    "ConversionOptions",
    "ImageOptions",
    "InputOptions",
    "ManifestOptions",
    "TrainingOptions",
    "ValidationOptions",
]

_HOMES = {
    "ConversionOptions": "darkroom.options.conversion",
    "ImageOptions": "darkroom.options.image",
    "InputOptions": "darkroom.options.input",
    "ManifestOptions": "darkroom.options.manifest",
    "TrainingOptions": "darkroom.options.training",
    "ValidationOptions": "darkroom.options.validation",
}


def __getattr__(name: str) -> Any:
    return _lazy_names.load_name("darkroom.options", name, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
