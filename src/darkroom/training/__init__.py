"""From datasets to a trained model: `run_fn`, checkpoints, export (part: learn).

Importing the package does not load TensorFlow: each name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from darkroom.runtime import lazy_names as _lazy_names

if TYPE_CHECKING:
    from darkroom.training.trainer import run_fn

# Only names that this installation can load: `import *`, `dir` and `help` load each of them.
__all__: list[str] = []
if TYPE_CHECKING or _lazy_names.is_installed("tensorflow"):
    __all__ += ["run_fn"]

_HOMES = {"run_fn": "darkroom.training.trainer"}


def __getattr__(name: str) -> Any:
    return _lazy_names.load_name("darkroom.training", name, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
