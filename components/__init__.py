"""TFX components: from a list of images to verified TFRecords."""

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
