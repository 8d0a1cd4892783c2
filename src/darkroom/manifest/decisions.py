"""Applies what people decided to the rows of a list: `--decisions`.

A decision counts for an image with the very bytes that were seen, so these few images are read
here; those that an update knows to be unchanged are not. It counts for all rows of the image.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from darkroom.dataset.commit_fields import Decisions
from darkroom.dataset.schema import Schema
from darkroom.decisions.files import hash_files
from darkroom.decisions.lines import (
    ACTIONS,
    IGNORE,
    Decision,
    Label,
    read_decisions,
)
from darkroom.errors import DataError, RejectError
from darkroom.manifest.base import Base
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime import progress
from darkroom.runtime.text import format_count, list_first, make_visible
from darkroom.storage.database import create_view
from darkroom.targets.form import Form
from darkroom.targets.kind import Kind, find_kind

# In the column `ignored`, instead of keys: whatever is found about the image.
ALL_FINDINGS = "*"
_FIND_FILES = """
SELECT key, min(uri) FROM staged WHERE key IN (SELECT unnest(?::VARCHAR[])) GROUP BY key
"""
# What the base of an update says of an unchanged file that is stored as it is.
_FIND_KNOWN = """
SELECT staged.key, base_index.sha256
FROM staged JOIN taken USING (row) JOIN base_index ON base_index.key = staged.key
WHERE taken.shard IS NOT NULL AND changes = '' AND staged.key IN (SELECT unnest(?::VARCHAR[]))
"""
_COMBINE = f"""
CREATE TEMP TABLE decisions AS
SELECT key, bool_or(action = 'drop') AS is_dropped, any_value(split) AS split,
    any_value(label) AS label, string_agg(coalesce(other_key, '{ALL_FINDINGS}'), ' '
        ORDER BY other_key) FILTER (WHERE action = 'ignore') AS ignored
FROM chosen GROUP BY key
"""
# The rows of an image may have several keys: each follows its own one, where that is decided about.
_FIND_ROWS = """
CREATE TEMP TABLE decided AS
WITH named AS (SELECT DISTINCT key, uri FROM staged SEMI JOIN decisions USING (key))
SELECT row, min({'is_other': named <> key, 'named': named}).named AS named FROM (
    SELECT row, key, key AS named FROM staged SEMI JOIN named USING (key)
    UNION ALL SELECT row, staged.key, named.key FROM staged JOIN named USING (uri) WHERE uri <> ''
) GROUP BY row
"""
_ENTRIES = """
CREATE TEMP VIEW entries AS
SELECT included.* REPLACE (
    coalesce(decisions.split, included.split) AS split,
    coalesce(decisions.split, declared) AS declared,
    coalesce(decisions.label, included.label) AS label
){more}
FROM included LEFT JOIN decided USING (row) LEFT JOIN decisions ON decisions.key = decided.named
WHERE is_dropped IS NOT TRUE
"""
_COUNT_DROPPED = """
SELECT count(*) FILTER (WHERE is_dropped), count(*)
FROM included LEFT JOIN decided USING (row) LEFT JOIN decisions ON decisions.key = decided.named
"""


def apply_decisions(
    connection: duckdb.DuckDBPyConnection,
    options: ManifestOptions,
    schema: Schema,
    base: Base | None,
    scratch: str,
    named: str | None = None,
) -> tuple[Decisions | None, int]:
    """Creates the view `entries` of the rows of `included`, with what was decided about them.

    Where something is ignored, it has the column `ignored`: the keys of the images with which an
    image is in no finding, separated by spaces, or `ALL_FINDINGS`.

    Args:
        connection: Has the views `staged` and `included`, and with a base what `Base.match` makes.
        options: They name the file of decisions, if there is one.
        schema: The columns of the source.
        base: The dataset that is updated.
        scratch: A local folder.
        named: The file that the user named, which it was made of.

    Returns:
        What was applied, None without a file; and how many rows are dropped.

    Raises:
        DataError: A line is not a decision, or has an impossible label. Or all images are gone, or
            dropped.
        OSError: The file cannot be read, or a store fails.
    """
    path = options.decisions
    if path is None:
        connection.execute("CREATE TEMP VIEW entries AS SELECT * FROM included")
        return None, 0
    sha256, decisions = read_decisions(path)
    named = named or path
    hashes = _hash_images(connection, decisions.values(), has_base=base is not None)
    chosen: dict[int, Decision] = {}
    gone, changed = [], []
    for number, each in decisions.items():
        if lost := [name for key, _, name in each.images if key not in hashes]:
            gone += lost[:1]
        elif others := [name for key, seen, name in each.images if hashes[key] != seen]:
            changed += others[:1]
        else:
            chosen[number] = each
    if decisions and not hashes and not (base and base.planned):
        raise DataError(
            f"The source has none of the images that {named} decides about: {list_first(gone)}.",
            "The decisions are of another dataset. Or all these images are gone: then leave "
            "--decisions out (decisions= in Python).",
        )
    table = os.path.join(scratch, "chosen.parquet")
    pq.write_table(_make_table(chosen, options, schema, named), table)
    create_view(connection, "chosen", [table], scratch)
    for statement in (_COMBINE, _FIND_ROWS):
        connection.execute(statement)
    found = Counter(each.action for each in chosen.values())
    connection.execute(_ENTRIES.format(more=", ignored" if found[IGNORE] else ""))
    dropped, included = connection.execute(_COUNT_DROPPED).fetchall()[0]
    if dropped and dropped == included:
        raise DataError(
            f"The decisions in {named} drop all {format_count(dropped, 'row')} that can be used, "
            "so there is nothing to write.",
            "Leave the file out (--decisions, decisions= in Python), or take lines out of it.",
        )
    if changed:
        progress.warn(f"Not applied, because the images changed since: {list_first(changed)}.")
    if gone:
        progress.warn(f"Not applied, because the images are gone: {list_first(gone)}.")
    counts = {action: found[action] for action in ACTIONS}
    counts |= {"changed": len(changed), "gone": len(gone)}
    texts = [f"{name} {count:,}" for name, count in counts.items() if count]
    progress.note(f"Decisions: {', '.join(texts) or 'none'}.")
    return Decisions(sha256=sha256, counts=counts), int(dropped)


def _make_table(
    decisions: Mapping[int, Decision], options: ManifestOptions, schema: Schema, named: str
) -> pa.Table:
    """Returns decisions as rows, with labels as the column `label` of a manifest has them.

    Args:
        decisions: The decisions by the numbers of their lines.
        options: How a cell holds a label.
        schema: The columns of the source.
        named: The file that the user named.

    Raises:
        DataError: An image cannot get a label.
    """
    kind, form = find_kind(schema.target_kind), options.find_form(schema)
    rows = []
    for number, each in decisions.items():
        try:
            label = None if each.label is None else _parse_label(each.label, kind, form)
        except RejectError as error:
            where = f"{named}, line {number}"
            if named != options.decisions:  # Its line has many decisions.
                where = f"{named}, {make_visible(each.uri)}"
            raise DataError(
                f"{where}: the image cannot get this label: {error.detail}.",
                "Correct the line, or take it out.",
            ) from error
        rows.append({**vars(each), "label": label})
    texts = [(name, pa.string()) for name in ("key", "action", "split", "other_key")]
    return pa.Table.from_pylist(rows, schema=pa.schema([*texts, ("label", kind.column)]))


def _hash_images(
    connection: duckdb.DuckDBPyConnection, decisions: Iterable[Decision], *, has_base: bool
) -> dict[str, str | None]:
    """Returns the SHA-256 of the files of the images that are there, by their keys."""
    keys = list({key for each in decisions for key, _, _ in each.images})
    known = dict(connection.execute(_FIND_KNOWN, [keys]).fetchall()) if has_base else {}
    found = dict(connection.execute(_FIND_FILES, [keys]).fetchall())
    # An image without a file has no hash.
    unread = {key: uri for key, uri in found.items() if uri and key not in known}
    read = zip(unread, hash_files([(uri, None) for uri in unread.values()]), strict=True)
    return {**dict.fromkeys(found), **known, **dict(read)}


def _parse_label(label: Label, kind: Kind, form: Form) -> Any:
    """Returns a label as the column `label` has it.

    Raises:
        RejectError: No image of the source can have it.
    """
    if kind.names is None or not form.columns:
        raise RejectError("bad_label", "the source has no labels")
    if not pa.types.is_list(kind.column):
        if not isinstance(label, str):
            raise RejectError("multi_label", "an image has one label, and this is a list")
        return kind.parse([label], form)
    cell = [label] if isinstance(label, str) else [*label]
    return kind.parse([cell], replace(form, separator=form.separator or ""))
