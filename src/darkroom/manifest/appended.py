"""Rows that are appended to a dataset: appended again, they make the same dataset."""

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

# Rows of an image with other splits, and single labels, are in conflict.
_REPEATED = """
UPDATE verdicts SET verdict = 'repeated' FROM entries AS new, entries AS old
WHERE verdicts.row = new.row AND verdicts.kept_row = old.row AND new.key = old.key
    AND verdict = 'duplicate' AND NOT is_other AND old.row <= {old_rows} AND new.row > {old_rows}
    AND {is_known}
"""
_COUNTS = """
SELECT count(*), coalesce(sum({objects}), 0) FROM entries JOIN verdicts USING (row)
WHERE verdict = 'repeated'
"""
_LOST_AGAIN = """
SELECT row FROM lost SEMI JOIN (FROM verdicts WHERE verdict = 'repeated') USING (row)
"""
# The order of rows, and so their numbers, differ between a list and the dataset that has them.
_COLUMNS = ("key", "uri", "split", "span", "size", "mtime", "extra", "group", "ignored")
_HASHES = """
SELECT (SELECT bit_xor(md5_number(to_json({{{planned}}})::VARCHAR)) FROM placed),
    (SELECT bit_xor(md5_number(to_json(reject)::VARCHAR)) FROM
        (SELECT DISTINCT * EXCLUDE (row, span, detail, size) FROM all_rejects) AS reject)
"""


def leave_out_repeated(
    connection: duckdb.DuckDBPyConnection,
    staged: StagedRows,
    kind: TargetKind,
    old_rows: int,
    scratch: str,
) -> StagedRows:
    """Returns rows without those of the list that the dataset has, which are not counted again.

    Such a row has the image, id, split, label and further columns of one of the dataset. Where an
    image has several labels or objects, the row has some of them.

    Args:
        connection: Has the views and tables `entries` and `verdicts`, where they get a verdict of
            their own.
        staged: All rows.
        kind: What images are labelled with.
        old_rows: Number of rows of the dataset, which come first.
        scratch: A local folder.
    """
    old, new = ((kind.parts or "NULL").format(column=f"{name}.label") for name in ("old", "new"))
    is_known = f"({new} IS NULL OR list_has_all({old}, {new}))" if kind.parts else "TRUE"
    connection.execute(_REPEATED.format(old_rows=old_rows, is_known=is_known))
    objects = f"len({kind.objects.format(column='label')})" if kind.objects else "0"
    [(rows, read)] = connection.execute(_COUNTS.format(objects=objects)).fetchall()
    staged = replace(staged, rows=staged.rows - rows)
    if staged.objects is None:
        return staged
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
    return replace(staged, rejects=path, objects=objects_left)


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
    label = f"list_sort(list_distinct({kind.parts}))" if kind.parts else "{column}"
    there = connection.sql("FROM placed").columns
    planned = [f'"{name}": "{name}"' for name in _COLUMNS if name in there]
    planned += [f"label: {label.format(column='label')}", f"says: {kind.says}"]
    if kind.image_id is not None:
        planned.append(f"image_id: {kind.image_id.format(column='label')}")
    create_view(connection, "all_rejects", rejects, scratch)
    hashes = connection.execute(_HASHES.format(planned=", ".join(planned))).fetchall()
    fingerprint = Fingerprint(options)
    fingerprint.update_text(str(hashes))
    return fingerprint.hexdigest()
