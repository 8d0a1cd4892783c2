"""Prints SHA-256, label and split of each record that TFDS reads."""

import hashlib
import json
import sys

import tensorflow_datasets as tfds

builder = tfds.builder_from_directory(sys.argv[1])
features = builder.info.features
image, target = builder.info.supervised_keys
is_encoded = isinstance(features[image], tfds.features.Image)
decoders = {image: tfds.decode.SkipDecoding()} if is_encoded else None


def find_label(value):
    if target == "image/target":
        return value.tolist()
    if value.ndim:
        return [features[target].feature.names[number] for number in value]
    return features[target].names[value]


for split, info in builder.info.splits.items():
    count = 0
    for record in tfds.as_numpy(builder.as_dataset(split=split, decoders=decoders)):
        digest = hashlib.sha256(record[image]).hexdigest()
        print(json.dumps([digest, find_label(record[target]), split]))
        count += 1
    assert count == info.num_examples
    for pixels, _ in tfds.as_numpy(builder.as_dataset(split=split, as_supervised=True)):
        assert not is_encoded or pixels.shape[1:] == (7, 3)
