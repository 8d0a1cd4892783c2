"""The checks that a dataset must pass, and the effect of each finding on a run."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

from darkroom.dataset.splits import SPLITS, name_split
from darkroom.errors import UsageError
from darkroom.options.checks import DEFAULT_MAX_REJECTS
from darkroom.options.fields import check_fields, document, option
from darkroom.runtime.text import suggest
from darkroom.targets.checks import list_all_checks

FAIL, WARN, OFF = "fail", "warn", "off"
# Of what is not judged.
INFO = "info"
POLICIES = (FAIL, WARN, OFF)

VALIDATION_POLICIES: Mapping[str, str] = {
    "rejects": FAIL,
    "leakage": FAIL,
    "group_leakage": FAIL,
    "label_conflicts": FAIL,
    "duplicates": WARN,
    "near_leakage": WARN,
    "near_conflicts": WARN,
    "near_duplicates": WARN,
    "suspect_labels": WARN,
    "drift": WARN,
    "location_data": WARN,
    "quality": WARN,
    "missing_splits": FAIL,
    "missing_classes": WARN,
    "small_classes": WARN,
    "unknown_labels": FAIL,
    "similar_labels": WARN,
    "anomalies": FAIL,
    **{check.name: check.policy for check in list_all_checks()},
}
CHECK_NAMES = tuple(VALIDATION_POLICIES)


def describe_default_policies() -> str:
    """Returns the default policies, for the help of a command."""
    checks = {
        policy: [check for check, found in VALIDATION_POLICIES.items() if found == policy]
        for policy in (FAIL, WARN)
    }
    return "; ".join(f"{policy} for {', '.join(names)}" for policy, names in checks.items())


@document
@dataclass(frozen=True, kw_only=True)
class ValidationFields:
    """The checks, and how strict they are."""

    policies: Mapping[str, str] = option(
        {},
        "Effect of each check's findings on the run: fail, warn or off.",
        group="checks",
        metavar="CHECK=POLICY",
        shown=describe_default_policies(),
        flag="--policy",
        runtime=True,
        more="A check that is not named keeps its default: "
        "`darkroom.options.validation.VALIDATION_POLICIES`.",
    )
    max_rejects: float = option(
        DEFAULT_MAX_REJECTS,
        "Share of rejected rows that is allowed.",
        group="checks",
        least=0,
        most=1,
        metavar="0-1",
        runtime=True,
    )
    required_splits: tuple[str, ...] = option(
        ("train", "eval"),
        "Splits that must have records.",
        group="checks",
        metavar="SPLIT",
        flag="--required-split",
    )
    min_class_images: int = option(
        10,
        "Number of training images that every class needs.",
        group="checks",
        least=0,
        runtime=True,
    )
    expected_labels: tuple[str, ...] | None = option(
        None,
        "The only labels that may occur.",
        group="checks",
        metavar="LABEL",
        shown="those of the label map",
        flag="--expected-label",
    )
    baseline: str | None = option(
        None,
        "An earlier dataset, from which this one must not differ: the check drift.",
        group="checks",
        metavar="RECORDS",
    )
    gallery: bool = option(
        False,
        "Write gallery.html, too: findings and images to look through, and to decide about.",
        group="checks",
    )


@document
@dataclass(frozen=True, kw_only=True)
class ValidationOptions(ValidationFields):
    """The checks, and how strict they are; checked when created.

    After construction `policies` has every check.
    """

    def __post_init__(self) -> None:
        """Checks the values and fills in the default policies.

        Raises:
            UsageError: A value is wrong.
        """
        check_fields(self)
        check_policies(self.policies, CHECK_NAMES)
        required = tuple(dict.fromkeys(map(name_split, self.required_splits)))
        object.__setattr__(self, "required_splits", required)
        for split in self.required_splits:
            _check_choice("required split", split, SPLITS)
        if self.baseline is not None and self.policies.get("drift") == OFF:
            raise UsageError(
                "A baseline is compared by the check drift, which is off.",
                "Leave out the baseline, or the policy of drift.",
            )
        object.__setattr__(self, "policies", {**VALIDATION_POLICIES, **self.policies})

    def to_json(self) -> str:
        """Returns the options as JSON text, the form in which a pipeline carries them."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> ValidationOptions:
        """Returns the options that `to_json` wrote."""
        return cls(**json.loads(text))


def check_policies(policies: Mapping[str, str], known: Collection[str]) -> None:
    """Checks the names of checks and of their policies.

    Raises:
        UsageError: One is unknown.
    """
    for check, policy in policies.items():
        _check_choice("check", check, known)
        _check_choice(f"policy of {check}", policy, POLICIES)


def _check_choice(what: str, value: str, choices: Collection[str]) -> None:
    if value not in choices:
        hint = suggest(str(value), choices)
        if value == "accounting":
            hint = "Rows that are not accounted for always stop a run."
        raise UsageError(f"Unknown {what} {value!r}, expected one of {', '.join(choices)}.", hint)
