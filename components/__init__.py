"""TFX components: from a list of images to verified TFRecords (part: top).

Each component is loaded when it is first used. So a module that needs no TFX, such as
`darkroom.components.parameters`, is imported without the seconds that TFX takes. In a notebook that
also tells TFX's InteractiveContext how to show the artifacts.
"""

from __future__ import annotations

import builtins as _builtins
from typing import TYPE_CHECKING, Any

from darkroom.runtime import lazy_names as _lazy_names

if TYPE_CHECKING:
    from darkroom.components.artifacts import (
        ImageManifest,
        ModelPage,
        RecordIndex,
        Rejects,
        ValidationReport,
    )
    from darkroom.components.dataset_diff.component import DatasetDiff
    from darkroom.components.evaluator.component import Evaluator
    from darkroom.components.image_statistics_gen.component import ImageStatisticsGen
    from darkroom.components.image_to_tfrecord.component import ImageToTFRecord
    from darkroom.components.image_validator.component import ImageValidator
    from darkroom.components.import_schema_gen.component import ImportSchemaGen
    from darkroom.components.manifest_gen.component import ManifestGen
    from darkroom.components.model_registrar.component import ModelRegistrar
    from darkroom.components.model_report.component import ModelReport
    from darkroom.components.pusher.component import Pusher
    from darkroom.components.trainer.component import Trainer
    from darkroom.components.validation_gate.component import ValidationGate
    from darkroom.options.validation import ValidationOptions

# Only names that this installation can load: `import *`, `dir` and `help` load each of them.
__all__: list[str] = []
if TYPE_CHECKING or _lazy_names.is_installed("tfx"):
    __all__ += [
        "DatasetDiff",
        "Evaluator",
        "ImageManifest",
        "ImageStatisticsGen",
        "ImageToTFRecord",
        "ImageValidator",
        "ImportSchemaGen",
        "ManifestGen",
        "ModelPage",
        "ModelRegistrar",
        "ModelReport",
        "Pusher",
        "RecordIndex",
        "Rejects",
        "Trainer",
        "ValidationGate",
        "ValidationOptions",
        "ValidationReport",
    ]

_HOMES = {
    "DatasetDiff": "darkroom.components.dataset_diff.component",
    "Evaluator": "darkroom.components.evaluator.component",
    "ImageManifest": "darkroom.components.artifacts",
    "ImageStatisticsGen": "darkroom.components.image_statistics_gen.component",
    "ImageToTFRecord": "darkroom.components.image_to_tfrecord.component",
    "ImageValidator": "darkroom.components.image_validator.component",
    "ImportSchemaGen": "darkroom.components.import_schema_gen.component",
    "ManifestGen": "darkroom.components.manifest_gen.component",
    "ModelPage": "darkroom.components.artifacts",
    "ModelRegistrar": "darkroom.components.model_registrar.component",
    "ModelReport": "darkroom.components.model_report.component",
    "Pusher": "darkroom.components.pusher.component",
    "RecordIndex": "darkroom.components.artifacts",
    "Rejects": "darkroom.components.artifacts",
    "Trainer": "darkroom.components.trainer.component",
    "ValidationGate": "darkroom.components.validation_gate.component",
    "ValidationOptions": "darkroom.options.validation",
    "ValidationReport": "darkroom.components.artifacts",
}


def __getattr__(name: str) -> Any:
    found = _lazy_names.load_name("darkroom.components", name, _HOMES)
    if hasattr(_builtins, "__IPYTHON__"):  # in a notebook
        from darkroom.components import notebook

        notebook.register()
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
