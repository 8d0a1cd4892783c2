"""How many images a second `darkroom embed` computes on a core, against the bare runtime.

    taskset -c 0 python benchmarks/features.py --photographs DIR [--images 512] [--pairs 3]

The bare runtime gets the same model and the same batches, decoded before. Both run in turn, and
processor time counts: of embed also that of records, decoding, cache and table. Models are
EfficientNet-Lite0 by TensorFlow, with the weights of the extra `pretrained`, and the same by ONNX
Runtime where tf2onnx is installed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import darkroom
from darkroom.conversion import embed as embedding
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.layout import Folders
from darkroom.features import compute
from darkroom.features.networks.network import Network
from darkroom.features.networks.opening import open_network
from darkroom.options.training import EFFICIENTNET_LITE

_BATCH = 32


def _read_batches(folder: str, size: tuple[int, int]) -> list[np.ndarray]:
    dataset = read_dataset(folder)
    records = compute._read_records(dataset, Folders.of_dataset(folder), range(dataset.written))
    views = [compute._decode(size, record) for _, record in records]
    return [np.stack(views[n : n + _BATCH]) for n in range(0, len(views), _BATCH)]


def _measure(name: str, network: Network, folder: str, scratch: str, pairs: int) -> None:
    embedding.open_network = lambda model: network
    batches = _read_batches(folder, network.image_size)
    count = sum(map(len, batches))
    network.compute(batches[0])
    bare, ours = [], []
    for number in range(pairs):
        started = time.process_time()
        for batch in batches:
            network.compute(batch)
        bare.append(time.process_time() - started)
        os.environ["DARKROOM_CACHE"] = os.path.join(scratch, f"{name}-{number}")
        started = time.process_time()
        found = darkroom.embed(folder)
        ours.append(time.process_time() - started)
        if found.computed != count:
            raise SystemExit(f"{found.computed} of {count} images were computed.")
    share = statistics.median(one / other for one, other in zip(bare, ours, strict=True))
    rates = [count / statistics.median(each) for each in (bare, ours)]
    print(f"{name}: {rates[0]:.1f} images/s bare, {rates[1]:.1f} by embed, {share:.3f}")


def _export_onnx(path: str) -> None:
    """Writes EfficientNet-Lite0 with a global pool as a model of ONNX."""
    import keras
    import tensorflow as tf
    import tf2onnx

    from darkroom.features.networks import efficientnet_lite

    network = efficientnet_lite.build_network((224, 224))
    efficientnet_lite.load_weights(network, efficientnet_lite.find_weights())
    pool = keras.layers.GlobalAveragePooling2D()
    graph = tf.function(
        lambda images: pool(network(tf.cast(images, tf.float32), training=False)),
        input_signature=[tf.TensorSpec((None, 224, 224, 3), tf.uint8)],
    )
    tf2onnx.convert.from_function(graph, graph.input_signature, opset=17, output_path=path)


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photographs", type=Path, required=True)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--pairs", type=int, default=3)
    arguments = parser.parse_args()
    files = sorted(arguments.photographs.rglob("*.jpg"))[: arguments.images]
    with tempfile.TemporaryDirectory() as scratch:
        table = os.path.join(scratch, "list.csv")
        Path(table).write_text("image_uri,label\n" + "".join(f"{file},a\n" for file in files))
        folder = os.path.join(scratch, "records")
        darkroom.convert(table, folder)
        pretrained = open_network(EFFICIENTNET_LITE)
        _measure("TensorFlow", pretrained, folder, scratch, arguments.pairs)
        path = os.path.join(scratch, "model.onnx")
        _export_onnx(path)
        _measure("ONNX Runtime", open_network(path), folder, scratch, arguments.pairs)


if __name__ == "__main__":
    sys.exit(main())
