"""Components for Kubeflow Pipelines and Vertex, without TFX (part: top).

    from darkroom.kfp import convert_images, validate_dataset

They need the extra `kfp` where pipelines are compiled, and in the containers neither kfp nor TFX.
Importing the package loads none of them: each name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from darkroom.runtime import lazy_names as _lazy_names
from darkroom.steps.known import STEPS as _STEPS

if TYPE_CHECKING:
    from darkroom.kfp.components import make_component
    from darkroom.kfp.pipelines import make_pipeline

    convert_images: Any
    dataset_statistics: Any
    diff_datasets: Any
    evaluate_classifier: Any
    evaluate_detector: Any
    find_duplicates: Any
    inspect_dataset: Any
    notify: Any
    predict_images: Any
    register_model: Any
    train_classifier: Any
    train_with_function: Any
    validate_dataset: Any
    validation_gate: Any
    verify_dataset: Any

# Only names that this installation can load: `import *`, `dir` and `help` load each of them.
__all__: list[str] = []
if TYPE_CHECKING or _lazy_names.is_installed("kfp"):
    __all__ += [
        "convert_images",
        "dataset_statistics",
        "diff_datasets",
        "evaluate_classifier",
        "evaluate_detector",
        "find_duplicates",
        "inspect_dataset",
        "make_component",
        "make_pipeline",
        "notify",
        "predict_images",
        "register_model",
        "train_classifier",
        "train_with_function",
        "validate_dataset",
        "validation_gate",
        "verify_dataset",
    ]

_HOMES = {
    "make_component": "darkroom.kfp.components",
    "make_pipeline": "darkroom.kfp.pipelines",
}


def __getattr__(name: str) -> Any:
    if name not in _STEPS:
        return _lazy_names.load_name("darkroom.kfp", name, _HOMES)
    made = _lazy_names.load_name("darkroom.kfp", "make_component", _HOMES)(name)
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    return sorted(__all__)
