"""Which planted faults of boxes the results of a detector show first.

    python benchmarks/planted_objects.py [ANNOTATIONS] [--planted 6] [--seeds 4]

ANNOTATIONS is a file of COCO beside its images; without one, sets of 128 drawings are made. Of its
objects, some lose their box, get another class, or are moved by a third to a half of their size.
A detector is simulated on the right objects: recall 0.75, 8 % jitter, 8 % wrong class, 0.7 false
results an image, and scores of right and wrong results that overlap (AUC 0.85). A fault counts if a
result of score 0.3 or more has IoU 0.5 with the right box, and its class; it is found if it is
among the first 3k rows of its finding, where k faults of a kind are planted.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import darkroom
from darkroom.targets.boxes.overlaps import compare_boxes

CHECKS = {"missing": "missing_boxes", "class": "wrong_classes", "shifted": "shifted_boxes"}
RECALL, JITTER, WRONG, FALSE, LEAST = 0.75, 0.08, 0.08, 0.7, 0.3
# Of two normal distributions of scores that are so far apart, the AUC is 0.85.
APART = 1.466
Coco = dict[str, Any]


def draw_set(folder: Path, rng: np.random.Generator) -> Coco:
    """Writes small drawings, and returns annotations like those of 128 images of COCO."""
    images, objects = [], []
    for number in range(1, 129):
        pixels = rng.integers(0, 256, (3, 4, 3), np.uint8)
        name, size = f"{number}.png", np.array([640, 480])
        Image.fromarray(pixels).resize((64, 48), 0).resize((640, 480), 0).save(folder / name)
        images.append({"id": number, "file_name": name, "width": 640, "height": 480})
        for _ in range(1 + rng.geometric(1 / 6.4)):
            sides = np.exp(rng.uniform(3, 5.8, 2))
            box = [*rng.uniform(0, size - sides), *sides]
            label = 1 + min(int(rng.exponential(8)), 39)
            objects.append({"image_id": number, "category_id": label, "bbox": box})
    categories = [{"id": number, "name": f"c{number:02}"} for number in range(1, 41)]
    return {"images": images, "annotations": objects, "categories": categories}


def detect(truth: Coco, rng: np.random.Generator) -> tuple[list[dict[str, Any]], float]:
    """Returns the results of a simulated detector, and the AUC of its scores."""
    labels = [each["id"] for each in truth["categories"]]
    results, logits, is_right = [], [], []

    def add(image: int, label: int, box: Any, *, right: bool) -> None:
        logits.append(rng.normal(APART if right else 0))
        is_right.append(right)
        score = 1 / (1 + np.exp(0.5 - logits[-1]))
        found = {"image_id": image, "category_id": label, "bbox": [*map(float, box)]}
        results.append({**found, "score": float(score)})

    for each in truth["annotations"]:
        if rng.random() < RECALL:
            left, top, width, height = each["bbox"]
            moved = rng.normal(0, JITTER, 4) * (width, height, width, height)
            is_wrong = rng.random() < WRONG
            label = int(rng.choice(labels)) if is_wrong else each["category_id"]
            box = np.maximum(np.array([left, top, width, height]) + moved, (-1e9, -1e9, 1, 1))
            add(each["image_id"], label, box, right=label == each["category_id"])
    for image in truth["images"]:
        size = np.array([image["width"], image["height"]])
        for _ in range(rng.poisson(FALSE)):
            sides = size * np.exp(rng.uniform(-3, -0.5, 2))
            box = [*rng.uniform(0, size - sides), *sides]
            add(image["id"], int(rng.choice(labels)), box, right=False)
    rank = np.argsort(np.argsort(logits))[np.array(is_right)]
    wrong = len(logits) - len(rank)
    return results, float((rank.sum() - len(rank) * (len(rank) - 1) / 2) / (len(rank) * wrong))


def plant(truth: Coco, count: int, rng: np.random.Generator) -> tuple[Coco, dict[str, list[Any]]]:
    """Returns the annotations with faults, and the right objects of each kind of fault."""
    sizes = {each["id"]: (each["width"], each["height"]) for each in truth["images"]}
    objects = [dict(each) for each in truth["annotations"] if not each.get("iscrowd")]
    chosen = rng.permutation(len(objects))[: 3 * count].tolist()
    planted = defaultdict(list)
    for place, number in enumerate(chosen):
        kind, each = [*CHECKS][place % 3], objects[number]
        planted[kind].append(dict(each))
        left, top, width, height = each["bbox"]
        if kind == "missing":
            objects[number] = {}
        elif kind == "class":
            others = [one["id"] for one in truth["categories"] if one["id"] != each["category_id"]]
            each["category_id"] = int(rng.choice(others))
        else:
            by = rng.uniform(0.33, 0.5, 2) * (width, height)
            across, down = sizes[each["image_id"]]
            right, below = left + width + by[0] <= across, top + height + by[1] <= down
            start = left + by[0] * (1 if right else -1), top + by[1] * (1 if below else -1)
            each["bbox"] = [*map(float, np.maximum(start, 0)), width, height]
    crowds = [each for each in truth["annotations"] if each.get("iscrowd")]
    listed = [{**each, "id": n} for n, each in enumerate([*filter(None, objects), *crowds], 1)]
    return {**truth, "annotations": listed}, planted


def is_about(one: Any, other: Any) -> bool:
    """Tells whether two boxes [left, top, width, height] have half in common."""
    boxes = np.array([one, other], float).T
    boxes[2:] += boxes[:2]
    return bool(compare_boxes(boxes[:, :1], boxes[:, 1:])[0] >= 0.5)


def find(rows: Any, truth: Coco, each: Any) -> list[int]:
    """Returns the places of the rows that show a fault."""
    image = next(one for one in truth["images"] if one["id"] == each["image_id"])
    name = next(one["name"] for one in truth["categories"] if one["id"] == each["category_id"])
    size = np.array([image["width"], image["height"]] * 2)
    return [
        place
        for place, row in enumerate(rows)
        if Path(row["uri"]).name == Path(image["file_name"]).name
        and row.get("suggested", row["label"]) == name
        and is_about((size * row["box"]) - np.array([0, 0, *(size * row["box"])[:2]]), each["bbox"])
    ]


def main() -> None:
    """Plants, detects and looks, a seed at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("annotations", nargs="?", type=Path)
    parser.add_argument("--planted", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=4)
    given = parser.parse_args()
    counts: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(4))
    for seed in range(given.seeds):
        rng = np.random.default_rng(seed)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            source = given.annotations.parent if given.annotations else folder
            truth = (
                json.loads(given.annotations.read_text())
                if given.annotations
                else draw_set(folder, rng)
            )
            results, auc = detect(truth, rng)
            listed, planted = plant(truth, given.planted, rng)
            (folder / "list.json").write_text(json.dumps(listed))
            (folder / "results.json").write_text(json.dumps(results))
            darkroom.convert(
                folder / "list.json", folder / "records", image_dir=source, max_rejects=1
            )
            off = dict.fromkeys(("near_duplicates", "near_leakage", "near_conflicts"), "off")
            report = darkroom.validate(
                folder / "records",
                results=folder / "results.json",
                annotations=folder / "list.json",
                policies=off,
            )
        rows = {each.check: each.rows for each in report.findings}
        print(f"seed {seed}: AUC {auc:.3f}, {len(results)} results")
        for kind, check in CHECKS.items():
            found, most = rows.get(check, ()), 3 * given.planted
            for each in planted[kind]:
                is_shown = any(
                    (one["image_id"], one["category_id"]) == (each["image_id"], each["category_id"])
                    and one["score"] >= LEAST
                    and is_about(one["bbox"], each["bbox"])
                    for one in results
                )
                places = find(found, truth, each) if is_shown else []
                chance = min(1, most / len(found)) if places else 0
                counts[kind] += (is_shown, bool(places), min(places, default=most) < most, chance)
            print(f"  {check}: {len(found)} rows")
    print("kind      shown  in the finding  in the first 3k  the same in a random order")
    for kind, (shown, there, first, chance) in [*counts.items(), ("all", sum(counts.values()))]:
        print(
            f"{kind:8}  {shown:5.0f}  {there / shown:14.2f}  {first / shown:15.2f}  "
            f"{chance / shown:15.2f}"
        )


if __name__ == "__main__":
    main()
