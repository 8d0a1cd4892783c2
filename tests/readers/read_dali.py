"""Prints SHA-256, label and split of each record that DALI reads; its own index is the same."""

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from nvidia.dali import fn, pipeline_def, tfrecord

records = Path(sys.argv[1])
features = json.loads((records / "dataset.json").read_text())["features"]
(kind,) = json.loads((records / "dataset.json").read_text())["targets"].values()
TYPES = {
    "bytes": (tfrecord.string, ""),
    "int64": (tfrecord.int64, 0),
    "float": (tfrecord.float32, 0.0),
}
TARGET = "image/target" if kind["kind"] == "numbers" else "image/class/label"
labels = (records / "labels.txt").read_text("utf-8").splitlines()

kinds = {name: TYPES[features[name]["type"]] for name in ("image/encoded", TARGET)}
wanted = {
    "image/encoded": tfrecord.FixedLenFeature((), *kinds["image/encoded"]),
    TARGET: tfrecord.VarLenFeature(*kinds[TARGET]),
}


@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def make_pipeline(shards, indexes):
    found = fn.readers.tfrecord(path=shards, index_path=indexes, features=wanted)
    return found["image/encoded"], found[TARGET]


for folder in sorted(records.glob("Split-*")):
    split = folder.name.removeprefix("Split-")
    shards = sorted(map(str, folder.iterdir()))
    indexes = sorted(map(str, (records / "dali-index" / split).iterdir()))
    count = 0
    for shard, index in zip(shards, indexes, strict=True):
        with tempfile.TemporaryDirectory() as scratch:
            own = Path(scratch, "own.idx")
            tool = Path(sys.executable).with_name("tfrecord2idx")
            subprocess.run([sys.executable, str(tool), shard, str(own)], check=True)
            assert own.read_bytes() == Path(index).read_bytes()
            count += own.read_bytes().count(b"\n")
    pipeline = make_pipeline(shards, indexes)
    pipeline.build()
    for _ in range(count):
        image, target = (np.array(each.at(0)) for each in pipeline.run())
        values = target.reshape(-1).tolist()
        if TARGET == "image/class/label":
            values = [labels[number] for number in values]
        value = values if kind["kind"] != "label" else values[0]
        print(json.dumps([hashlib.sha256(image.tobytes()).hexdigest(), value, split]))
