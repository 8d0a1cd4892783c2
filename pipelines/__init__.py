"""The pipeline: one definition, and a folder for each way to run it (part: top).

`LocalRunner` runs any TFX pipeline on this machine, and `compile_pipeline` makes a file of it for a
cluster, which `ClusterConfig` describes. They are loaded when they are first used, because
configurations are made without the seconds that TFX takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from darkroom.runtime import lazy_names as _lazy_names

if TYPE_CHECKING:
    from darkroom.pipelines.compilation.own import compile_pipeline
    from darkroom.pipelines.config import ClusterConfig
    from darkroom.pipelines.local.runner import LocalRunner

# Only names that this installation can load: `import *`, `dir` and `help` load each of them.
__all__: list[str] = []
if TYPE_CHECKING or _lazy_names.is_installed("tfx"):
    __all__ += ["ClusterConfig", "LocalRunner", "compile_pipeline"]

_HOMES = {
    "ClusterConfig": "darkroom.pipelines.config",
    "LocalRunner": "darkroom.pipelines.local.runner",
    "compile_pipeline": "darkroom.pipelines.compilation.own",
}


def __getattr__(name: str) -> Any:
    return _lazy_names.load_name("darkroom.pipelines", name, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
