"""TensorFlow's Object Detection API and Model Garden: the file that names the classes of boxes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from darkroom.sidecars.described import Described

_FILE = "label_map.pbtxt"


def list_sidecar_files(shards: Sequence[str]) -> list[str]:
    """Returns the paths of the sidecars below the dataset."""
    return [_FILE]


def build(described: Described) -> dict[str, bytes]:
    """Returns the contents of the sidecars by path."""
    # In its records, 0 is the background.
    numbered = enumerate(described.dataset.labels, start=1)
    # Its texts are escaped as those of JSON.
    items = (
        f"item {{\n  id: {number}\n  name: {json.dumps(label, ensure_ascii=False)}\n}}\n"
        for number, label in numbered
    )
    return {_FILE: "".join(items).encode()}
