"""Hugging Face: a dataset card, by which `load_dataset` and the hub find the index.

They have no reader for TFRecord; the card says how to read the images.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice

from darkroom.dataset.layout import INDEX_FOLDER
from darkroom.sidecars.described import Described

_FILE = "README.md"
_TEXT = """
# A dataset of darkroom

{written:,} records in TFRecord files, with the fingerprint `{fingerprint}`. The table here is their
index: URI, split, label, SHA-256, size and place of each image. Read the images themselves with:

```python
darkroom.load("DATASET", framework="numpy")
```

| split | records | shards |
| --- | ---: | ---: |
"""


def list_sidecar_files(shards: Sequence[str]) -> list[str]:
    """Returns the paths of the sidecars below the dataset."""
    return [_FILE]


def build(described: Described) -> dict[str, bytes]:
    """Returns the contents of the sidecars by path."""
    dataset = described.dataset
    text = _TEXT.format(written=dataset.written, fingerprint=dataset.fingerprint)
    for name, split in dataset.splits.items():
        text += f"| {name} | {split.records:,} | {len(split.shards):,} |\n"
    if dataset.labels:
        count = f"{len(dataset.labels):,}"
        text += f"\nIts {count} labels are in `labels.txt`, in the order of their numbers.\n"
    return {_FILE: "".join(_write_header(described)).encode() + text.encode()}


def _write_header(described: Described) -> Iterator[str]:
    """Yields the lines of YAML that name the files of each split."""
    yield "---\ntags:\n- darkroom\n- image\nconfigs:\n- config_name: default\n  data_files:\n"
    files = iter(described.dataset.index_files)
    for name, split in described.dataset.splits.items():
        yield f"  - split: {name}\n    path:\n"
        for file in islice(files, len(split.shards)):
            yield f"    - {json.dumps(f'{described.root}{INDEX_FOLDER}/{file}')}\n"
    yield "---\n"
