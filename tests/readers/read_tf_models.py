"""Prints the objects of each record that the decoder of TensorFlow's Model Garden reads.

The package of the decoder imports all tasks of vision, which need much more; the decoder does not.
"""

import importlib.util
import json
import pathlib
import sys
import types

import tensorflow as tf

[root] = importlib.util.find_spec("official").submodule_search_locations
for name in ("official.vision", "official.vision.dataloaders"):
    package = types.ModuleType(name)
    package.__path__ = [str(pathlib.Path(root, *name.split(".")[1:]))]
    sys.modules[name] = package
from official.vision.dataloaders.tf_example_decoder import TfExampleDecoder  # noqa: E402

decoder = TfExampleDecoder()
files = sorted(map(str, pathlib.Path(sys.argv[1]).glob("Split-*/*")))
for record in tf.data.TFRecordDataset(files):
    found = decoder.decode(record)
    height, width, _ = found["image"].shape
    assert (height, width) == (int(found["height"]), int(found["width"]))
    objects = {
        "boxes": found["groundtruth_boxes"].numpy().tolist(),
        "classes": found["groundtruth_classes"].numpy().tolist(),
        "is_crowd": found["groundtruth_is_crowd"].numpy().tolist(),
        "area": found["groundtruth_area"].numpy().tolist(),
    }
    # As the evaluation of its detectors does.
    number = tf.strings.to_number(found["source_id"], tf.int64)
    print(json.dumps([int(number), objects]))
