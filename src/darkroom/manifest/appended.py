"""Rows that are appended to a dataset, some in place of its own: again, they make the same one."""

from __future__ import annotations

import os
from dataclasses import replace

import duckdb

from darkroom.dataset.rejects import RejectsWriter, read_rejects
from darkroom.manifest.fingerprint import Fingerprint
from darkroom.manifest.staging import StagedRows
from darkroom.options.manifest import ManifestOptions
from darkroom.storage.database import create_view
from darkroom.targets.kind import TargetKind

_REPLACED = """
CREATE TEMP VIEW replaced AS FROM entries SEMI JOIN (FROM verdicts WHERE verdict = 'replaced')
USING (row)
"""
_CHANGED = """
SELECT count(*) FROM (
    SELECT key, split, {extra}, {label} FROM replaced
    EXCEPT SELECT key, split, {extra}, {label} FROM kept SEMI JOIN replaced USING (key)
)
"""
_COUNTS = "SELECT count(*), coalesce(sum({objects}), 0) FROM replaced"
_LOST_AGAIN = "SELECT row FROM lost SEMI JOIN replaced USING (row)"
# The order of rows, and so their numbers, differ between a list and the dataset that has them.
_COLUMNS = ("key", "uri", "split", "span", "size", "mtime", "extra", "group", "ignored")
_HASHES = """
SELECT (SELECT bit_xor(md5_number(to_json({{{planned}}})::VARCHAR)) FROM placed),
    (SELECT bit_xor(md5_number(to_json(reject)::VARCHAR)) FROM
        (SELECT DISTINCT * EXCLUDE (row, span, detail, size) FROM all_rejects) AS reject)
"""


def leave_out_replaced(
    connection: duckdb.DuckDBPyConnection, staged: StagedRows, kind: TargetKind, scratch: str
) -> tuple[StagedRows, int]:
    """Returns rows without those of the dataset that rows of the list replace.

    Args:
        connection: Has the views and tables `entries`, `verdicts` and `kept`.
        staged: All rows.
        kind: What images are labelled with.
        scratch: A local folder.

    Returns:
        The rows, and how many of those that are replaced the list says otherwise.
    """
    connection.execute(_REPLACED)
    label = (f"list_sort(list_distinct({kind.parts}))" if kind.parts else "{column}").format(
        column="label"
    )
    extra = "extra" if "extra" in connection.sql("FROM kept").columns else "''"
    [(changed,)] = connection.execute(_CHANGED.format(label=label, extra=extra)).fetchall()
    objects = f"len({kind.objects.format(column='label')})" if kind.objects else "0"
    [(rows, read)] = connection.execute(_COUNTS.format(objects=objects)).fetchall()
    staged = replace(staged, rows=staged.rows - rows)
    if staged.objects is None:
        return staged, changed
    path = os.path.join(scratch, "lost.parquet")
    create_view(connection, "lost", [staged.rejects], scratch)
    again = connection.execute(_LOST_AGAIN).fetchall()
    with RejectsWriter(path) as rejects:
        left_out = {row for [row] in again}
        for each in read_rejects(staged.rejects):
            if each.row not in left_out:
                rejects.add(each)
    known, lost = staged.objects, len(again)
    counts = {"written": known.written - read, "rejected": known.rejected - lost}
    objects_left = replace(known, alone=known.alone - lost, **counts)
    return replace(staged, rejects=path, objects=objects_left), changed


def fingerprint_appended(
    connection: duckdb.DuckDBPyConnection,
    rejects: list[str],
    kind: TargetKind,
    options: ManifestOptions,
    scratch: str,
) -> str:
    """Returns the fingerprint of a dataset with the rows that were appended; see `Manifest`.

    Args:
        connection: Has the view `placed` of the rows that are planned.
        rejects: The files of the others.
        kind: What images are labelled with.
        options: How rows became entries.
        scratch: A local folder.
    """
    # Objects that were added are added again.
    label = f"list_sort(list_distinct({kind.objects}))" if kind.objects else kind.same
    there = connection.sql("FROM placed").columns
    planned = [f'"{name}": "{name}"' for name in _COLUMNS if name in there]
    planned += [f"label: {label.format(column='label')}", f"says: {kind.says}"]
    if kind.image_id is not None:
        planned.append(f"image_id: {kind.listed_id}")
    create_view(connection, "all_rejects", rejects, scratch)
    hashes = connection.execute(_HASHES.format(planned=", ".join(planned))).fetchall()
    fingerprint = Fingerprint(options)
    fingerprint.update_text(str(hashes))
    return fingerprint.hexdigest()
