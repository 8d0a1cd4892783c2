"""darkroom turns image datasets into verified TFRecords and trained models.

    import darkroom

    darkroom.convert("images.csv", "records")                      # no pipeline
    df.tensorflow.to_tfrecord(output_dir="records")                # from a DataFrame
    darkroom.validate("records", report_dir="report")              # checks, and a page
    datasets = darkroom.load("records", image_size=(224, 224), batch_size=64)
    darkroom.train("records", "runs/first", epochs=20)             # a model, and its page

Importing the package loads neither TensorFlow nor Beam nor TFX: their users are loaded when one
is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from darkroom.conversion import dataframe as _accessor
from darkroom.runtime import lazy_names as _lazy_names
from darkroom.version import __version__

if TYPE_CHECKING:
    from darkroom.audit.contact_sheet import inspect
    from darkroom.audit.duplicates import Duplicates, find_duplicates
    from darkroom.components.artifacts import (
        ImageManifest,
        ModelPage,
        RecordIndex,
        Rejects,
        ValidationReport,
    )
    from darkroom.conversion.convert import convert
    from darkroom.conversion.describe import Description, describe
    from darkroom.conversion.embed import Embedding, embed
    from darkroom.conversion.result import ConversionResult
    from darkroom.errors import DarkroomError
    from darkroom.evaluation.evaluate import evaluate
    from darkroom.evaluation.predict import Predictions, predict
    from darkroom.evaluation.report.result import Evaluation
    from darkroom.input.loading import load
    from darkroom.proof.verify import VerificationResult, verify
    from darkroom.training.formats.portable import ExportResult, export
    from darkroom.training.result import TrainingResult
    from darkroom.training.train import train
    from darkroom.validation.diff import diff
    from darkroom.validation.validate import ValidationResult, validate

# All that an installation has: `import *`, `dir` and `help` load each of them.
__all__ = [
    "ConversionResult",
    "DarkroomError",
    "Description",
    "Duplicates",
    "Embedding",
    "Evaluation",
    "ExportResult",
    "Predictions",
    "TrainingResult",
    "ValidationResult",
    "VerificationResult",
    "__version__",
    "convert",
    "describe",
    "diff",
    "embed",
    "evaluate",
    "export",
    "find_duplicates",
    "inspect",
    "load",
    "predict",
    "train",
    "validate",
    "verify",
]
if TYPE_CHECKING or _lazy_names.is_installed("tfx"):
    __all__ += ["ImageManifest", "ModelPage", "RecordIndex", "Rejects", "ValidationReport"]

# Kubeflow and Vertex look an artifact's class up by its type name, `darkroom.<Class>`.
_HOMES = {
    "ConversionResult": "darkroom.conversion.result",
    "DarkroomError": "darkroom.errors",
    "Description": "darkroom.conversion.describe",
    "Duplicates": "darkroom.audit.duplicates",
    "Embedding": "darkroom.conversion.embed",
    "Evaluation": "darkroom.evaluation.report.result",
    "ExportResult": "darkroom.training.formats.portable",
    "ImageManifest": "darkroom.components.artifacts",
    "ModelPage": "darkroom.components.artifacts",
    "RecordIndex": "darkroom.components.artifacts",
    "Predictions": "darkroom.evaluation.predict",
    "Rejects": "darkroom.components.artifacts",
    "ValidationReport": "darkroom.components.artifacts",
    "TrainingResult": "darkroom.training.result",
    "ValidationResult": "darkroom.validation.validate",
    "VerificationResult": "darkroom.proof.verify",
    "convert": "darkroom.conversion.convert",
    "describe": "darkroom.conversion.describe",
    "diff": "darkroom.validation.diff",
    "embed": "darkroom.conversion.embed",
    "evaluate": "darkroom.evaluation.evaluate",
    "export": "darkroom.training.formats.portable",
    "find_duplicates": "darkroom.audit.duplicates",
    "inspect": "darkroom.audit.contact_sheet",
    "load": "darkroom.input.loading",
    "predict": "darkroom.evaluation.predict",
    "train": "darkroom.training.train",
    "validate": "darkroom.validation.validate",
    "verify": "darkroom.proof.verify",
}


def __getattr__(name: str) -> Any:
    return _lazy_names.load_name("darkroom", name, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)


_accessor.register_when_loaded()
