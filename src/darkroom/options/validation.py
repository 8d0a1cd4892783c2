"""Which checks a dataset must pass, and what each finding does to a run."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from darkroom.dataset.splits import SPLITS
from darkroom.errors import UsageError
from darkroom.options.checks import check_count

FAIL, WARN, OFF = "fail", "warn", "off"
POLICIES = (FAIL, WARN, OFF)

DEFAULT_POLICIES: Mapping[str, str] = {
    "rejects": FAIL,
    "leakage": FAIL,
    "label_conflicts": FAIL,
    "duplicates": WARN,
    "missing_splits": FAIL,
    "missing_classes": WARN,
    "small_classes": WARN,
    "unknown_labels": FAIL,
    "similar_labels": WARN,
    "anomalies": FAIL,
}
CHECKS = tuple(DEFAULT_POLICIES)


@dataclass(frozen=True)
class ValidationOptions:
    """What is judged, and how strictly.

    Attributes:
        policies: Check name to "fail", "warn" or "off"; what is not named keeps its default, so
            after construction every check is in it.
        max_reject_fraction: Largest share of rejected rows that is no finding, 0 to 1.
        required_splits: Splits that must have records.
        min_class_images: Fewest training records that a class needs.
        expected_labels: The only labels that may occur; None for those of the label map.

    Raises:
        UsageError: A value is not one of these.
    """

    policies: Mapping[str, str] = field(default_factory=dict)
    max_reject_fraction: float = 0.01
    required_splits: tuple[str, ...] = ("train", "eval")
    min_class_images: int = 10
    expected_labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Checks the values and fills in the default policies."""
        if not isinstance(self.policies, Mapping):
            message = f"policies is {self.policies!r:.80}, expected a policy by check."
            raise UsageError(message, 'As in {"leakage": "warn"}.')
        for check, policy in self.policies.items():
            _check_choice("check", check, CHECKS)
            _check_choice(f"policy of {check}", policy, POLICIES)
        for split in self.required_splits:
            _check_choice("required split", split, SPLITS)
        if not 0 <= self.max_reject_fraction <= 1:
            message = f"max_reject_fraction is {self.max_reject_fraction!r}, expected 0 to 1."
            raise UsageError(message, "0.01 allows one rejected row in a hundred.")
        check_count("min_class_images", self.min_class_images, 0)
        object.__setattr__(self, "policies", {**DEFAULT_POLICIES, **self.policies})

    def to_json(self) -> str:
        """Returns the options as JSON text, the form in which a pipeline carries them."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> ValidationOptions:
        """Returns the options that `to_json` wrote."""
        values = json.loads(text)
        for name in ("required_splits", "expected_labels"):
            values[name] = None if values[name] is None else tuple(values[name])
        return cls(**values)


def _check_choice(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        near = difflib.get_close_matches(str(value), choices, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else ""
        if value == "accounting":
            hint = "Rows that are not accounted for always stop a run."
        raise UsageError(f"Unknown {what} {value!r}, expected one of {', '.join(choices)}.", hint)
