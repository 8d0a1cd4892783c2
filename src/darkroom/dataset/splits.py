"""Splits: the names that sources use, our names, and the split of a row without one.

All that sources say of splits in words is judged here: in a cell by `parse_split`, in the name of a
folder by `find_split`, in the names of lists by `find_splits`. `mention_split` only says what a
name may mean.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darkroom.dataset.keys import hash_split
from darkroom.errors import UsageError

TRAIN, EVAL, TEST = "train", "eval", "test"
SPLITS = (TRAIN, EVAL, TEST)
UNASSIGNED = ""
# The input column with the numbers of folds.
FOLD = "fold"

_NAMES = {
    "train": TRAIN,
    "training": TRAIN,
    "validation": EVAL,
    "validate": EVAL,
    "valid": EVAL,
    "val": EVAL,
    "eval": EVAL,
    "evaluation": EVAL,
    "dev": EVAL,
    "test": TEST,
    "testing": TEST,
    "unassigned": UNASSIGNED,
    "": UNASSIGNED,
}
# Capitals begin a word, too, as in TrainImages. A year belongs to it, as in val2017.
_WORDS = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+(?![a-z]))(?:(?:19|20)\d\d(?!\d))?")
_YEAR = re.compile(r"\d+$")
# What tools write beside the split into the name of a list.
_BESIDE = frozenset(
    (
        *("annotation", "annotations", "coco", "csv", "data", "dataset", "default", "images"),
        *("instances", "json", "label", "labels", "list", "of", "set", "split", "voc", "yolo"),
    )
)


def parse_split(text: str) -> str | None:
    """Returns the split that `text` names: '' for an unassigned row, None for an unknown name.

    Knows AutoML Vision's names (TRAIN, VALIDATION, TEST, UNASSIGNED), Vertex AI's (training,
    validation, test) and the common short forms, in any letter case.
    """
    return _NAMES.get(text.strip().lower())


def _parse_word(word: str) -> str:
    return parse_split(_YEAR.sub("", word)) or ""


def mention_split(*names: str) -> str:
    """Returns the first word in some names that means a split, as train2017; empty for none.

    It is evidence, as of my_test_images. Whether a name means a split, others say.
    """
    words = (word for name in names for word in _WORDS.findall(name))
    return next(filter(_parse_word, words), "")


def find_split(path: str) -> str | None:
    """Returns the split that the first such folder of a path means; None for none.

    It has the name of a split and no other, as `train`, `val2017` and `split=train`.
    """
    names = (part.strip().removeprefix("split=") for part in path.split("/"))
    found = (parse_split(_YEAR.sub("", name)) for name in names if _WORDS.fullmatch(name))
    return next((split for split in found if split is not None), None)


def find_splits(paths: Sequence[str]) -> list[str]:
    """Returns the split that the path of each list of a source means; empty for none.

    The name of a list means a split if it is like others that mean other splits, as a_train.csv
    and a_val.csv, or as tools write it, as instances_train2017.json. Else a folder around it does.

    Args:
        paths: All of them, relative to the place that the user named.
    """
    names = [_WORDS.findall(posixpath.splitext(posixpath.basename(path))[0]) for path in paths]
    said = [[split for word in words if (split := _parse_word(word))] for words in names]
    beside = [[word.lower() for word in words if not _parse_word(word)] for words in names]
    is_one_form = len({*map(tuple, beside)}) == 1 and {*map(len, said)} == {1}
    are_alike = is_one_form and len({*map(tuple, said)}) > 1
    splits = []
    for path, found, rest in zip(paths, said, beside, strict=True):
        is_named = len(found) == 1 and (are_alike or (rest and _BESIDE.issuperset(rest)))
        splits.append(found[0] if is_named else find_split(posixpath.dirname(path)) or UNASSIGNED)
    return splits


def compare_lists(lists: Mapping[str, Collection[str]]) -> tuple[list[str], list[str]]:
    """Tells which lists of the images of splits count, as some recipes name one list twice.

    Args:
        lists: The images of each list, by its name; of equal ones the first counts.

    Returns:
        The names of those that count, and in words where lists are equal or have images in common.
    """
    sets = {name: frozenset(images) for name, images in lists.items()}
    kept: list[str] = []
    remarks: list[str] = []
    for name, images in sets.items():
        if same := next((each for each in kept if images and sets[each] == images), None):
            remarks.append(f"{name} names the images of {same}, which are read once")
            continue
        common = ((other, len(images & sets[other])) for other in kept)
        remarks += [
            f"{other} and {name} both name {count:,} images" for other, count in common if count
        ]
        kept.append(name)
    return kept, remarks


def list_below(paths: Sequence[str]) -> list[str]:
    """Returns paths of files from the folder on that all of them are in."""
    parts = [path.split("/") for path in paths]
    depth = len(posixpath.commonprefix([folders for *folders, _ in parts]))
    return ["/".join(each[depth:]) for each in parts]


def name_split(name: Any) -> Any:
    """Returns our name of a split that an option names in another way; other values as they are."""
    return (parse_split(name) or name) if isinstance(name, str) else name


def known_names() -> str:
    """Returns the names that `parse_split` knows, for messages."""
    return ", ".join(name.upper() for name in _NAMES if name) + " or an empty cell"


@dataclass(frozen=True)
class SplitRatios:
    """Shares of the splits among unassigned rows.

    Attributes:
        train: Share of `train`; the three shares add up to one.
        eval: Share of `eval`.
        test: Share of `test`.
    """

    train: float = 0.8
    eval: float = 0.1
    test: float = 0.1

    def __post_init__(self) -> None:
        """Checks the shares.

        Raises:
            UsageError: A share is negative, or they do not add up to one.
        """
        shares = self.as_tuple()
        if min(shares) < 0 or not math.isclose(sum(shares), 1.0, abs_tol=1e-6):
            raise UsageError(
                f"Split ratios must be three shares that add up to 1, got {shares}.",
                "Give train, eval and test, as in 80/10/10.",
            )

    def as_tuple(self) -> tuple[float, float, float]:
        """Returns the shares in the order train, eval, test."""
        return (self.train, self.eval, self.test)

    @classmethod
    def parse(cls, text: str) -> SplitRatios:
        """Returns the ratios that `text` names, as in `80/10/10` or `0.8,0.1,0.1`.

        Raises:
            UsageError: `text` is not three numbers, or they are not shares.
        """
        try:
            numbers = [float(part) for part in text.replace(",", "/").split("/")]
        except ValueError:
            numbers = []
        is_percent = math.isclose(sum(numbers), 100)
        if len(numbers) != 3 or not (is_percent or math.isclose(sum(numbers), 1, abs_tol=1e-6)):
            raise UsageError(
                f"Split ratios are three numbers that add up to 100 (or 1), got {text!r}.",
                "Give the shares of train, eval and test, as in 80/10/10.",
            )
        return cls(*(number / (100 if is_percent else 1) for number in numbers))


def assign_split(key: str, seed: int, ratios: SplitRatios) -> str:
    """Returns the split of an unassigned row, which depends only on its key and the seed."""
    fraction = hash_split(key, seed)
    if fraction < ratios.train:
        return TRAIN
    # Compared from 1.0 downwards, so that rounding does not leave a gap before 1.0.
    return TEST if ratios.test > 0 and fraction >= 1.0 - ratios.test else EVAL
