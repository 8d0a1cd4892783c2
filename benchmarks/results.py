"""How much it costs to score results of a detector, beside the library alone.

    python benchmarks/results.py [--images 5000] [--results 100] [--rounds 3] [--python PYTHON]

A dataset of small drawings, with seven objects an image in 80 classes, and results around them.
Both get the same files; pycocotools and faster-coco-eval must be installed, in any environment
whose Python --python names. Times are processor seconds of whole processes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import darkroom

SIDE, CLASSES, OBJECTS = 96, 80, 7
LIBRARIES = {
    "pycocotools": "from pycocotools.coco import COCO\n"
    "from pycocotools.cocoeval import COCOeval as Evaluation\n",
    "faster-coco-eval": "from faster_coco_eval import COCO, COCOeval_faster as Evaluation\n",
}
SCRIPT = """
import sys
truth = COCO(sys.argv[1])
scored = Evaluation(truth, truth.loadRes(sys.argv[2]), "bbox")
scored.evaluate()
scored.accumulate()
scored.summarize()
"""


def write_files(folder: Path, num_images: int, num_results: int) -> None:
    """Writes images, their annotations, and results around some of their objects."""
    rng = np.random.default_rng(0)
    images, objects, results = [], [], []
    for number in range(1, num_images + 1):
        name = f"{number:06}.png"
        pixels = rng.integers(0, 256, (3, 3, 3), np.uint8)
        Image.fromarray(pixels).resize((SIDE, SIDE), 0).save(folder / name)
        images.append({"id": number, "file_name": name, "width": SIDE, "height": SIDE})
        sizes = np.exp(rng.uniform(1.5, 4.2, (OBJECTS, 2)))
        boxes = np.concatenate([rng.uniform(0, SIDE - sizes), sizes], 1)
        classes = rng.integers(1, CLASSES + 1, OBJECTS)
        for box, label in zip(boxes.tolist(), classes.tolist(), strict=True):
            found = {"id": len(objects) + 1, "image_id": number, "category_id": label, "bbox": box}
            objects.append({**found, "area": box[2] * box[3], "iscrowd": 0})
        chosen = rng.integers(0, OBJECTS, num_results)
        moved = boxes[chosen] + rng.normal(0, 0.15, (num_results, 4)) * np.tile(sizes[chosen], 2)
        moved[:, 2:] = abs(moved[:, 2:])
        is_right = rng.random(num_results) < 0.7
        said = np.where(is_right, classes[chosen], rng.integers(1, CLASSES + 1, num_results))
        for box, label, score in zip(
            moved.round(2).tolist(), said.tolist(), rng.random(num_results).tolist(), strict=True
        ):
            results.append({"image_id": number, "category_id": label, "bbox": box, "score": score})
    categories = [{"id": number, "name": f"c{number:02}"} for number in range(1, CLASSES + 1)]
    listed = {"images": images, "annotations": objects, "categories": categories}
    (folder / "annotations.json").write_text(json.dumps(listed))
    (folder / "results.json").write_text(json.dumps(results))


def measure(command: list[str]) -> float:
    """Returns the processor seconds of a command."""
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before[2] - before[3]


def main() -> None:
    """Measures each in turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--results", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default=sys.executable, help="has the libraries")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, given.images, given.results)
        records = folder / "records"
        darkroom.convert(folder / "annotations.json", records, split_ratios="100/0/0")
        files = [f"{folder}/annotations.json", f"{folder}/results.json"]
        ours = [sys.executable, "-m", "darkroom.cli", "evaluate", "--results", files[1]]
        ours += [str(records), "--split", "train"]
        commands = {"evaluate": ours, "with the page": [*ours, "--report", f"{folder}/report"]}
        for library, imports in LIBRARIES.items():
            commands[library] = [given.python, "-c", imports + SCRIPT, *files]
        seconds: dict[str, list[float]] = {what: [] for what in commands}
        for _ in range(given.rounds):
            for what, command in commands.items():
                seconds[what].append(measure(command))
        for what, values in seconds.items():
            print(f"{what:20} {statistics.median(values):7.2f} s  {sorted(values)}")


if __name__ == "__main__":
    main()
