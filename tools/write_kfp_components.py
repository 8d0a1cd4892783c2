"""Writes src/darkroom/kfp/yaml from the code: the components as KFP loads them from files.

python tools/write_kfp_components.py
"""

from __future__ import annotations

from darkroom.kfp.components import DEFAULT_IMAGE
from darkroom.kfp.yaml_files import FOLDER, encode_component
from darkroom.steps.known import STEPS


def main() -> None:
    """Writes the files."""
    FOLDER.mkdir(exist_ok=True)
    for name in STEPS:
        text = encode_component(name, DEFAULT_IMAGE)
        (FOLDER / f"{name}.yaml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
