"""The objects of records, as TensorFlow reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from annotation_sets.plain import Thing

_OBJECT = "image/object/"
_SIDES = ("xmin", "ymin", "xmax", "ymax")


def read_records(records: Path) -> Iterator[tuple[str, list[Thing]]]:
    """Yields the path of each image, and its objects in pixels of the stored image."""
    import tensorflow as tf

    index = pq.read_table(records / "index", columns=["id", "uri"]).to_pylist()
    uris = {each["id"]: each["uri"] for each in index}
    for data in tf.data.TFRecordDataset(sorted(map(str, records.glob("Split-*/*")))):
        example = tf.train.Example.FromString(data.numpy())
        uri = uris[_take(example, "image/filename")[0].decode()]
        yield uri, [*_list_things(example)]


def _take(example: Any, name: str) -> Sequence[Any]:
    feature = example.features.feature[name]
    kind = feature.WhichOneof("kind")
    return getattr(feature, kind).value if kind else ()


def _list_things(example: Any) -> Iterator[Thing]:
    width, height = _take(example, "image/width")[0], _take(example, "image/height")[0]
    boxes = zip(*(_take(example, f"{_OBJECT}bbox/{side}") for side in _SIDES), strict=True)
    facts = (_take(example, _OBJECT + name) for name in ("class/text", "is_crowd", "difficult"))
    for box, label, is_crowd, difficult in zip(boxes, *facts, strict=True):
        pixels = (box[0] * width, box[1] * height, box[2] * width, box[3] * height)
        yield Thing(label.decode(), pixels, bool(is_crowd), bool(difficult))
