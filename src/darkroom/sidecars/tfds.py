"""TensorFlow Datasets: what `tfds.builder_from_directory` reads beside the shards.

The forms of both files are those of the messages `DatasetInfo` and `Feature` of TFDS 4, as JSON.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pyarrow.compute as pc

from darkroom.dataset.commit import Dataset
from darkroom.dataset.example import IMAGE_ENCODED, LABEL_NUMBER
from darkroom.dataset.labels import format_labels
from darkroom.dataset.layout import split_folder
from darkroom.options.image import RAW_ENCODING
from darkroom.runtime.json_values import format_json
from darkroom.sidecars.described import Described
from darkroom.targets.kind import find_kind

_INFO, _FEATURES = "dataset_info.json", "features.json"
# TFDS reads names from here for any feature with a number of classes.
_NAMES = f"{LABEL_NUMBER.replace('/', '.')}.labels.txt"
_SIZES = ("height", "width", "channels")
_ANY = -1


def list_sidecar_files(shards: Sequence[str]) -> list[str]:
    """Returns the paths of the sidecars below the dataset."""
    return [_INFO, _FEATURES, _NAMES]


def build(described: Described) -> dict[str, bytes]:
    """Returns the contents of the sidecars by path."""
    dataset = described.dataset
    shape, lists = _read_shapes(described)
    features = {}
    for name, each in dataset.features.items():
        feature = _describe_feature(name, each["type"], dataset, shape)
        if name in lists:
            feature = _wrap("Sequence", feature=feature, length=str(lists[name]))
        features[name] = feature
    return {
        _INFO: format_json(_describe_dataset(described)),
        _FEATURES: format_json(_wrap("FeaturesDict", features=features)),
        **({_NAMES: format_labels(dataset.labels).encode()} if LABEL_NUMBER in features else {}),
    }


def _describe_dataset(described: Described) -> dict[str, Any]:
    """Returns the message `DatasetInfo`: the splits, and what `as_supervised` gives."""
    dataset = described.dataset
    target = LABEL_NUMBER if dataset.labels else find_kind(dataset.target.kind).shown
    keys = [name for name in (IMAGE_ENCODED, target) if name in dataset.features]
    # TFDS formats it as Python does.
    root = described.root.replace("{", "{{").replace("}", "}}")
    info: dict[str, Any] = {
        "name": "darkroom",
        "version": "1.0.0",
        "description": f"A dataset of darkroom with the fingerprint {dataset.fingerprint}.",
        "fileFormat": "tfrecord",
        "splits": [
            {
                "name": name,
                "shardLengths": [str(shard.records) for shard in split.shards],
                "numBytes": str(sum(shard.bytes for shard in split.shards)),
                "filepathTemplate": f"{root}{split_folder(name)}/data_tfrecord-{{SHARD_X_OF_Y}}",
            }
            for name, split in dataset.splits.items()
        ],
    }
    if len(keys) == 2:
        info["supervisedKeys"] = {"tuple": {"items": [{"featureKey": key} for key in keys]}}
    return info


def _describe_feature(
    name: str, kind: str, dataset: Dataset, shape: Sequence[int] | None
) -> dict[str, Any]:
    """Returns the message of a feature with one value.

    Args:
        name: Its name in the records.
        kind: bytes, int64 or float.
        dataset: The commit.
        shape: (height, width, channels) of images, -1 for any; None if TFDS cannot decode them.
    """
    if name == IMAGE_ENCODED and shape:
        return _wrap("Image", dtype="uint8", shape={"dimensions": list(map(str, shape))})
    if name == LABEL_NUMBER:
        return _wrap("ClassLabel", numClasses=str(len(dataset.labels)))
    if kind == "bytes":
        return _wrap("Text")
    dtype = {"int64": "int64", "float": "float32"}[kind]
    return _wrap("Tensor", dtype=dtype, encoding="none", shape={})


# The file of TFDS that has the class, and the field of its message.
_CLASSES = {
    "FeaturesDict": ("features_dict", "featuresDict"),
    "Image": ("image_feature", "image"),
    "ClassLabel": ("class_label_feature", "classLabel"),
    "Text": ("text_feature", "text"),
    "Tensor": ("tensor_feature", "tensor"),
    "Sequence": ("sequence_feature", "sequence"),
}


def _wrap(name: str, **content: Any) -> dict[str, Any]:
    """Returns the message of a feature of a class of TFDS."""
    file, field = _CLASSES[name]
    return {
        "pythonClassName": f"tensorflow_datasets.core.features.{file}.{name}",
        field: content,
    }


def _read_shapes(described: Described) -> tuple[list[int] | None, dict[str, int]]:
    """Returns the shapes that the index shows.

    Returns:
        (height, width, channels) of the images, -1 for any; None for pixels without an encoding.
        And the lengths of the features that are lists: -1 when records differ, as where an input
        column has an empty cell.
    """
    dataset = described.dataset
    seen: dict[str, set[Any]] = defaultdict(set)
    incomplete: set[str] = set()
    is_annotated = True
    for _, tables in described.read_index(("label", *_SIZES)):
        for table in tables:
            for name in _SIZES:
                seen[name].update(pc.unique(table[name]).to_pylist())
            is_annotated &= not table["label"].null_count
            if "extra" in table.column_names:
                columns = zip(table["extra"].type, table["extra"].flatten(), strict=True)
                incomplete |= {field.name for field, column in columns if column.null_count}
    *size, channels = (
        each.pop() if len(each) == 1 else _ANY for each in (seen[name] for name in _SIZES)
    )
    # Gray images among those with colors are decoded to three channels.
    is_raw = dataset.options["encoding"] == RAW_ENCODING
    shape = None if is_raw else [*size, 3 if channels == _ANY else channels]
    lists = {name: _ANY for name in dataset.features if name in incomplete}
    kind = find_kind(dataset.target.kind)
    length = len(dataset.target.names) if is_annotated else 0
    return shape, lists | dict.fromkeys(kind.lists, length or _ANY)
