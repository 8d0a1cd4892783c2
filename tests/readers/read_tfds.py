"""Prints SHA-256, label and split of each record that TFDS reads."""

import hashlib
import json
import sys

import tensorflow_datasets as tfds

builder = tfds.builder_from_directory(sys.argv[1])
features = builder.info.features
image, target = builder.info.supervised_keys or ("image/encoded", None)
is_encoded = isinstance(features[image], tfds.features.Image)
decoders = {image: tfds.decode.SkipDecoding()} if is_encoded else None


OBJECTS = ("class/text", "bbox/xmin", "bbox/ymin", "bbox/xmax", "bbox/ymax")


def list_objects(record):
    columns = (record[f"image/object/{name}"].tolist() for name in OBJECTS)
    return [[text.decode(), *box] for text, *box in zip(*columns, strict=True)]


def find_label(record):
    if target is None:
        return list_objects(record)
    value = record[target]
    if target == "image/target":
        return value.tolist()
    if value.ndim:
        return [features[target].feature.names[number] for number in value]
    return features[target].names[value]


for split, info in builder.info.splits.items():
    count = 0
    for record in tfds.as_numpy(builder.as_dataset(split=split, decoders=decoders)):
        digest = hashlib.sha256(record[image]).hexdigest()
        print(json.dumps([digest, find_label(record), split]))
        count += 1
    assert count == info.num_examples
    decoded = tfds.as_numpy(builder.as_dataset(split=split, as_supervised=target is not None))
    for each in decoded:
        pixels = each[0] if target is not None else each[image]
        assert not is_encoded or pixels.shape[1:] == (7, 3)
