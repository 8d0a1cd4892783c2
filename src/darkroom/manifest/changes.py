"""Removes and changes rows of a list: those that `--exclude` lists, and as `--decisions` says.

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

from darkroom.dataset.commit import Decisions
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
from darkroom.manifest.exclusions import find_excluded
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime import progress
from darkroom.runtime.text import format_count, list_first, make_visible
from darkroom.storage.database import create_view
from darkroom.targets.form import Form
from darkroom.targets.kind import TargetKind, find_kind

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
_DECIDED = """
CREATE TEMP TABLE decided AS
WITH named AS (SELECT DISTINCT key, uri FROM staged SEMI JOIN decisions USING (key)),
rows AS (
    SELECT row, min({'is_other': named <> key, 'named': named}).named AS key FROM (
        SELECT row, key, key AS named FROM staged SEMI JOIN named USING (key)
        UNION ALL
        SELECT row, staged.key, named.key FROM staged JOIN named USING (uri) WHERE uri <> ''
    ) GROUP BY row
)
SELECT row, decisions.* EXCLUDE (key) FROM rows JOIN decisions USING (key)
"""
# Rows are removed before rows are compared, so those are in no conflict.
_REMOVED = """
CREATE TEMP TABLE removed AS
SELECT row FROM excluded UNION SELECT row FROM decided WHERE is_dropped
"""
_ENTRIES = """
CREATE TEMP VIEW entries AS
SELECT staged.* REPLACE (
    coalesce(decided.split, staged.split) AS split,
    coalesce(decided.split, declared) AS declared,
    coalesce(decided.label, staged.label) AS label
){more}
FROM (FROM staged ANTI JOIN removed USING (row)) AS staged LEFT JOIN decided USING (row)
"""
_COUNTS = "SELECT (SELECT count(*) FROM removed), (SELECT count(*) FROM staged)"


def change_rows(
    connection: duckdb.DuckDBPyConnection,
    options: ManifestOptions,
    schema: Schema,
    base: Base | None,
    scratch: str,
    named: str | None = None,
) -> tuple[int, Decisions | None]:
    """Creates the view `entries` of the rows of `staged`, without those that are removed.

    Where something is ignored, it has the column `ignored`: the keys of the images with which an
    image is in no finding, separated by spaces, or `ALL_FINDINGS`.

    Args:
        connection: Has the view `staged`, and with a base what `Base.match` makes.
        options: They name the list of exclusions, the file of decisions, or both.
        schema: The columns of the source.
        base: The dataset that is updated.
        scratch: A local folder.
        named: The file of decisions that the user named, which that of the options was made of.

    Returns:
        How many rows are removed; and the decisions that were applied, None without a file.

    Raises:
        DataError: A file is damaged, or has an impossible label. Or all images are gone, or
            removed.
        OSError: A file cannot be read, or a store fails.
    """
    if options.exclude is None:
        connection.execute("CREATE TEMP TABLE excluded (row BIGINT)")
    else:
        find_excluded(connection, options.exclude, scratch)
    applied = None
    chosen: dict[int, Decision] = {}
    if options.decisions is not None:
        named = named or options.decisions
        applied, chosen = _choose(connection, options.decisions, named, base)
    table = os.path.join(scratch, "chosen.parquet")
    pq.write_table(_make_table(chosen, options, schema, named), table)
    create_view(connection, "chosen", [table], scratch)
    for statement in (_COMBINE, _DECIDED, _REMOVED):
        connection.execute(statement)
    is_ignored = any(each.action == IGNORE for each in chosen.values())
    connection.execute(_ENTRIES.format(more=", ignored" if is_ignored else ""))
    [(removed, rows)] = connection.execute(_COUNTS).fetchall()
    if removed and removed == rows:
        files = " and ".join(filter(None, (options.exclude, named)))
        raise DataError(
            f"All {format_count(rows, 'row')} that can be used are left out by {files}, so there "
            "is nothing to write.",
            "Leave it out (--exclude or --decisions; exclude= or decisions= in Python), or take "
            "lines out of it.",
        )
    return int(removed), applied


def _choose(
    connection: duckdb.DuckDBPyConnection, path: str, named: str, base: Base | None
) -> tuple[Decisions, dict[int, Decision]]:
    """Returns the decisions about images that are as they were, by the numbers of their lines.

    Raises:
        DataError: A line is not a decision, or all images are gone.
        OSError: The file cannot be read, or a store fails.
    """
    sha256, decisions = read_decisions(path)
    hashes = _hash_images(connection, decisions.values(), has_base=base is not None)
    named_images = [image for each in decisions.values() for image in each.images]
    if bare := [name for key, seen, name in named_images if seen is None and hashes.get(key)]:
        raise DataError(
            f"{named} does not say which file it decides about: no sha256 for {list_first(bare)}.",
            "Add the SHA-256 of each file, as sha256sum prints it.",
        )
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
    if changed:
        progress.warn(f"Not applied, because the images changed since: {list_first(changed)}.")
    if gone:
        progress.warn(f"Not applied, because the images are gone: {list_first(gone)}.")
    found = Counter(each.action for each in chosen.values())
    counts = {action: found[action] for action in ACTIONS}
    counts |= {"changed": len(changed), "gone": len(gone)}
    texts = [f"{name} {count:,}" for name, count in counts.items() if count]
    progress.note(f"Decisions: {', '.join(texts) or 'none'}.")
    return Decisions(sha256=sha256, counts=counts), chosen


def _make_table(
    decisions: Mapping[int, Decision],
    options: ManifestOptions,
    schema: Schema,
    named: str | None,
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
    return pa.Table.from_pylist(rows, schema=pa.schema([*texts, ("label", kind.listed_type)]))


def _hash_images(
    connection: duckdb.DuckDBPyConnection, decisions: Iterable[Decision], *, has_base: bool
) -> dict[str, str | None]:
    """Returns the SHA-256 of the files of images by their keys.

    A key that neither source nor base has is missing. An image has None, or "", if its source has
    no file of it or the file cannot be read.
    """
    keys = list({key for each in decisions for key, _, _ in each.images})
    known = dict(connection.execute(_FIND_KNOWN, [keys]).fetchall()) if has_base else {}
    found = dict(connection.execute(_FIND_FILES, [keys]).fetchall())
    # An image without a file has no hash.
    unread = {key: uri for key, uri in found.items() if uri and key not in known}
    read = zip(unread, hash_files([(uri, None) for uri in unread.values()]), strict=True)
    return {**dict.fromkeys(found), **known, **dict(read)}


def _parse_label(label: Label, kind: TargetKind, form: Form) -> Any:
    """Returns a label as the column `label` has it.

    Raises:
        RejectError: No image of the source can have it.
    """
    if kind.names is None or not form.columns:
        raise RejectError("bad_label", "the source has no labels")
    if kind.objects is not None:
        raise RejectError("bad_label", "the source has objects, and a decision is about an image")
    if not pa.types.is_list(kind.column):
        if not isinstance(label, str):
            raise RejectError("multi_label", "an image has one label, and this is a list")
        return kind.parse_row([label], form)
    cell = [label] if isinstance(label, str) else [*label]
    return kind.parse_row([cell], replace(form, separator=form.separator or ""))
