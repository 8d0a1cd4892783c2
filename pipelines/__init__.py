"""The pipeline: one definition, and a thin runner for each place that runs it.

`LocalRunner` runs any TFX pipeline on this machine. It is loaded when it is first used, because
configurations are made without the seconds that TFX takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from darkroom.runtime import lazy_names as _lazy_names

if TYPE_CHECKING:
    from darkroom.pipelines.local.runner import LocalRunner

# Only names that this installation can load: `import *`, `dir` and `help` load each of them.
__all__: list[str] = []
if TYPE_CHECKING or _lazy_names.is_installed("tfx"):
    __all__ += ["LocalRunner"]

_HOMES = {"LocalRunner": "darkroom.pipelines.local.runner"}


def __getattr__(name: str) -> Any:
    return _lazy_names.load_name("darkroom.pipelines", name, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
