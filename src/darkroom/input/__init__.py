"""tf.data batches from datasets and from lists of images (part: read).

Importing the package does not load TensorFlow: each name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from darkroom.runtime import lazy_names as _lazy_names

if TYPE_CHECKING:
    from darkroom.input.damage import explain_damage
    from darkroom.input.files import open_images
    from darkroom.input.loading import load
    from darkroom.input.opening import input_fn
    from darkroom.input.tables.csv import make_csv_dataset
    from darkroom.input.tables.csv_table import CsvOptions

# Only names that this installation can load: `import *`, `dir` and `help` load each of them.
__all__ = ["load"]
if TYPE_CHECKING or _lazy_names.is_installed("tensorflow"):
    __all__ += ["CsvOptions", "explain_damage", "input_fn", "make_csv_dataset", "open_images"]

_HOMES = {
    "CsvOptions": "darkroom.input.tables.csv_table",
    "explain_damage": "darkroom.input.damage",
    "input_fn": "darkroom.input.opening",
    "load": "darkroom.input.loading",
    "make_csv_dataset": "darkroom.input.tables.csv",
    "open_images": "darkroom.input.files",
}


def __getattr__(name: str) -> Any:
    return _lazy_names.load_name("darkroom.input", name, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
