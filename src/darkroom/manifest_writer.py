"""Writes a manifest: rows are parsed in one pass, then checked, ordered and written out of core."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import manifest as manifests
from darkroom import storage
from darkroom.fingerprint import Fingerprint
from darkroom.manifest import Manifest, SplitSize
from darkroom.rejects import MANIFEST_STAGE, Reject, RejectsWriter, write_rejects
from darkroom.rows import Entry, ManifestOptions, build_label_map, parse_rows, stat_image
from darkroom.schema import Kind, Schema
from darkroom.sources import AnySource, Source, open_sources
from darkroom.sources.folder import FolderSource
from darkroom.splits import SPLITS

_CHUNK_ROWS = 50_000
_REMOTE_SAMPLE = 32
_ARROW = {Kind.INTEGER: pa.int64(), Kind.FLOAT: pa.float64(), Kind.STRING: pa.string()}

# Groups of entries that share a key, or an image. In a group all entries must say the same.
_SUSPECTS = """
CREATE TEMP TABLE suspects AS
SELECT row, key, coalesce(nullif(uri, ''), key) AS image, {extra} AS extra,
  declared || chr(31) || coalesce(label, '') AS says
FROM entries
WHERE key IN (SELECT key FROM entries GROUP BY key HAVING count(*) > 1)
   OR uri IN (SELECT uri FROM entries WHERE uri <> '' GROUP BY uri HAVING count(*) > 1)
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
# Which of several equal rows is kept must not depend on the order of the source: its number is
# the last thing that decides.
_VERDICTS = """
CREATE TEMP TABLE verdicts AS
SELECT row, first_row, last_row, CASE
    WHEN is_conflict THEN 'conflict'
    WHEN row_number() OVER (PARTITION BY is_conflict, image ORDER BY key, extra, row) > 1
    THEN 'duplicate'
    ELSE 'keep' END AS verdict
FROM compared
"""
_CONFLICTS = """
SELECT e.*, v.first_row, v.last_row FROM entries e JOIN verdicts v USING (row)
WHERE v.verdict = 'conflict' ORDER BY row
"""
_KEPT = """
CREATE TEMP VIEW kept AS
SELECT * FROM entries WHERE row NOT IN (SELECT row FROM verdicts WHERE verdict <> 'keep')
"""
_ORDERED = """
SELECT k.key, k.id, k.uri, k.split, k.label, l.label_id, k.row, k.size, k.mtime{extra}
FROM kept k LEFT JOIN label_map l ON k.label = l.label
ORDER BY list_position(['train', 'eval', 'test'], k.split), k."order", k.key
"""


@dataclass(frozen=True)
class _Staged:
    """Entries of all sources on local disk, before they are compared with each other."""

    path: str
    rows: int
    rejects: str
    fingerprint: str


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
        folder: Where the manifest goes; made when absent.
        rejects_folder: Where `rejects.parquet` and `rejects.jsonl` go; made when absent.
        options: How rows become entries.

    Returns:
        What the manifest holds.

    Raises:
        DataError: The source as a whole cannot be used.
        UsageError: The source is of no known kind, or an option does not fit it.
        OSError: The source cannot be read, or the output not be written.
    """
    options = options or ManifestOptions()
    sources = open_sources(source, options.schema)
    storage.make_folder(folder)
    storage.make_folder(rejects_folder)
    with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
        staged = _stage(sources, options, scratch)
        connection = _connect(scratch)
        connection.read_parquet(staged.path).create_view("entries")
        conflicts = os.path.join(scratch, "conflicts.parquet")
        schema = sources[0].schema
        _reject_conflicts(connection, schema, conflicts)
        label_table = os.path.join(scratch, "labels.parquet")
        label_map = _make_label_table(connection, schema, options, label_table)
        _write_ordered(connection, schema, storage.join(folder, manifests.MANIFEST_FILE))
        rejected = write_rejects(rejects_folder, [staged.rejects, conflicts])
        split_sizes = _measure_splits(connection)
    kept = sum(size.rows for size in split_sizes.values())
    manifest = Manifest(
        rows=staged.rows,
        deduplicated=staged.rows - kept - rejected,
        rejected=rejected,
        splits=split_sizes,
        labels=label_map,
        inputs={name: kind.value for name, kind in schema.inputs},
        has_images=schema.image is not None,
        has_labels=schema.label is not None,
        seed=options.seed,
        ignored=sum(len(s.ignored) for s in sources if isinstance(s, FolderSource)),
        fingerprint=staged.fingerprint,
    )
    manifests.write_manifest_info(folder, manifest)
    return manifest


def _stage(sources: Sequence[Source], options: ManifestOptions, scratch: str) -> _Staged:
    path, rejects = os.path.join(scratch, "entries.parquet"), os.path.join(scratch, "bad.parquet")
    arrow = _arrow_schema(sources[0].schema)
    rows = 0
    # Remote images are not looked up here, so nothing is known of whether they have changed.
    fingerprint, is_known = Fingerprint(), True
    chunk: list[Entry] = []
    with RejectsWriter(rejects) as bad, pq.ParquetWriter(path, arrow) as good:
        for item in parse_rows(sources, options):
            rows += 1
            fingerprint.update(item)
            is_known = is_known and (not item.uri or not storage.is_remote(item.uri))
            if isinstance(item, Reject):
                bad.add(item)
                continue
            chunk.append(item)
            if len(chunk) >= _CHUNK_ROWS:
                good.write_table(_as_table(chunk, arrow))
                chunk = []
        good.write_table(_as_table(chunk, arrow))
    return _Staged(path, rows, rejects, fingerprint.hexdigest() if is_known else "")


def _arrow_schema(schema: Schema) -> pa.Schema:
    fields: list[tuple[str, Any]] = [
        ("key", pa.string()),
        ("id", pa.string()),
        ("uri", pa.string()),
        ("split", pa.string()),
        ("declared", pa.string()),
        ("label", pa.string()),
        ("row", pa.int64()),
        ("order", pa.int64()),
        ("size", pa.int64()),
        ("mtime", pa.string()),
    ]
    if schema.inputs:
        inputs = [pa.field(name, _ARROW[kind]) for name, kind in schema.inputs]
        fields.append(("extra", pa.struct(inputs)))
    return pa.schema(fields)


def _as_table(entries: Iterable[Entry], arrow: pa.Schema) -> pa.Table:
    columns = list(zip(*entries, strict=True)) or [()] * len(Entry._fields)
    by_name = dict(zip(Entry._fields, columns, strict=True))
    return pa.table([pa.array(by_name[f.name], f.type) for f in arrow], schema=arrow)


def _connect(scratch: str) -> duckdb.DuckDBPyConnection:
    # Past this memory DuckDB sorts and joins on disk, so a manifest may be larger than memory.
    return duckdb.connect(
        config={"temp_directory": os.path.join(scratch, "duckdb"), "memory_limit": "1GB"}
    )


def _reject_conflicts(connection: duckdb.DuckDBPyConnection, schema: Schema, path: str) -> None:
    """Finds entries that repeat or contradict each other; writes the latter as rejects."""
    suspects = _SUSPECTS.format(extra="extra::VARCHAR" if schema.inputs else "''")
    for statement in (suspects, _COMPARED, _VERDICTS, _KEPT):
        connection.execute(statement)
    with RejectsWriter(path) as rejects:
        for batch in connection.sql(_CONFLICTS).to_arrow_reader(_CHUNK_ROWS):
            for entry in batch.to_pylist():
                rejects.add(_as_conflict(entry))


def _as_conflict(entry: dict[str, Any]) -> Reject:
    other = entry["first_row"] if entry["first_row"] != entry["row"] else entry["last_row"]
    detail = f"row {other} gives the same image another split or label"
    if other == entry["row"]:
        detail = f"another row has the id {entry['id']!r}"
    return Reject(
        entry["row"],
        entry["uri"],
        entry["split"],
        entry["label"],
        MANIFEST_STAGE,
        "conflict",
        detail,
        entry["id"],
        entry.get("extra") or {},
    )


def _make_label_table(
    connection: duckdb.DuckDBPyConnection, schema: Schema, options: ManifestOptions, path: str
) -> list[str]:
    found = [
        row[0]
        for row in connection.execute(
            "SELECT DISTINCT label FROM kept WHERE label IS NOT NULL"
        ).fetchall()
    ]
    label_map = build_label_map(found, schema, options.labels) if schema.label else []
    numbers = pa.array(range(len(label_map)), pa.int64())
    table = pa.table({"label": pa.array(label_map, pa.string()), "label_id": numbers})
    # By way of a file: DuckDB does not scan the tables of the pyarrow that TFX 1.16 brings.
    pq.write_table(table, path)
    connection.read_parquet(path).create_view("label_map")
    return label_map


def _write_ordered(connection: duckdb.DuckDBPyConnection, schema: Schema, path: str) -> None:
    query = _ORDERED.format(extra=", k.extra" if schema.inputs else "")
    reader = connection.sql(query).to_arrow_reader(manifests.MAX_ROW_GROUP_ROWS)
    with storage.open_write(path) as file, pq.ParquetWriter(file, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def _measure_splits(connection: duckdb.DuckDBPyConnection) -> dict[str, SplitSize]:
    """Returns rows and bytes of each split; unknown sizes count as the mean of a sample."""
    mean = _mean_size(connection)
    rows = connection.execute(
        "SELECT split, count(*), sum(coalesce(size, $mean))::BIGINT FROM kept GROUP BY split",
        {"mean": mean},
    ).fetchall()
    sizes = {split: SplitSize(count, size) for split, count, size in rows}
    return {split: sizes[split] for split in SPLITS if split in sizes}


def _mean_size(connection: duckdb.DuckDBPyConnection) -> int:
    """Returns the mean size of the images whose size is not known, from a sample of them."""
    sample = connection.execute(
        """SELECT uri FROM kept WHERE size IS NULL AND contains(uri, '://')
        ORDER BY "order" LIMIT $limit""",
        {"limit": _REMOTE_SAMPLE},
    ).fetchall()
    # All at once: where they cannot be reached, each takes its time to say so.
    with ThreadPoolExecutor(_REMOTE_SAMPLE) as pool:
        sizes = [size for size, _ in pool.map(stat_image, (uri for (uri,) in sample))]
    known = [size for size in sizes if size is not None]
    return sum(known) // len(known) if known else 0
