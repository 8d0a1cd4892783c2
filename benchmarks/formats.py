"""How fast annotations of COCO are read, and how much memory that takes.

    python benchmarks/formats.py [--megabytes 500] [--order annotations] [--indent] [--marks]

The file is made from a seed: images with 0 to 14 objects, each with a box and a polygon, of 640
bytes on average. `--order annotations` writes the annotations before the images, `--indent` each
value on a line of its own, and `--marks` puts the text `},{` into attributes and into every third
segmentation, which then is RLE. The reader runs in a process of its own: its time is that of its
processor from the opening to the last row, and its memory the most of RssAnon above that before.
Bare is what msgspec alone takes for the same objects and images, read and decoded at once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

NUM_CLASSES = 80
MEAN_POINTS = 32
BYTES_OF_IMAGE = 4450


def write_coco(path: Path, num_images: int, order: str, *, indent: bool, marks: bool) -> int:
    """Writes a file of COCO; returns the number of its objects."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 15, num_images)
    step = 1 if indent else None
    parts = {
        "categories": ({"id": n, "name": f"class {n}"} for n in range(1, NUM_CLASSES + 1)),
        "images": (_make_image(number) for number in range(num_images)),
        "annotations": _make_objects(rng, counts, marks=marks),
    }
    names = ["categories", "annotations", "images"]
    with open(path, "w") as file:
        file.write('{"info": {"year": 2026}')
        for name in names if order == "annotations" else [names[0], *names[:0:-1]]:
            file.write(f', "{name}": [')
            for number, each in enumerate(parts[name]):
                file.write(", " * (number > 0) + json.dumps(each, indent=step))
            file.write("]")
        file.write("}")
    return int(counts.sum())


def _make_image(number: int) -> dict[str, object]:
    return {"id": 3 * number, "file_name": f"{number:012}.jpg", "width": 640, "height": 480}


def _make_objects(
    rng: np.random.Generator, counts: np.ndarray, *, marks: bool
) -> Iterator[dict[str, object]]:
    """Yields objects of images in no order, as in COCO proper."""
    images = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    for number, image in enumerate(images):
        x, y, width, height = (rng.random(4) * (300, 200, 300, 200) + 1).round(2)
        points = rng.random((rng.integers(4, 2 * MEAN_POINTS - 4), 2)) * (width, height) + (x, y)
        found: dict[str, object] = {
            "id": number,
            "image_id": 3 * int(image),
            "category_id": int(rng.integers(1, NUM_CLASSES + 1)),
            "segmentation": [points.round(2).ravel().tolist()],
            "area": round(width * height / 2, 2),
            "bbox": [x, y, width, height],
            "iscrowd": 0,
        }
        if marks:
            found["attributes"] = {"note": "},{", "parts": [{"a": 1}, {"b": "}, {"}]}
            if number % 3 == 0:
                found["segmentation"] = {"size": [480, 640], "counts": "},{" * 150}
        yield found


def measure(path: str) -> None:
    """Reads a file; prints objects, seconds of the processor, and megabytes."""
    from darkroom.manifest.formats.coco.source import CocoSource
    from darkroom.options.manifest import ManifestOptions
    from darkroom.runtime.process import collect_less_garbage

    options = ManifestOptions(image_dir=str(Path(path).parent))
    before, started, most, objects = _read_anonymous(), time.process_time(), 0.0, 0
    with collect_less_garbage():  # as a conversion does
        for row in CocoSource(path, options).rows():
            objects += len(row.values[-1]["objects"])
            if row.row % 1000 == 1:
                most = max(most, _read_anonymous())
    seconds = time.process_time() - started
    print(json.dumps([objects, seconds, most - before]))


def measure_bare(path: str) -> None:
    """Decodes a file by msgspec alone; prints as `measure` does."""
    import msgspec

    from darkroom.manifest.formats.coco.objects import CocoAnnotation

    arrays = [("images", list[dict[str, int | str]]), ("annotations", list[CocoAnnotation])]
    kind = msgspec.defstruct("File", arrays)
    before, started = _read_anonymous(), time.process_time()
    found = msgspec.json.decode(Path(path).read_bytes(), type=kind)
    seconds, most = time.process_time() - started, _read_anonymous()
    print(json.dumps([len(found.annotations), seconds, most - before]))


def _read_anonymous() -> float:
    """Returns the megabytes of this process that no file backs."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1000


_WAYS = {"darkroom": measure, "bare": measure_bare}


def main() -> None:
    """Makes a file, reads it, prints a row."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--order", choices=("images", "annotations"), default="images")
    parser.add_argument("--indent", action="store_true")
    parser.add_argument("--marks", action="store_true")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        how, path = arguments.measure
        _WAYS[how](path)
        return
    num_images = arguments.megabytes * 1_000_000 // BYTES_OF_IMAGE
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "instances.json"
        made = write_coco(
            path, num_images, arguments.order, indent=arguments.indent, marks=arguments.marks
        )
        Path(folder, f"{0:012}.jpg").touch()
        size = path.stat().st_size / 1e6
        print(f"{size:.0f} MB, {num_images:,} images")
        print(f"{'':10}{'objects':>10}{'CPU s':>8}{'objects/s':>11}{'RssAnon MB':>12}")
        for how in _WAYS:
            command = [sys.executable, __file__, "--measure", how, str(path)]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            objects, seconds, megabytes = json.loads(text)
            if objects != made:
                raise SystemExit(f"{made:,} objects were written, and {objects:,} read.")
            rate = objects / seconds
            print(f"{how:10}{objects:10,}{seconds:8.2f}{rate:11,.0f}{megabytes:12.1f}")


if __name__ == "__main__":
    main()
