"""Checks that make sense for one kind of target only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from darkroom.targets.kind import KINDS

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


class Found(NamedTuple):
    """What a check finds in some rows of an index.

    Attributes:
        total: How many faults.
        ranked: Some of them as rows of a finding, each with a number: the highest comes first.
    """

    total: int
    ranked: Sequence[tuple[float, Mapping[str, Any]]]


class TargetCheck(NamedTuple):
    """A check of a dataset, by SQL over its index.

    Attributes:
        name: Its name, of which users choose a policy.
        policy: The default: `fail`, `warn` or `off`.
        title: What it looks for.
        sql: Gives a row for each fault, in order. It reads the views `records`, with what images
            are labelled with as text in `label` and as a list in `label_list`; `named`, with a row
            for each label of an image; `lost`, with a row for each object that was rejected alone;
            and `fields`, with `number` (from 1) and `name` of each number of the dataset. A column
            `detail` is for people.
        message: What was found, with `{count}`.
        hint: What to do.
        ask: Gives the rows of the faults where SQL alone does not. Else None.
        find: Finds the faults in rows of the index where SQL would compare too much; it gets the
            columns `row`, `uri`, `split`, `label`, `source_width` and `source_height`, some rows at
            a time. Else None.
        by_results: Whether results of a detector say it, without which it is off.
    """

    name: str
    policy: str
    title: str
    sql: str
    message: str
    hint: str
    find: Callable[[pa.Table], Found] | None = None
    ask: Callable[[duckdb.DuckDBPyConnection], Sequence[Mapping[str, Any]]] | None = None
    by_results: bool = False


def list_checks(kind: str) -> tuple[TargetCheck, ...]:
    """Returns the checks of a kind."""
    found: tuple[TargetCheck, ...] = import_module(f"darkroom.targets.{kind}.checks").CHECKS
    return found


def list_result_checks() -> tuple[str, ...]:
    """Returns the names of the checks that need results of a detector."""
    return tuple(check.name for check in list_all_checks() if check.by_results)


def list_all_checks() -> tuple[TargetCheck, ...]:
    """Returns the checks of all kinds."""
    return tuple(check for kind in KINDS for check in list_checks(kind))
