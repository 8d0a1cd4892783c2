"""Writes a manifest: rows are parsed in one pass, then compared, ordered, written out of core."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.dataset.commit import Target
from darkroom.dataset.labels import is_pointed
from darkroom.dataset.layout import Folders
from darkroom.dataset.manifest import (
    MANIFEST_FILE,
    MAX_ROW_GROUP_ROWS,
    Manifest,
    write_manifest_info,
)
from darkroom.dataset.objects import ObjectCounts
from darkroom.dataset.read_as import format_doubts
from darkroom.dataset.rejects import (
    MANIFEST_STAGE,
    Reject,
    RejectsWriter,
    format_target,
    read_rejects,
    write_rejects,
)
from darkroom.dataset.schema import Kind, find_boxes
from darkroom.dataset.sources import AnySource
from darkroom.dataset.splits import FOLD, SPLITS
from darkroom.errors import DataError
from darkroom.manifest.appended import fingerprint_appended, leave_out_replaced
from darkroom.manifest.base import Base
from darkroom.manifest.classes import LabelMap, make_label_map
from darkroom.manifest.identities import tell_shared_apart
from darkroom.manifest.label_map import resolve
from darkroom.manifest.opening import open_sources
from darkroom.manifest.reading import complete
from darkroom.manifest.shortage import explain_shortage
from darkroom.manifest.source_ids import select_source_id
from darkroom.manifest.sources.base import Source
from darkroom.manifest.sources.folder import FolderSource
from darkroom.manifest.sources.headers import OTHER_BOXES
from darkroom.manifest.sources.jsonl import JsonlSource
from darkroom.manifest.staging import REPEATED_COLUMNS, StagedRows, stage_rows
from darkroom.options.manifest import ManifestOptions
from darkroom.options.source import REFUSE_MERGE
from darkroom.runtime import by_name, progress
from darkroom.runtime.text import format_count
from darkroom.storage.database import create_view, open_database
from darkroom.targets.kind import TargetKind, find_kind

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
  coalesce(first.split, split) AS split, coalesce(first.span, span) AS span,
  coalesce(first."order", "order") AS "order", coalesce(first.mtime, mtime) AS mtime
), copies FROM listed LEFT JOIN shared USING (row)
"""
# Groups of entries that share a key, or an image. In a group all entries must say the same. Numbers
# find them with a fraction of the memory that keys need: equal keys have an equal order. Entries
# with equal numbers and different keys form no group in the next step. Where rows are appended to a
# dataset, its own come first, and say the split of an image that a new row has without one. A new
# row says the whole of its image, unless it says less than the dataset: a lost object, or nothing.
_REPEATED_ORDERS = """
CREATE TEMP TABLE repeated_orders AS
SELECT "order" FROM {rows} GROUP BY ALL HAVING count(*) > 1
"""
_REPEATED_URIS = """
CREATE TEMP TABLE repeated_uris AS
SELECT hash(uri) AS number FROM {rows} WHERE uri <> '' GROUP BY ALL HAVING count(*) > 1
"""
_COMPLETED = "CREATE TEMP TABLE completed AS SELECT unnest(?::VARCHAR[]) AS id"
_SUSPECTS = """
CREATE TEMP TABLE suspects AS
SELECT row, row <= {old_rows} AS is_old, key, span, coalesce(nullif(uri, ''), key) AS image,
  {extra} AS extra, nullif(declared, '') AS declared, {says} AS says,
  CASE WHEN NOT is_old AND id IN (FROM completed) THEN 0 WHEN {is_known} THEN 2 ELSE 1 END AS told
FROM entries
WHERE "order" IN (SELECT "order" FROM repeated_orders)
   OR hash(uri) IN (SELECT number FROM repeated_uris)
"""
_COMPARED = """
CREATE TEMP TABLE compared AS
WITH found AS (SELECT * REPLACE (
  coalesce(declared, max(declared) FILTER (is_old) OVER same_image, '') || chr(31) || says AS says
), is_old AND coalesce(told <= greatest(
  max(told) FILTER (NOT is_old) OVER same_image, max(told) FILTER (NOT is_old) OVER same_key
), FALSE) AS is_retold
FROM suspects
WINDOW same_image AS (PARTITION BY image), same_key AS (PARTITION BY key))
SELECT *, NOT is_old AND (
    min(says) OVER same_image <> max(says) OVER same_image
    OR min(says) OVER same_key <> max(says) OVER same_key
    OR min(image) OVER same_key <> max(image) OVER same_key) AS is_conflict,
  min(row) OVER same_image AS first_row, max(row) OVER same_image AS last_row
FROM found
WINDOW same_image AS (PARTITION BY image, is_retold), same_key AS (PARTITION BY key, is_retold)
"""
# Which of several equal rows is kept must not depend on the order of the source: its number
# decides last. That of the lowest span came first. A row of the dataset that new rows contradict
# stays where these contradict each other.
_VERDICTS = """
CREATE TEMP TABLE verdicts AS
SELECT row, first_row, last_row, CASE
    WHEN is_conflict THEN 'conflict'
    WHEN is_retold AND (bool_or(NOT is_old) OVER same_image OR bool_or(NOT is_old) OVER same_key)
        THEN 'replaced'
    WHEN row_number() OVER in_order > 1 THEN 'duplicate'
    ELSE 'keep' END AS verdict,
  first_value(row) OVER in_order AS kept_row,
  extra <> first_value(extra) OVER in_order AS is_other
FROM compared
WINDOW same_image AS (PARTITION BY is_conflict, image), same_key AS (PARTITION BY is_conflict, key),
  in_order AS (same_image ORDER BY is_retold, is_old DESC, span, key, extra, row)
"""
# Most lists repeat nothing: there is nothing to compare.
_NO_VERDICTS = """
CREATE TEMP TABLE verdicts (
  row BIGINT, first_row BIGINT, last_row BIGINT, verdict VARCHAR, kept_row BIGINT, is_other BOOLEAN
)
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
    SELECT kept_row AS row, {joined} AS label
    FROM entries JOIN verdicts USING (row)
    WHERE verdict IN ('keep', 'duplicate') AND {is_known} GROUP BY kept_row
) AS unions USING (row)
"""
_LABELS = """
SELECT name, count(*) FROM (SELECT {names} AS name FROM kept WHERE {is_known}) GROUP BY name
"""
# Columns that not every manifest has.
_MORE_COLUMNS = ("extra", "copies", "group", "ignored")
_COUNTS = "SELECT split, span, count(*) FROM placed GROUP BY ALL ORDER BY span"
_ORDER = ("split", "span", "place", "key")
_ORDERED = """
SELECT key, id, uri, split, label, row, span, size, mtime, "order" AS place{more} FROM placed
WHERE (split, span) IN ({spans}) AND "order" BETWEEN {first} AND {last}
"""


def write_manifest(
    source: AnySource,
    folder: str,
    rejects_folder: str,
    options: ManifestOptions | None = None,
    base: Base | None = None,
    known: Manifest | None = None,
    *,
    shown: Sequence[Folders] = (),
    keep_beside: bool = False,
    count: Callable[[int], None] | None = None,
) -> Manifest:
    """Reads a source and writes its manifest and its rejects.

    Args:
        source: Path of a CSV, JSONL or Parquet file, a pattern of such files, a folder of images,
            or a DataFrame.
        folder: Where the manifest goes; created when absent.
        rejects_folder: Where `rejects.parquet` and `rejects.jsonl` go; created when absent.
        options: How rows become entries.
        base: The dataset whose unchanged images are taken; rows of it keep their span, and labels
            their numbers.
        known: Is returned, and nothing written, if the source has its fingerprint.
        shown: Further datasets that the gallery may have shown, whose decisions are taken.
        keep_beside: Whether what the gallery saved is also kept beside its file, as lasting lines.
        count: Called now and then with the number of rows with images that were read.

    Returns:
        The content of the manifest.

    Raises:
        DataError: The source as a whole cannot be used, or lacks most rows of `base`.
        UsageError: The kind of the source is unknown, or an option does not fit it.
        OSError: The source cannot be read, or the output cannot be written.
    """
    options, named = resolve(options or ManifestOptions()), None
    if base and base.has_decisions and not base.planned and options.decisions is None:
        progress.warn(
            "The dataset was made with decisions, and this run has none: what they changed, but "
            "for splits, is again as in the source. Give their file in every run (--decisions)."
        )
    given = open_sources(source, options)
    storage.make_folder(folder)
    storage.make_folder(rejects_folder)
    if options.decisions is not None:
        named, shown = options.decisions, (*([base.folders] if base else ()), *shown)
        lasting = by_name.find("make_lasting")(named, folder, shown, beside=keep_beside)
        options = replace(options, decisions=lasting)
    schema = given[0].schema
    if options.places_rows:
        by_name.find("check_placement")(schema, options)
    sources = _add_planned(given, options, base)
    with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
        try:
            staged = stage_rows(sources, options, scratch, count if schema.image else None)
            if known and staged.fingerprint == known.fingerprint.partition("-")[0]:
                return known
            with open_database(scratch) as connection:
                rows = _Rows(connection, scratch, given, options, base)
                manifest = rows.write(staged, folder, rejects_folder, named)
        except OSError as error:
            explain_shortage(error, schema, scratch)
            raise
    write_manifest_info(folder, manifest)
    return manifest


def _add_planned(
    given: Sequence[Source], options: ManifestOptions, base: Base | None
) -> Sequence[Source]:
    """Returns the sources after the rows of the dataset to which they are appended, if they are."""
    if base and any(map(is_pointed, base.labels)):
        for each in given:
            each.has_types = True
    if not (base and base.planned):
        return given
    columns = replace(options.columns, schema=given[0].schema)
    return [JsonlSource(base.planned, columns), *given]


class _Rows:
    """The rows of a list in a database, of which each step makes the next view.

    Args:
        connection: The database.
        scratch: A local folder.
        sources: The files of the list.
        options: How rows become entries.
        base: The dataset that is updated.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        scratch: str,
        sources: Sequence[Source],
        options: ManifestOptions,
        base: Base | None,
    ) -> None:
        self._connection, self._scratch = connection, scratch
        self._sources, self._options, self._base = sources, options, base
        self._schema = sources[0].schema
        self._kind = find_kind(self._schema.target_kind)
        self._repeats = False  # Whether some rows may name one image.

    def write(
        self, staged: StagedRows, folder: str, rejects_folder: str, named: str | None
    ) -> Manifest:
        """Compares, changes, places and writes the rows; see `write_manifest`.

        `named` is the file of decisions that the user named.
        """
        connection, scratch, options = self._connection, self._scratch, self._options
        schema, kind, base = self._schema, self._kind, self._base
        create_view(connection, "parsed", [staged.path], scratch)
        removed = self._list()
        self._join_copies()
        excluded, decisions = 0, None
        if options.exclude is None and options.decisions is None:
            connection.execute("CREATE TEMP VIEW entries AS FROM staged")
        else:
            change_rows = by_name.find("change_rows")
            excluded, decisions = change_rows(connection, options, schema, base, scratch, named)
        self._judge_rows()
        conflicts = self._reject_conflicts()
        merged, replaced = self._count_merged(), 0
        if base and base.planned:
            staged, replaced = leave_out_replaced(connection, staged, kind, scratch)
        label_map = self._make_label_map()
        read_as = complete(connection, self._sources, kind, label_map, options, staged.rejects)
        if options.places_rows or (base and base.has_groups):
            by_name.find("place_rows")(connection, schema, kind, options, base, scratch)
        else:
            connection.execute("CREATE TEMP VIEW placed AS FROM kept")
        read_as = base.complete(connection, read_as, options) if base else read_as
        splits, planned = self._write_ordered(label_map.labels, folder)
        has_objects, fingerprint = kind.objects is not None, staged.fingerprint
        rejects = [staged.rejects, conflicts]
        if base and base.planned:
            fingerprint = fingerprint_appended(connection, rejects, kind, options, scratch)
        elif base:
            fingerprint = base.fingerprint_kept(connection, fingerprint, kind, options)
        lines, _ = write_rejects(rejects_folder, rejects, has_objects=has_objects)
        objects = self._count_objects(staged, conflicts, planned)
        rejected = lines - (objects.alone if objects else 0)
        for line in format_doubts(read_as):
            progress.warn(line)
        inputs = {name: kind.value for name, kind in schema.inputs}
        return Manifest(
            rows=staged.rows,
            deduplicated=staged.rows - sum(splits.values()) - rejected,
            excluded=excluded,
            merged=merged,
            replaced=replaced,
            rejected=rejected,
            splits=splits,
            labels=label_map.labels,
            inputs=inputs | ({FOLD: Kind.INTEGER.value} if options.folds else {}),
            has_images=schema.image is not None,
            has_labels=bool(schema.targets),
            target=Target(kind.name, schema.targets if kind.names is None else ()),
            seed=options.seed,
            ignored=sum(len(s.ignored) for s in self._sources if isinstance(s, FolderSource)),
            fingerprint=fingerprint,
            removed=removed,
            base=base.places if base else {},
            decisions=decisions,
            read_as=read_as,
            objects=objects,
        )

    def _count_objects(
        self, staged: StagedRows, conflicts: str, planned: int
    ) -> ObjectCounts | None:
        """Returns the numbers of objects; those that are planned count as written."""
        objects, kind = staged.objects, self._kind
        if objects is None:
            return None
        rejected = sum(kind.count(reject.label) for reject in read_rejects(conflicts))
        return replace(
            objects,
            written=planned,
            rejected=objects.rejected + rejected,
            deduplicated=objects.written - planned - rejected,
        )

    def _list(self) -> int:
        """Makes the view `listed`, in which a file has one id, that of the base if it is there.

        Returns:
            How many rows of the base are not in the list.
        """
        connection, base, sources = self._connection, self._base, self._sources
        has_ids = self._schema.id is not None
        if base:
            base.open(connection, self._scratch)
        if (len(sources) > 1 or (base and base.planned)) and not has_ids:
            has_base = base is not None
            tell_shared_apart(connection, sources, self._options, self._scratch, has_base=has_base)
        if not base:
            connection.execute("CREATE TEMP VIEW listed AS FROM parsed")
            return 0
        has_spans = self._schema.span is not None or any(each.span for each in sources)
        told = {"has_spans": has_spans, "has_ids": has_ids}
        return base.match(connection, self._scratch, self._kind, self._options, **told)

    def _join_copies(self) -> None:
        """Makes the view `staged`, in which files of one image in several folders are one row."""
        first = self._sources[0]
        # Elsewhere an image does not have the labels of several folders.
        if self._kind.joined and isinstance(first, FolderSource):
            self._connection.execute(_SHARED.format(depth=first.label_depth))
            self._connection.execute(_MERGED)
        else:
            self._connection.execute("CREATE TEMP VIEW staged AS FROM listed")

    def _judge_rows(self) -> None:
        """Makes the table `verdicts` about entries that repeat or contradict each other.

        Where rows are appended to a dataset, its own come first.
        """
        says = f"coalesce({self._kind.says}, '')"
        extra = "extra::VARCHAR" if self._schema.inputs else "''"
        old_rows = self._base.planned_rows if self._base else 0
        is_known = self._kind.is_known
        suspects = _SUSPECTS.format(extra=extra, says=says, old_rows=old_rows, is_known=is_known)
        # Without what a base adds, if no row was left out or changed.
        is_changed = self._options.exclude or self._options.decisions
        has_copies = "copies" in self._connection.sql("FROM staged").columns
        rows = "entries" if is_changed or has_copies else "parsed"
        self._connection.execute(_COMPLETED, [self._base.completed if self._base else []])
        for statement in (_REPEATED_ORDERS, _REPEATED_URIS):
            [(count,)] = self._connection.execute(statement.format(rows=rows)).fetchall()
            self._repeats = self._repeats or count > 0
        for statement in (suspects, _COMPARED, _VERDICTS) if self._repeats else (_NO_VERDICTS,):
            self._connection.execute(statement)

    def _reject_conflicts(self) -> str:
        """Makes the view `kept`, without entries that repeat or contradict each other.

        Returns:
            The file of those that contradict each other.
        """
        joined = self._kind.joined
        old_rows = self._base.planned_rows if self._base else 0
        path = os.path.join(self._scratch, "conflicts.parquet")
        with RejectsWriter(path) as rejects:
            if not self._repeats:
                self._connection.execute("CREATE TEMP VIEW kept AS FROM entries")
                return path
            if joined:
                is_known = self._kind.is_known
                self._connection.execute(_JOINED.format(joined=joined, is_known=is_known))
            self._connection.execute(_KEPT.format(entries="joined" if joined else "entries"))
            for batch in self._connection.sql(_CONFLICTS).to_arrow_reader(MAX_ROW_GROUP_ROWS):
                for entry in batch.to_pylist():
                    rejects.add(_as_conflict(entry, old_rows, self._kind))
        return path

    def _count_merged(self) -> int:
        """Returns how many dropped rows have values, as captions, that the kept row lacks.

        Raises:
            DataError: There are some, and nobody has said that they may be dropped.
        """
        count, *rows = self._connection.execute(_OTHERS).fetchall()[0]
        if count and self._options.merge_rows == REFUSE_MERGE:
            hint = (
                "Put all values of an image into one row, or leave these columns out with "
                "--columns (columns= in Python). To keep one row of each image, convert with "
                "--merge-rows first (merge_rows= in Python)."
            )
            raise DataError(
                f"Rows {min(rows)} and {max(rows)} name the same image, and further columns "
                "differ. One record is made of an image, so the values of "
                f"{format_count(count, 'row')} would be lost.",
                OTHER_BOXES if find_boxes([name for name, _ in self._schema.inputs]) else hint,
            )
        return int(count)

    def _make_label_map(self) -> LabelMap:
        """Returns the labels in the order of their numbers."""
        kind, options = self._kind, self._options
        if kind.listed_names is None or not self._schema.targets:
            return LabelMap([])
        labels = _LABELS.format(names=kind.listed_names, is_known=kind.is_known)
        found = dict(self._connection.execute(labels).fetchall())
        old = self._base.labels if self._base else ()
        return make_label_map(found, old, self._sources, kind, options)

    def _write_ordered(self, label_map: list[str], folder: str) -> tuple[dict[str, int], int]:
        """Writes the rows of `placed` in their order.

        Returns:
            How many rows each split has, and how many objects they have together.
        """
        kind, base, objects = self._kind, self._base, 0
        spans = self._connection.execute(_COUNTS).fetchall()
        spans.sort(key=lambda each: SPLITS.index(each[0]))
        there = self._connection.sql("FROM placed").columns
        more = "".join(f', "{name}"' for name in _MORE_COLUMNS if name in there)
        source_id = None
        if kind.image_id is not None:
            had_own = base is not None and base.has_ids_of_list(self._connection, kind)
            source_id = select_source_id(self._connection, kind.listed_id, had_own=had_own)
            more += f", {source_id} AS source_id"
        if base:
            old = base.select_old(kind, label_map, source_id, has_inputs="extra" in there)
            if "copies" in there:  # Of one image in several folders, only the first file is known.
                old = f"CASE WHEN copies IS NULL THEN {old} END"
            more = f"{more}, {old} AS old"
        names = pa.array(label_map, pa.string())
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(storage.open_write(storage.join(folder, MANIFEST_FILE)))
            writer = None
            for read, first, last in _plan_reads(spans, has_old=base is not None):
                which = ", ".join(f"('{split}', {span})" for split, span, _ in read)
                query = _ORDERED.format(more=more, spans=which, first=first, last=last)
                rows = self._connection.sql(query).to_arrow_table()
                # In a third of DuckDB's time, and without its memory.
                rows = rows.sort_by([(name, "ascending") for name in _ORDER])
                rows = _number_labels(rows.combine_chunks(), kind, names)
                if kind.objects is not None:  # Each has a number.
                    objects += sum(len(chunk.flatten()) for chunk in rows["label_id"].chunks)
                writer = writer or stack.enter_context(
                    pq.ParquetWriter(file, rows.schema, use_dictionary=REPEATED_COLUMNS)
                )
                for part in _slice_spans(rows, read):
                    writer.write_table(part, MAX_ROW_GROUP_ROWS)
                del rows, part  # Before others are read.
        splits: Counter[str] = Counter()
        for split, _, count in spans:
            splits[split] += count
        return dict(splits), objects


def _as_conflict(entry: dict[str, Any], old_rows: int, kind: TargetKind) -> Reject:
    """Returns the reject of an entry of `_CONFLICTS`.

    Args:
        entry: Its columns, with the first and the last row that name its image.
        old_rows: Number of rows of the dataset to which rows are appended, which come first.
        kind: What images are labelled with.
    """
    what = "split or label" if kind.objects is None else "split, size or orientation"
    other = entry["first_row"] if entry["first_row"] != entry["row"] else entry["last_row"]
    detail = f"row {other} gives the same image another {what}"
    if other <= old_rows:
        detail = f"the dataset has this image with another {what}"
    elif other == entry["row"]:
        detail = f"another row has the id {entry['id']!r}"
    return Reject(
        entry["row"],
        entry["uri"],
        entry["split"],
        format_target(entry["label"]),
        MANIFEST_STAGE,
        "conflict",
        detail,
        entry["id"],
        entry.get("extra") or {},
        entry["span"],
    )


def _number_labels(rows: pa.Table, kind: TargetKind, names: pa.Array) -> pa.Table:
    """Returns rows with the numbers of their labels in a further column."""
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    labels = columns["label"].combine_chunks().cast(kind.listed_type)
    columns["label"], columns["label_id"] = kind.number(labels, names)
    return pa.table(columns)


def _plan_reads(
    spans: Sequence[tuple[str, int, int]], *, has_old: bool
) -> Iterator[tuple[Sequence[tuple[str, int, int]], int, int]]:
    """Yields spans that are read at once, and the first and the last place of what is read of them.

    Spans that are small together are, as each query takes milliseconds; one when there is no row.

    Args:
        spans: Split, span and number of rows of all that have some.
        has_old: Whether rows have the place of an old record, too, and take twice the memory.
    """
    most = _SORTED_ROWS // 2 if has_old else _SORTED_ROWS
    reads: list[list[tuple[str, int, int]]] = []
    total = most
    for each in spans or [(SPLITS[0], 0, 1)]:
        total += each[-1]
        if total > most:
            reads.append([])
            total = each[-1]
        reads[-1].append(each)
    for read in reads:
        parts = -(-sum(rows for *_, rows in read) // most)
        width = -(-(1 << 63) // parts)
        for part in range(parts):
            yield read, part * width, min((part + 1) * width, 1 << 63) - 1


def _slice_spans(rows: pa.Table, spans: Sequence[tuple[str, int, int]]) -> Iterator[pa.Table]:
    """Yields the rows of each span; `rows` are in the order of `_ORDER`."""
    starts, start = {}, 0
    for each in sorted(spans):
        starts[each] = start
        start += each[-1]
    for each in spans:
        yield rows.slice(starts[each], each[-1])
