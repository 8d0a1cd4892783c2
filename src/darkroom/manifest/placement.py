"""Places rows in splits and folds, so that groups stay together and classes keep their shares.

A *unit* is a group, or a row that is in none. Groups have a name in a column, or are in the list of
`darkroom duplicates`, or in the dataset that is updated; those that share a row are one. Rows that
say their split, or have one in that dataset, are placed, and the others of their unit are where
most of these are. A unit without such rows has the split of the hash of its name. Stratified, it
has the one that lacks most of its classes (`manifest.groups`).
"""

from __future__ import annotations

import contextlib
import os
from itertools import chain

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from darkroom.dataset.keys import make_order_hash
from darkroom.dataset.manifest import MAX_ROW_GROUP_ROWS
from darkroom.dataset.schema import Schema
from darkroom.dataset.splits import FOLD, SPLITS, TRAIN, assign_split
from darkroom.errors import DataError, UsageError
from darkroom.manifest.base import Base
from darkroom.manifest.groups import deal_units, join_groups
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime import progress
from darkroom.runtime.arrays import Array
from darkroom.runtime.text import format_count, suggest
from darkroom.storage.database import create_view
from darkroom.storage.parquet import read_batches, report_damage
from darkroom.targets.kind import TargetKind, find_kind

_LIST_COLUMNS = {"group": "BIGINT", "key": "VARCHAR"}
_NO_GROUPS = 'CREATE TEMP TABLE groups ("group" BIGINT, key VARCHAR)'
# What is old is null where no dataset is updated.
_KNOWN = """
CREATE TEMP VIEW known AS
FROM kept UNION ALL BY NAME SELECT NULL::VARCHAR AS old_split, NULL::VARCHAR AS old_group,
    NULL::TINYINT AS old_fold WHERE FALSE
"""
# Numbers have no null: without a split or a fold they are -1. With --append the list says the
# splits of the dataset's own rows, too.
_MEMBERS = """
CREATE TEMP VIEW members AS
SELECT row, "order" AS place, key, old_group,
    coalesce(nullif(trim({name}), ''), old_group) AS name,
    coalesce(list_position({splits}, coalesce(nullif(declared, ''), old_split)), 0) - 1 AS given,
    list_position({splits}, split) - 1 AS hashed,
    if(old_fold < {folds}, old_fold, -1) AS fold,
    declared = '' OR (old_split IS NOT NULL AND {appends}) AS counts
FROM known
"""
_ROWS = "SELECT row, place, given, hashed, fold, counts, name IS NOT NULL FROM members"
_LISTED = "SELECT count(*), min(key), count(row) FROM groups LEFT JOIN members USING (key)"
# The list is small enough to be looked up in, the source may not be.
_UNKNOWN = """
WITH found AS (SELECT DISTINCT key FROM staged SEMI JOIN groups USING (key))
SELECT count(*), min(key) FROM groups ANTI JOIN found USING (key)
"""
_HINT = "Make the list again with darkroom duplicates RECORDS --near."
# A hash takes a fraction of the memory of a name. Two names of one hash would be one group.
_LINKS = """
SELECT row, hash(name) FROM members WHERE name IS NOT NULL
UNION ALL SELECT row, hash(old_group) FROM members WHERE old_group IS NOT NULL
UNION ALL SELECT row, hash('listed', "group") FROM members JOIN groups USING (key)
"""
# Classes are numbered from the rarest. That of a row is the rarest of its labels, 0 without any.
_LABELS = "CREATE TEMP VIEW labels AS SELECT row, {names} AS label FROM kept"
_CLASSES = """
CREATE TEMP TABLE classes AS
SELECT label, row_number() OVER (ORDER BY count(*), label) AS number FROM labels
WHERE label IS NOT NULL GROUP BY label
"""
_CLASS_OF_ROWS = "SELECT row, min(number) FROM labels JOIN classes USING (label) GROUP BY row"
_NAMES = "SELECT unit, coalesce(name, key) AS name FROM naming JOIN members USING (row)"


def check_placement(schema: Schema, options: ManifestOptions) -> None:
    """Checks that the rows of a source can be placed as the options say.

    Raises:
        DataError: The group column is missing, or there is already a column of folds.
        UsageError: It has no classes.
    """
    names, column = [name for name, _ in schema.inputs], options.group_column
    if column is not None and column not in names:
        raise DataError(
            f"group_column is {column!r}, and the further columns of the source are {names}.",
            suggest(column, names, "Name a column that is neither split, image nor label.")
            + " If --columns names columns (columns= in Python), it must name this one, too.",
        )
    if options.folds is not None and FOLD in map(str.lower, names):
        raise DataError(
            f"The source has a column {FOLD!r} already, which folds would add.",
            "If it has the folds, leave folds out. Else rename it.",
        )
    if options.stratify and (find_kind(schema.target_kind).names is None or not schema.targets):
        found = "numbers" if schema.targets else "no labels"
        raise UsageError(f"stratify needs classes, and the source has {found}.", "Leave it out.")


def place_rows(
    connection: duckdb.DuckDBPyConnection,
    schema: Schema,
    kind: TargetKind,
    options: ManifestOptions,
    base: Base | None,
    scratch: str,
) -> None:
    """Makes the view `placed`: the rows of `kept` with their split, group and fold.

    Args:
        connection: Has the view `kept`, with the columns of `Base.match` if there is a base.
        schema: The columns of the source.
        kind: What rows are labelled with.
        options: How rows are placed.
        base: The dataset that is updated.
        scratch: A local folder.

    Raises:
        DataError: The list of groups is damaged, or of another dataset.
    """
    name, column = "NULL::VARCHAR", options.group_column
    if column is not None:
        name = "struct_extract(extra, '{}')::VARCHAR".format(column.replace("'", "''"))
    connection.execute(_KNOWN)
    how = {"name": name, "folds": options.folds or 0, "appends": bool(base and base.planned)}
    connection.execute(_MEMBERS.format(splits=[*SPLITS], **how))
    if options.groups is None:
        connection.execute(_NO_GROUPS)
    else:
        _read_groups(connection, options.groups, scratch)
    if options.stratify:
        connection.execute(_LABELS.format(names=kind.listed_names))
        connection.execute(_CLASSES)
    placing = _Placing(connection, options, scratch)
    splits = placing.choose_splits()
    placing.warn_of_large(splits)
    split = np.where(placing.given >= 0, placing.given, splits[placing.unit])
    fold = None
    if options.folds is not None:
        fold = placing.choose_folds(splits, options.folds)[placing.unit]
    path = os.path.join(scratch, "placed.parquet")
    reader = connection.sql("FROM known").to_arrow_reader(MAX_ROW_GROUP_ROWS)
    # Arrow joins them here: a join in the database would take more memory than it has.
    none = pa.RecordBatch.from_pylist([], reader.schema)
    with contextlib.ExitStack() as stack:
        writer = None
        for batch in chain([none], reader):
            rows = placing.find(batch.column(batch.schema.get_field_index("row")).to_numpy())
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            columns["split"] = pa.array(SPLITS).take(pa.array(split[rows]))
            columns["group"] = placing.name_groups(rows)
            if fold is not None:
                extra = columns["extra"].flatten() if schema.inputs else []
                names = [*(name for name, _ in schema.inputs), FOLD]
                columns["extra"] = pa.StructArray.from_arrays([*extra, pa.array(fold[rows])], names)
            placed = pa.RecordBatch.from_arrays([*columns.values()], [*columns])
            writer = writer or stack.enter_context(pq.ParquetWriter(path, placed.schema))
            writer.write_batch(placed)
    create_view(connection, "placed", [path], scratch)


def _read_groups(connection: duckdb.DuckDBPyConnection, path: str, scratch: str) -> None:
    """Creates the view `groups` of a list of groups.

    Raises:
        DataError: The list is damaged, or of another dataset.
    """
    with report_damage(f"The list of groups {path} cannot be read", _HINT):
        # DuckDB would not name the file.
        for _ in read_batches(path, [*_LIST_COLUMNS]):
            pass
    create_view(connection, "groups", [path], scratch, _LIST_COLUMNS, hint=_HINT)
    count, first, found = connection.execute(_LISTED).fetchall()[0]
    if count and not found:
        raise DataError(
            f"The source has none of the {format_count(count, 'key')} of {path}, as {first!r}: it "
            "is the list of another dataset.",
            "Give the list of darkroom duplicates for a conversion of this source.",
        )
    unknown, first = connection.execute(_UNKNOWN).fetchall()[0]
    if unknown:
        progress.note(
            f"Warning: {unknown:,} of {format_count(count, 'key')} in {path} not found in the "
            f"source, as {first!r}."
        )


class _Placing:
    """Rows and their units, by their numbers in the order of hashes, which is not the source's.

    Attributes:
        row: Numbers of the rows in the source, [N], as all that follow.
        given: The split that a row has already, as a place in SPLITS; -1 without one.
        fold: The fold that it has already; -1 without one.
        counts: Whether it counts for the shares of splits.
        label: Its class, a place in `classes`.
        unit: Its unit.
        first: The first row of each unit, [U], as all that follow.
        size: Number of its rows.
        hashed: Split by the hash of its name.
        place: Hash of its name.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, options: ManifestOptions, scratch: str
    ) -> None:
        self.options = options
        found = _fetch(connection, _ROWS)
        order = np.argsort(found[1])
        row, place, given, hashed, fold, counts, has_name = (each[order] for each in found)
        self.row, self.given, self.fold, self.counts = row, given, fold, counts
        self.by_row = np.argsort(row)
        self.label, self.classes = np.zeros(len(row), np.int64), ["no label"]
        if options.stratify:
            labelled, label = _fetch(connection, _CLASS_OF_ROWS)
            self.label[self.find(labelled)] = label
            query = "SELECT label FROM classes ORDER BY number"
            self.classes += [repr(label) for (label,) in connection.execute(query).fetchall()]
        linked, links = _fetch(connection, _LINKS)
        groups = np.unique(links, return_inverse=True)[1]
        joined = join_groups(len(row), self.find(linked), groups)
        if options.group_column is not None and not has_name.all():
            empty = format_count(int((~has_name).sum()), "row")
            progress.note(f"{empty} without {options.group_column}: each is a group of its own.")
        units = np.unique(joined, return_inverse=True, return_counts=True)
        self.first, self.unit, self.size = units
        # The first row that has a name names its unit, else the first one does, by its key.
        by_name = np.argsort(~has_name, kind="stable")
        naming = by_name[np.unique(self.unit[by_name], return_index=True)[1]]
        named = np.flatnonzero((self.size > 1) | has_name[naming])
        path = os.path.join(scratch, "naming.parquet")
        pq.write_table(pa.table({"unit": named, "row": row[naming[named]]}), path)
        create_view(connection, "naming", [path], scratch)
        self.hashed, self.place = hashed[self.first], place[self.first]
        self.names = connection.sql(_NAMES).to_arrow_reader(MAX_ROW_GROUP_ROWS).read_all()
        hash_order, seed = make_order_hash(options.seed), options.seed
        for batch in self.names.to_batches():
            for unit, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                self.hashed[unit] = SPLITS.index(assign_split(text, seed, options.ratios))
                self.place[unit] = hash_order(text)
        self.name_of_unit = np.full(len(self.first), -1)
        self.name_of_unit[self.names["unit"].to_numpy()] = np.arange(len(self.names))

    def name_groups(self, rows: Array) -> pa.Array:
        """Returns the names of the groups of some rows; null for rows in none."""
        places = self.name_of_unit[self.unit[rows]]
        return self.names["name"].take(pa.array(places, mask=places < 0)).combine_chunks()

    def find(self, rows: Array) -> Array:
        """Returns the places of rows of the source."""
        return self.by_row[np.searchsorted(self.row, rows, sorter=self.by_row)]

    def choose_splits(self) -> Array:
        """Returns the split of each unit: that of most placed rows, else by class or by hash."""
        has, train = self.given >= 0, SPLITS.index(TRAIN)
        placed = _count(self.unit[has], self.given[has], (len(self.first), len(SPLITS)))
        is_new = ~placed.any(axis=1)
        chosen = np.where(is_new, self.hashed, placed.argmax(axis=1))
        shares = np.array(self.options.ratios.as_tuple())
        if not self.options.stratify:
            return chosen
        totals = np.bincount(self.label[self.counts], minlength=len(self.classes))
        is_alone = is_new & (self.size == 1) & (totals[self.label[self.first]] == 1)
        chosen[is_new] = -1
        if shares[train] and is_alone.any():
            chosen[is_alone] = train
            name = self.classes[self.label[self.first[is_alone]].min()]
            count = format_count(int(is_alone.sum()), "class")
            progress.note(f"{count} with one image, as {name}: in train.")
        units, splits = self.deal(self.counts, np.where(has, self.given, chosen[self.unit]), shares)
        chosen[units] = splits
        if not is_new.any():
            progress.note("stratify places no row: each has its split already.")
            return chosen
        own = np.where(has, self.given, chosen[self.unit])[self.counts]
        aims = totals[:, None] * shares
        found = _count(self.label[self.counts], own, aims.shape)
        label, split = np.unravel_index(np.abs(found - aims).argmax(), aims.shape)
        progress.note(
            f"Stratified. The class farthest from its shares is {self.classes[label]}: "
            f"{found[label, split]:,} of {format_count(int(totals[label]), 'image')} are in "
            f"{SPLITS[split]}, and its share would be {aims[label, split]:,.1f}."
        )
        return chosen

    def choose_folds(self, splits: Array, num_folds: int) -> Array:
        """Returns the fold of each unit: that of its first row with one, else by class or hash."""
        has = np.flatnonzero(self.fold >= 0)
        placed, rows = np.unique(self.unit[has], return_index=True)
        folds = np.full(len(splits), -1) if self.options.stratify else self.place % num_folds
        folds[placed] = self.fold[has[rows]]
        for split in range(len(SPLITS)):
            own = splits[self.unit] == split
            units, bins = self.deal(own, folds[self.unit], np.full(num_folds, 1 / num_folds))
            folds[units] = bins
        return folds

    def deal(self, own: Array, bins: Array, shares: Array) -> tuple[Array, Array]:
        """Gives units without a bin to bins, so that these get their shares of each class.

        Args:
            own: Whether a row counts.
            bins: Its bin; -1 without one.
            shares: The share of each bin, [B].

        Returns:
            The numbers of the units, and their bins.
        """
        label, is_free = self.label[own], bins[own] < 0
        aims = np.bincount(label, minlength=len(self.classes))[:, None] * shares
        lacking = aims - _count(label[~is_free], bins[own][~is_free], aims.shape)
        lacking[:, shares == 0] = -np.inf
        return deal_units(self.unit[own][is_free], label[is_free], lacking)

    def warn_of_large(self, splits: Array) -> None:
        """Warns of the new group that is the most too large for the split in which it is."""
        rows = int(self.counts.sum())
        aims = np.array(self.options.ratios.as_tuple())[splits] * rows
        is_new = np.bincount(self.unit, self.given >= 0, len(aims)) == 0
        excess = np.where(is_new & (self.size > 1), self.size - aims, 0)
        if excess.max(initial=0) >= 1:
            unit = int(excess.argmax())
            name = self.name_groups(self.first[[unit]])[0].as_py()
            progress.note(
                f"Warning: the group {name!r} has {self.size[unit]:,} of "
                f"{format_count(rows, 'row')}, and {SPLITS[splits[unit]]}, where it is, should "
                f"have {aims[unit]:,.0f} in all."
            )


def _count(kinds: Array, bins: Array, shape: tuple[int, ...]) -> Array:
    """Returns how many rows of each kind each bin has."""
    return np.bincount(kinds * shape[1] + bins, minlength=shape[0] * shape[1]).reshape(shape)


def _fetch(connection: duckdb.DuckDBPyConnection, query: str) -> list[Array]:
    """Returns the columns of numbers that a query gives."""
    # As a whole: DuckDB may wait forever for a reader of batches while it joins on disk.
    return [*map(np.asarray, connection.execute(query).fetchnumpy().values())]
