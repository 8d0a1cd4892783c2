"""What may change between two datasets, and the effect of each change on a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from darkroom.options.fields import check_fields, document, option
from darkroom.options.validation import FAIL, check_policies

DIFF_POLICIES: Mapping[str, str] = {
    "test_frozen": FAIL,
    "class_loss": FAIL,
    "test_to_train": FAIL,
}


@document
@dataclass(frozen=True, kw_only=True)
class DiffFields:
    """What may change between two datasets."""

    policies: Mapping[str, str] = option(
        {},
        "Effect of each finding on the run: fail, warn or off.",
        group="checks",
        metavar="CHECK=POLICY",
        shown=f"fail for {', '.join(DIFF_POLICIES)}",
        flag="--policy",
        runtime=True,
    )
    max_class_loss: float = option(
        0.1,
        "Share of its images that a class may lose.",
        group="checks",
        least=0,
        most=1,
        metavar="0-1",
        runtime=True,
    )


@document
@dataclass(frozen=True, kw_only=True)
class DiffOptions(DiffFields):
    """What may change between two datasets; checked when created.

    After construction `policies` has every check.
    """

    def __post_init__(self) -> None:
        """Checks the values and fills in the default policies.

        Raises:
            UsageError: A value is wrong.
        """
        check_fields(self)
        check_policies(self.policies, DIFF_POLICIES)
        object.__setattr__(self, "policies", {**DIFF_POLICIES, **self.policies})
