"""Photographs in which near copies, leaks, wrong labels and damage are planted, by a seed.

What is planted is known, so tools can be compared by what they find of it and what else they list.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Sequence
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


class Fault(NamedTuple):
    """What is wrong with one photograph, or with a copy of it.

    Attributes:
        kind: Its name.
        edit: Makes the bytes of a faulty image; those of the photograph without it.
        is_copy: The photograph stays as it is, and a copy is faulty.
        other_split: The faulty image is in another split than the photograph was.
        other_label: It has another label, at random.
    """

    kind: str
    edit: Callable[[Image.Image], bytes] | None
    is_copy: bool = True
    other_split: bool = False
    other_label: bool = False


FAULTS = [
    *(
        Fault(kind, COPIES[kind], other_split=number % _OTHER_SPLIT == 0)
        for number, kind in enumerate(name for name in COPIES for _ in range(EACH))
    ),
    *(Fault(kind, DAMAGE[kind], is_copy=False) for kind in DAMAGE for _ in range(DAMAGED)),
]


class Planted(NamedTuple):
    """What is planted in a folder, by the names of files.

    Attributes:
        listed: A CSV of all images, with label and split.
        labels: The label of each image in that list.
        splits: Its split.
        copies: Of each copy its original and kind.
        wrong: Images whose label is wrong, with the right one.
        damaged: What is wrong with some photographs.
    """

    listed: Path
    labels: dict[str, str]
    splits: dict[str, str]
    copies: dict[str, tuple[str, str]]
    wrong: dict[str, str]
    damaged: dict[str, str]

    def is_leak(self, copy: str) -> bool:
        """Says whether a copy is in another split than its original."""
        return self.splits[copy] != self.splits[self.copies[copy][0]]


def plant(
    photographs: Path,
    folder: Path,
    seed: int = 0,
    copies_follow: bool = False,
    *,
    faults: Sequence[Fault] = FAULTS,
    num_wrong: int = WRONG,
) -> Planted:
    """Writes photographs, each with one of the faults until there are no more.

    By default these are 20 near copies of each kind, a third of them in another split than the
    original, and 10 damaged photographs of each kind.

    Args:
        photographs: Folders of JPEGs by label.
        folder: An empty folder.
        seed: For all choices.
        copies_follow: The label was wrong before there was a copy, which has the same one then.
            Else the two sides of a pair are labelled each on its own.
        faults: What is planted.
        num_wrong: How many labels besides are changed at random, of photographs and copies that
            are not damaged.
    """
    draw, files = random.Random(seed), list_photographs(photographs)
    draw.shuffle(files)
    names = sorted({path.parent.name for path in files})
    labels, splits, copies, wrong, damaged = {}, {}, {}, dict[str, str](), {}

    def mislabel(family: list[str]) -> None:
        right = labels[family[0]]
        wrong.update(dict.fromkeys(family, right))
        label = draw.choice([name for name in names if name != right])
        labels.update(dict.fromkeys(family, label))

    for number, path in enumerate(files):
        name, data = f"{number}.jpg", path.read_bytes()
        labels[name], splits[name] = path.parent.name, draw.choice(["TRAIN"] * 4 + ["TEST"])
        (folder / name).write_bytes(data)
        if number >= len(faults):
            continue
        fault, faulty = faults[number], name
        if fault.is_copy:
            faulty = f"{number}-copy.jpg"
            copies[faulty] = name, fault.kind
            labels[faulty], splits[faulty] = labels[name], splits[name]
        elif fault.edit:
            damaged[name] = fault.kind
        if fault.edit:
            data = fault.edit(Image.open(path).convert("RGB"))
        (folder / faulty).write_bytes(data)
        if fault.other_split:
            splits[faulty] = "TRAIN" if splits[faulty] == "TEST" else "TEST"
        if fault.other_label:
            mislabel([faulty])
    families = {name: [name] for name in labels if name not in copies and name not in damaged}
    for copy, (original, _) in copies.items():
        if copies_follow:
            families[original].append(copy)
        else:
            families[copy] = [copy]
    for family in draw.sample([*families.values()], len(families)):
        if len(family) <= num_wrong:
            num_wrong -= len(family)
            mislabel(family)
    listed = folder / "list.csv"
    lines = [f"{name},{labels[name]},{splits[name]}" for name in labels]
    listed.write_text("\n".join(["image_uri,label,split", *lines]))
    return Planted(listed, labels, splits, copies, wrong, damaged)
