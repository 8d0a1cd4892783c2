"""Splits: the names that sources use, our names, and the split of a row without one."""

from __future__ import annotations

import math
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


def parse_split(text: str) -> str | None:
    """Returns the split that `text` names: '' for an unassigned row, None for an unknown name.

    Knows AutoML Vision's names (TRAIN, VALIDATION, TEST, UNASSIGNED), Vertex AI's (training,
    validation, test) and the common short forms, in any letter case.
    """
    return _NAMES.get(text.strip().lower())


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
