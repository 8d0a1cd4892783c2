"""Photographs in which near copies, leaks, wrong labels and damage are planted, by a seed.

What is planted is known, so tools can be compared by what they find of it and what else they list.
"""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import NamedTuple

from near_copies import COVERS, EDITS, list_photographs
from PIL import Image, ImageEnhance, ImageFilter

WRONG = 40
EACH, DAMAGED, _OTHER_SPLIT = 20, 10, 3


def _save(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


COPIES = {**EDITS, **{name: COVERS[name] for name in ("text over it", "a logo in a corner")}}
DAMAGE = {
    "black": lambda image: _save(ImageEnhance.Brightness(image).enhance(0.03)),
    "blurred": lambda image: _save(image.filter(ImageFilter.GaussianBlur(8))),
    "tiny": lambda image: _save(image.resize((40, 40 * image.height // image.width))),
}


class Planted(NamedTuple):
    """What is planted in a folder, by the names of files.

    Attributes:
        listed: A CSV of all images, with label and split.
        labels: The label of each image in that list.
        splits: Its split.
        copies: Of each near copy its original and kind.
        wrong: Images whose label is wrong.
        damaged: What is wrong with some photographs.
    """

    listed: Path
    labels: dict[str, str]
    splits: dict[str, str]
    copies: dict[str, tuple[str, str]]
    wrong: set[str]
    damaged: dict[str, str]

    def is_leak(self, copy: str) -> bool:
        """Says whether a copy is in another split than its original."""
        return self.splits[copy] != self.splits[self.copies[copy][0]]


def plant(photographs: Path, folder: Path, seed: int = 0, copies_follow: bool = False) -> Planted:
    """Writes photographs, 20 near copies of each kind, and 10 damaged photographs of each kind.

    A third of the copies is in another split than the original. 40 labels of the list are changed
    at random, of photographs and copies that are not damaged.

    Args:
        photographs: Folders of JPEGs by label.
        folder: An empty folder.
        seed: For all choices.
        copies_follow: The label was wrong before there was a copy, which has the same one then.
            Else the two sides of a pair are labelled each on its own.
    """
    draw, files = random.Random(seed), list_photographs(photographs)
    draw.shuffle(files)
    labels, splits, copies, damaged = {}, {}, {}, {}
    kinds = [name for name in COPIES for _ in range(EACH)]
    problems = [name for name in DAMAGE for _ in range(DAMAGED)]
    for number, path in enumerate(files):
        name, image = f"{number}.jpg", Image.open(path).convert("RGB")
        labels[name], splits[name] = path.parent.name, draw.choice(["TRAIN"] * 4 + ["TEST"])
        data = path.read_bytes()
        if number < len(kinds):
            copy = f"{number}-copy.jpg"
            copies[copy] = name, kinds[number]
            (folder / copy).write_bytes(COPIES[kinds[number]](image))
            other = "TRAIN" if splits[name] == "TEST" else "TEST"
            labels[copy] = labels[name]
            splits[copy] = splits[name] if number % _OTHER_SPLIT else other
        elif number < len(kinds) + len(problems):
            damaged[name] = problems[number - len(kinds)]
            data = DAMAGE[damaged[name]](image)
        (folder / name).write_bytes(data)
    families = {name: [name] for name in labels if name not in copies and name not in damaged}
    for copy, (original, _) in copies.items():
        if copies_follow:
            families[original].append(copy)
        else:
            families[copy] = [copy]
    names, wrong = sorted({*labels.values()}), set[str]()
    for family in draw.sample([*families.values()], len(families)):
        if len(wrong) + len(family) <= WRONG:
            others = [label for label in names if label != labels[family[0]]]
            labels.update(dict.fromkeys(family, draw.choice(others)))
            wrong.update(family)
    listed = folder / "list.csv"
    lines = [f"{name},{labels[name]},{splits[name]}" for name in labels]
    listed.write_text("\n".join(["image_uri,label,split", *lines]))
    return Planted(listed, labels, splits, copies, wrong, damaged)
