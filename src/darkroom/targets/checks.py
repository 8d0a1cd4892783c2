"""Checks that make sense for one kind of target only."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

KINDS = ("label", "labels", "numbers")


class TargetCheck(NamedTuple):
    """A check of a dataset, by SQL over its index.

    Attributes:
        name: Its name, of which users choose a policy.
        policy: The default: `fail`, `warn` or `off`.
        title: What it looks for.
        sql: Gives a row for each fault. It reads the view `records`, with what images are labelled
            with as text in `label` and as a list in `label_list`; `named`, with a row for each
            label of an image; and `fields`, with `number` (from 1) and `name` of each number of the
            dataset. A column `detail` is for people.
        message: What was found, with `{count}`.
        hint: What to do.
    """

    name: str
    policy: str
    title: str
    sql: str
    message: str
    hint: str


def list_checks(kind: str) -> tuple[TargetCheck, ...]:
    """Returns the checks of a kind."""
    found: tuple[TargetCheck, ...] = import_module(f"darkroom.targets.{kind}.checks").CHECKS
    return found


def list_all_checks() -> tuple[TargetCheck, ...]:
    """Returns the checks of all kinds."""
    return tuple(check for kind in KINDS for check in list_checks(kind))
