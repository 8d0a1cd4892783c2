"""Writes a manifest: rows are parsed in one pass, then compared, ordered, written out of core."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.dataset.commit import Target
from darkroom.dataset.labels import build_label_map
from darkroom.dataset.rejects import (
    MANIFEST_STAGE,
    Reject,
    RejectsWriter,
    write_rejects,
    write_target,
)
from darkroom.dataset.schema import Schema
from darkroom.dataset.splits import SPLITS
from darkroom.errors import DataError
from darkroom.manifest.chunks import stat_image
from darkroom.manifest.exclusions import exclude_rows
from darkroom.manifest.label_kinds import check_label_kind
from darkroom.manifest.shortage import explain_shortage
from darkroom.manifest.sources import AnySource, open_sources
from darkroom.manifest.sources.folder import FolderSource
from darkroom.manifest.staging import stage_rows
from darkroom.manifest.table import (
    MANIFEST_FILE,
    MAX_ROW_GROUP_ROWS,
    Manifest,
    SplitSize,
    write_manifest_info,
)
from darkroom.options.manifest import ManifestOptions
from darkroom.options.source import AUTO_LABEL, REFUSE_MERGE
from darkroom.runtime.text import format_count
from darkroom.storage.database import create_view, open_database
from darkroom.targets.kind import Kind, find_kind

_REMOTE_SAMPLE = 32
# `images.prepare.MAX_IMAGE_BYTES`, which is above this package.
MAX_COUNTED_BYTES = 64 << 20
# Number of rows that are sorted at once: far fewer than make DuckDB sort on disk, for which it may
# want more memory than it may use.
_SORTED_ROWS = 250_000

# Files of a folder with the same path below that of their label, and the same size: one image with
# the labels of all of them. It is that of the first file, and workers compare the others' bytes.
_SHARED = """
CREATE TEMP TABLE shared AS
SELECT unnest(list(row)) AS row, min_by(listed, id) AS first, list(uri ORDER BY id)[2:] AS copies
FROM listed WHERE size IS NOT NULL
GROUP BY declared, string_split(id, '/')[{depth} + 1:], size HAVING count(*) > 1
"""
_MERGED = """
CREATE TEMP VIEW staged AS
SELECT listed.* REPLACE (
  coalesce(first.key, key) AS key, coalesce(first.id, id) AS id, coalesce(first.uri, uri) AS uri,
  coalesce(first.split, split) AS split, coalesce(first."order", "order") AS "order",
  coalesce(first.mtime, mtime) AS mtime
), copies FROM listed LEFT JOIN shared USING (row)
"""
# Groups of entries that share a key, or an image. In a group all entries must say the same. Numbers
# find them with a fraction of the memory that keys need: equal keys have an equal order. Entries
# with equal numbers and different keys form no group in the next step.
_REPEATED_ORDERS = """
CREATE TEMP TABLE repeated_orders AS
SELECT "order" FROM entries GROUP BY ALL HAVING count(*) > 1
"""
_REPEATED_URIS = """
CREATE TEMP TABLE repeated_uris AS
SELECT hash(uri) AS number FROM entries WHERE uri <> '' GROUP BY ALL HAVING count(*) > 1
"""
_SUSPECTS = """
CREATE TEMP TABLE suspects AS
SELECT row, key, coalesce(nullif(uri, ''), key) AS image, {extra} AS extra,
  declared || chr(31) || {says} AS says
FROM entries
WHERE "order" IN (SELECT "order" FROM repeated_orders)
   OR hash(uri) IN (SELECT number FROM repeated_uris)
"""
_COMPARED = """
CREATE TEMP TABLE compared AS
SELECT *,
  min(says) OVER same_image <> max(says) OVER same_image
    OR min(says) OVER same_key <> max(says) OVER same_key
    OR min(image) OVER same_key <> max(image) OVER same_key AS is_conflict,
  min(row) OVER same_image AS first_row, max(row) OVER same_image AS last_row
FROM suspects
WINDOW same_image AS (PARTITION BY image), same_key AS (PARTITION BY key)
"""
# Which of several equal rows is kept must not depend on the order of the source: its number
# decides last.
_VERDICTS = """
CREATE TEMP TABLE verdicts AS
SELECT row, first_row, last_row, CASE
    WHEN is_conflict THEN 'conflict'
    WHEN row_number() OVER same_image > 1 THEN 'duplicate'
    ELSE 'keep' END AS verdict,
  first_value(row) OVER same_image AS kept_row,
  extra <> first_value(extra) OVER same_image AS is_other
FROM compared
WINDOW same_image AS (PARTITION BY is_conflict, image ORDER BY key, extra, row)
"""
_OTHERS = """
SELECT count(*), min_by(kept_row, row), min(row) FROM verdicts
WHERE verdict = 'duplicate' AND is_other
"""
_CONFLICTS = """
SELECT e.*, v.first_row, v.last_row FROM entries e JOIN verdicts v USING (row)
WHERE v.verdict = 'conflict' ORDER BY row
"""
_KEPT = """
CREATE TEMP VIEW kept AS
SELECT * FROM {entries} ANTI JOIN (SELECT row FROM verdicts WHERE verdict <> 'keep') USING (row)
"""
# The rows of an image are joined in the one that is kept.
_JOINED = """
CREATE TEMP VIEW joined AS
SELECT entries.* REPLACE (coalesce(unions.label, entries.label) AS label)
FROM entries LEFT JOIN (
    SELECT kept_row AS row, list_distinct(flatten(list(label))) AS label
    FROM entries JOIN verdicts USING (row)
    WHERE verdict <> 'conflict' AND label IS NOT NULL GROUP BY kept_row
) AS unions USING (row)
"""
_LABELS = """
SELECT name, count(*) FROM (SELECT {names} AS name FROM kept WHERE label IS NOT NULL) GROUP BY name
"""
_ORDERED = """
SELECT key, id, uri, split, label, row, size, mtime{more} FROM kept
WHERE split = '{split}' AND "order" BETWEEN {first} AND {last}
ORDER BY "order", key
"""


def write_manifest(
    source: AnySource,
    folder: str,
    rejects_folder: str,
    options: ManifestOptions | None = None,
) -> Manifest:
    """Reads a source and writes its manifest and its rejects.

    Args:
        source: Path of a CSV, JSONL or Parquet file, a pattern of such files, a folder of images,
            or a DataFrame.
        folder: Where the manifest goes; created when absent.
        rejects_folder: Where `rejects.parquet` and `rejects.jsonl` go; created when absent.
        options: How rows become entries.

    Returns:
        The content of the manifest.

    Raises:
        DataError: The source as a whole cannot be used.
        UsageError: The kind of the source is unknown, or an option does not fit it.
        OSError: The source cannot be read, or the output cannot be written.
    """
    options = (options or ManifestOptions()).resolve()
    sources = open_sources(source, options.columns, options.source_encoding, options.subfolders)
    storage.make_folder(folder)
    storage.make_folder(rejects_folder)
    schema = sources[0].schema
    with (
        tempfile.TemporaryDirectory(prefix="darkroom-") as scratch,
        explain_shortage(schema, scratch),
    ):
        kind = find_kind(schema.target_kind)
        # Where rows of an image are joined, it may be in the folders of several labels.
        folders = sources[0] if kind.says is None else None
        depth = folders.label_depth if isinstance(folders, FolderSource) else 0
        staged = stage_rows(sources, options, scratch, bool(depth))
        conflicts = os.path.join(scratch, "conflicts.parquet")
        with open_database(scratch) as connection:
            create_view(connection, "listed" if depth else "staged", [staged.path], scratch)
            if depth:
                connection.execute(_SHARED.format(depth=depth))
                connection.execute(_MERGED)
            excluded = exclude_rows(connection, options.exclude, scratch)
            _reject_conflicts(connection, schema, kind, conflicts)
            merged = _count_merged(connection, options)
            label_map = _make_label_map(connection, schema, kind, options)
            split_sizes = _measure_splits(connection)
            more = f"{', extra' if schema.inputs else ''}{', copies' if depth else ''}"
            _write_ordered(connection, more, kind, split_sizes, label_map, folder)
        rejected, _ = write_rejects(rejects_folder, [staged.rejects, conflicts])
    kept = sum(size.rows for size in split_sizes.values())
    manifest = Manifest(
        rows=staged.rows,
        deduplicated=staged.rows - kept - rejected,
        excluded=excluded,
        merged=merged,
        rejected=rejected,
        splits=split_sizes,
        labels=label_map,
        inputs={name: kind.value for name, kind in schema.inputs},
        has_images=schema.image is not None,
        has_labels=bool(schema.targets),
        target=Target(kind.name, schema.targets if kind.names is None else ()),
        seed=options.seed,
        ignored=sum(len(s.ignored) for s in sources if isinstance(s, FolderSource)),
        fingerprint=staged.fingerprint,
    )
    write_manifest_info(folder, manifest)
    return manifest


def _reject_conflicts(
    connection: duckdb.DuckDBPyConnection, schema: Schema, kind: Kind, path: str
) -> None:
    """Finds entries that repeat or contradict each other; writes the latter as rejects."""
    says = "''" if kind.says is None else f"coalesce({kind.says}, '')"
    suspects = _SUSPECTS.format(extra="extra::VARCHAR" if schema.inputs else "''", says=says)
    for statement in (_REPEATED_ORDERS, _REPEATED_URIS, suspects, _COMPARED, _VERDICTS):
        connection.execute(statement)
    if kind.says is None:
        connection.execute(_JOINED)
    connection.execute(_KEPT.format(entries="joined" if kind.says is None else "entries"))
    with RejectsWriter(path) as rejects:
        for batch in connection.sql(_CONFLICTS).to_arrow_reader(MAX_ROW_GROUP_ROWS):
            for entry in batch.to_pylist():
                rejects.add(_as_conflict(entry))


def _count_merged(connection: duckdb.DuckDBPyConnection, options: ManifestOptions) -> int:
    """Returns how many dropped rows have values, as captions, that the kept row lacks.

    Raises:
        DataError: There are some, and nobody has said that they may be dropped.
    """
    count, *rows = connection.execute(_OTHERS).fetchall()[0]
    if count and options.merge_rows == REFUSE_MERGE:
        raise DataError(
            f"Rows {min(rows)} and {max(rows)} name the same image, and further columns differ. "
            "One record is made of an image, so the values of "
            f"{format_count(count, 'row')} would be lost.",
            "Put all values of an image into one row, or leave these columns out with --columns "
            "(columns= in Python). To keep one row of each image, convert with --merge-rows first "
            "(merge_rows= in Python).",
        )
    return int(count)


def _as_conflict(entry: dict[str, Any]) -> Reject:
    other = entry["first_row"] if entry["first_row"] != entry["row"] else entry["last_row"]
    detail = f"row {other} gives the same image another split or label"
    if other == entry["row"]:
        detail = f"another row has the id {entry['id']!r}"
    return Reject(
        entry["row"],
        entry["uri"],
        entry["split"],
        write_target(entry["label"]),
        MANIFEST_STAGE,
        "conflict",
        detail,
        entry["id"],
        entry.get("extra") or {},
    )


def _make_label_map(
    connection: duckdb.DuckDBPyConnection, schema: Schema, kind: Kind, options: ManifestOptions
) -> list[str]:
    if kind.names is None or not schema.targets:
        return []
    found = dict(
        connection.execute(_LABELS.format(names=kind.names.format(column="label"))).fetchall()
    )
    # A label map says that its texts are labels.
    if kind.name == "label" and options.label_kind == AUTO_LABEL and options.labels is None:
        check_label_kind(found)
    given = options.labels
    if given is None and options.label_columns:
        # Also those that no image has, in the order of the columns.
        given = options.label_columns
    return build_label_map(found, given, are_numbers=schema.has_integer_labels)


def _write_ordered(
    connection: duckdb.DuckDBPyConnection,
    more: str,
    kind: Kind,
    sizes: Mapping[str, SplitSize],
    label_map: Sequence[str],
    folder: str,
) -> None:
    names = pa.array(label_map, pa.string())
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(storage.open_write(storage.join(folder, MANIFEST_FILE)))
        writer = None
        for split, first, last in _find_ranges(sizes):
            query = _ORDERED.format(more=more, split=split, first=first, last=last)
            reader = connection.sql(query).to_arrow_reader(MAX_ROW_GROUP_ROWS)
            if writer is None:
                none = pa.RecordBatch.from_pylist([], reader.schema)
                form = _number_labels(none, kind, names).schema
                writer = stack.enter_context(pq.ParquetWriter(file, form))
            for batch in reader:
                writer.write_batch(_number_labels(batch, kind, names))


def _number_labels(batch: pa.RecordBatch, kind: Kind, names: pa.Array) -> pa.RecordBatch:
    """Returns rows with the numbers of their labels in a further column."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    labels = columns["label"].cast(kind.column)
    columns["label"], columns["label_id"] = kind.number(labels, names)
    return pa.RecordBatch.from_arrays([*columns.values()], [*columns])


def _find_ranges(sizes: Mapping[str, SplitSize]) -> Iterator[tuple[str, int, int]]:
    """Yields split, first and last place of ranges of the order; one when there is no row."""
    counts = {split: size.rows for split, size in sizes.items()} or {SPLITS[0]: 1}
    for split, rows in counts.items():
        parts = -(-rows // _SORTED_ROWS)
        width = -(-(1 << 63) // parts)
        for part in range(parts):
            yield split, part * width, min((part + 1) * width, 1 << 63) - 1


def _measure_splits(connection: duckdb.DuckDBPyConnection) -> dict[str, SplitSize]:
    """Returns rows and bytes of each split; unknown sizes count as the mean of a sample.

    Files that are too large to become records take no room in a shard.
    """
    sample = connection.execute(
        """SELECT uri FROM kept WHERE size IS NULL AND contains(uri, '://')
        ORDER BY "order" LIMIT $limit""",
        {"limit": _REMOTE_SAMPLE},
    ).fetchall()
    # All at once: each one that cannot be reached takes a long time.
    with ThreadPoolExecutor(_REMOTE_SAMPLE) as pool:
        states = pool.map(stat_image, (uri for (uri,) in sample))
        found = [size for size, _ in states if size is not None]
    known = [size for size in found if size <= MAX_COUNTED_BYTES]
    mean = sum(known) // len(known) if known else 0
    rows = connection.execute(
        """SELECT split, count(*),
          sum(CASE WHEN size > $limit THEN 0 ELSE coalesce(size, $mean) END)::BIGINT
        FROM kept GROUP BY split""",
        {"mean": mean, "limit": MAX_COUNTED_BYTES},
    ).fetchall()
    sizes = {split: SplitSize(count, size) for split, count, size in rows}
    return {split: sizes[split] for split in SPLITS if split in sizes}
