"""The dataset that an update starts from: which of its images are those of the new list.

An image is unchanged when its file has the size and the version that the index names. It stays in
its split, unless the list says another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa

from darkroom import storage
from darkroom.dataset.index import find_index_files
from darkroom.dataset.layout import REJECTS_FILE, Folders
from darkroom.dataset.named import name_dataset
from darkroom.dataset.read_as import ReadAs, join_class_ids, read_read_as
from darkroom.dataset.rejects import CONVERT_STAGE
from darkroom.dataset.splits import FOLD, SPLITS
from darkroom.errors import DataError
from darkroom.manifest.identities import keep_known
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime import progress
from darkroom.runtime.text import format_count
from darkroom.storage.database import create_view
from darkroom.targets.kind import TargetKind

# An update that removes more than this share of a dataset is probably not meant.
_MOST_REMOVED = 0.1

_SPLIT = f"split::ENUM({str(SPLITS)[1:-1]})"
# Rows that were rejected keep their span, and are tried again. Numbers and hashes need a third of
# the memory of the columns, so that they are joined in memory.
_BASE = f"""
CREATE TEMP VIEW base AS
SELECT id, span, {_SPLIT} AS old_split, shard::INTEGER AS shard,
    position::INTEGER AS position, "offset", length::INTEGER AS length,
    CASE WHEN source_size IS NOT NULL AND source_version IS NOT NULL
        THEN hash(source_size, source_version) END AS state, {{says}} AS said,
    {{old_image_id}} AS old_image_id{{more}}
FROM base_index
UNION ALL BY NAME SELECT id, span FROM base_rejects WHERE stage = '{CONVERT_STAGE}'
"""
# A row for each one of the list, and one without `row` for each of the base that is not in it.
_TAKEN = f"""
CREATE OR REPLACE TEMP TABLE taken AS SELECT listed.row, "order", base.* EXCLUDE (id, shard, state),
    CASE WHEN base.state = listed.state THEN shard END AS shard,
    old_split <> hashed AS keeps_split FROM base
FULL JOIN (SELECT id, row, "order", hash(size, mtime) AS state,
    CASE WHEN declared = '' THEN {_SPLIT} END AS hashed FROM parsed) AS listed USING (id)
"""
_HAS_IDS = "SELECT {old_image_id} = source_id::VARCHAR FROM base_index LIMIT 1"
_COUNTS = "SELECT max(span), count(*) FILTER (row IS NULL) FROM taken"
# With the order as a condition, whoever asks for a range of it joins the rows of that range alone.
_LISTED = """
CREATE TEMP VIEW listed AS SELECT
    parsed.* REPLACE (
        {span} AS span, if(keeps_split, old_split::VARCHAR, split) AS split,
        if(old_image_id IS NULL, label, {label}) AS label
    ),
    taken.* EXCLUDE (row, "order", span) FROM parsed JOIN taken USING (row, "order")
"""
_NAMED = """
INSERT INTO known_rows
SELECT row FROM parsed JOIN taken USING (row) WHERE {image_id} IS NULL AND old_image_id IS NOT NULL
"""
# Rows of which the list alone would say another id or split; mostly there are none.
_KEEPS = "SELECT EXISTS (FROM known_rows) OR EXISTS (FROM taken WHERE keeps_split)"
_KEPT = """
SELECT bit_xor(md5_number(concat_ws(chr(31), row, key, split, {image_id}))), count_if(is_kept)
FROM (SELECT *, {has_splits} AND keeps_split AND declared = '' AS is_kept FROM placed
) WHERE is_kept OR row IN (FROM known_rows)
"""
_STAYING = "SELECT if(bool_or(keeps_split), count(old_split), 0) FROM kept WHERE declared = ''"
# A record is the same when it also has the same label and input columns.
_OLD = """CASE WHEN shard IS NOT NULL THEN {{
    'split': old_split::VARCHAR, 'shard': shard::BIGINT, 'position': position::BIGINT,
    'offset': "offset", 'length': length::BIGINT, 'is_same': {is_same}
}} END"""


@dataclass(frozen=True)
class Base:
    """A dataset whose rows are compared with those of a new list.

    Attributes:
        folders: Where its files are.
        fingerprint: Its fingerprint.
        labels: Its label map.
        columns: Those of its index.
        allows_removals: Whether most of its rows may be missing in the list of the update.
        merges_spans: Whether all rows come into one span.
        planned: List of its rows, to which that of the update is appended; empty: that is whole.
        planned_rows: How many that list has.
        completed: Ids of images of which the list that is appended has lost objects alone.
        has_decisions: Whether it was made with decisions.
    """

    folders: Folders
    fingerprint: str
    labels: tuple[str, ...]
    columns: pa.Schema
    allows_removals: bool = False
    merges_spans: bool = False
    planned: str = ""
    planned_rows: int = 0
    completed: Sequence[str] = ()
    has_decisions: bool = False

    @property
    def has_inputs(self) -> bool:
        """Whether its index has input columns."""
        return "extra" in self.columns.names

    @property
    def has_groups(self) -> bool:
        """Whether its rows were placed by groups or classes, so that they stay where they are."""
        return "group" in self.columns.names

    @property
    def has_folds(self) -> bool:
        """Whether its rows have the numbers of folds."""
        return self.has_inputs and FOLD in [each.name for each in self.columns.field("extra").type]

    @property
    def places(self) -> dict[str, str]:
        """The places of its parts, as a manifest keeps them for whoever takes its records."""
        examples = name_dataset(self.folders.examples, self.fingerprint)
        return {
            "examples": examples,
            "index": self.folders.index,
            "rejects": self.folders.rejects,
        }

    def open(self, connection: duckdb.DuckDBPyConnection, scratch: str) -> None:
        """Makes views of its index and its rejects: `base_index` and `base_rejects`."""
        files = find_index_files(self.folders.index)
        create_view(connection, "base_index", files, scratch)
        rejects = storage.join(self.folders.rejects, REJECTS_FILE)
        create_view(connection, "base_rejects", [rejects], scratch)

    def match(
        self,
        connection: duckdb.DuckDBPyConnection,
        scratch: str,
        kind: TargetKind,
        options: ManifestOptions,
        *,
        has_spans: bool,
        has_ids: bool,
    ) -> int:
        """Makes the view `listed`: rows of a list with their spans, and the places of old records.

        Args:
            connection: Has the rows of the list, as the view `parsed`, and those of `open`.
            scratch: A local folder.
            kind: What the images are labelled with.
            options: How rows became entries.
            has_spans: Whether the list says the spans. Else a row keeps that in which it came, and
                new rows have the next number.
            has_ids: Whether it says the ids. Else a file of the dataset keeps its id there.

        Returns:
            How many rows of the dataset are not in the list.

        Raises:
            DataError: They are more than a tenth, and nobody has said that they may be removed.
        """
        more = ', "group" AS old_group' if self.has_groups else ""
        if self.has_folds:
            more += f", try_cast(extra.{FOLD} AS TINYINT) AS old_fold"
        # An image of which an object was lost differs, and is read again: so that counts again.
        column = "label" if kind.listed is None else "listed"
        says, old_image_id = "NULL", self._find_old_id(kind)
        if self._has_kind(kind):
            number = old_image_id and "source_id"
            says = _hash_content(kind, column, self.has_inputs, number)
        connection.execute("CREATE TEMP TABLE known_rows (row BIGINT)")
        found = old_image_id or "NULL::VARCHAR"
        connection.execute(_BASE.format(says=says, old_image_id=found, more=more))
        connection.execute(_TAKEN)
        newest, removed = connection.execute(_COUNTS).fetchall()[0]
        may_be_known = (removed or self.planned) and not has_ids
        if may_be_known and keep_known(connection, options, self.planned_rows, scratch):
            connection.execute(_TAKEN)
            newest, removed = connection.execute(_COUNTS).fetchall()[0]
        if removed and not self.allows_removals:
            count = connection.execute("SELECT count(*) FROM base").fetchall()[0][0]
            if removed > _MOST_REMOVED * count:
                raise DataError(
                    f"{removed:,} of {count:,} images of {self.folders.examples} are not in the "
                    f"list, more than {_MOST_REMOVED:.0%}.",
                    "Give the whole list, or --append for a part of it (append= in Python). "
                    "If they should leave the dataset: --allow-removals (allow_removals=).",
                )
        span = "parsed.span" if has_spans else f"coalesce(taken.span, {(newest or 0) + 1})"
        span = "0" if self.merges_spans else span
        image_id = kind.listed_id
        connection.execute(_NAMED.format(image_id=image_id))
        # Files number their images alike, so a list that is appended gives no image another id.
        ids = ("old_image_id", image_id) if self.planned else (image_id, "old_image_id")
        label = kind.identified.format(image_id=f"coalesce({', '.join(ids)})")
        connection.execute(_LISTED.format(span=span, label=label))
        return int(removed)

    def complete(
        self, connection: duckdb.DuckDBPyConnection, read_as: ReadAs, options: ManifestOptions
    ) -> ReadAs:
        """Returns how a list was read, with what its rows and classes have of the dataset.

        Args:
            connection: Has the view `kept` of the rows that are planned, and what `match` makes.
            read_as: How it was read alone.
            options: How rows became entries.
        """
        if old := read_read_as(self.folders.examples):
            read_as = replace(read_as, class_ids=join_class_ids([old, read_as]))
        if self.planned or self._places_together(options):
            return read_as
        # Where each is in the split of its hash, nothing shows that the dataset was asked.
        kept = connection.execute(_STAYING).fetchall()[0][0]
        return replace(read_as, unassigned=read_as.unassigned - kept, kept=kept)

    def _places_together(self, options: ManifestOptions) -> bool:
        """Tells whether a conversion from nothing may give its splits, but not by hash."""
        return self.has_groups or options.places_rows

    def fingerprint_kept(
        self,
        connection: duckdb.DuckDBPyConnection,
        fingerprint: str,
        kind: TargetKind,
        options: ManifestOptions,
    ) -> str:
        """Returns the fingerprint of a list with what its rows have of the dataset, if any has.

        Args:
            connection: Has the view `placed` of the rows that are planned, and what `match` makes.
            fingerprint: That of the list.
            kind: What the images are labelled with.
            options: How rows became entries.
        """
        if not connection.execute(_KEEPS).fetchall()[0][0]:
            return fingerprint
        has_splits = not self._places_together(options)
        kept = connection.execute(_KEPT.format(has_splits=has_splits, image_id=kind.listed_id))
        [(number, images)] = kept.fetchall()
        if images:
            progress.note(
                f"The list says no split of {format_count(images, 'image')}: each stays in that "
                f"of {self.folders.examples}."
            )
        return fingerprint if number is None else f"{fingerprint}-{number % (1 << 128):032x}"

    def select_old(
        self, kind: TargetKind, labels: list[str], source_id: str | None, *, has_inputs: bool
    ) -> str:
        """Returns the SQL of the column `old` of a kept row; `source_id` is that of its number."""
        keeps_numbers = tuple(labels[: len(self.labels)]) == self.labels
        may_be_same = self._has_kind(kind) and keeps_numbers and has_inputs == self.has_inputs
        says = _hash_content(kind, "label", has_inputs, source_id)
        return _OLD.format(is_same=f"said = {says}" if may_be_same else "FALSE")

    def has_ids_of_list(self, connection: duckdb.DuckDBPyConnection, kind: TargetKind) -> bool:
        """Tells whether its records have the ids of its list; all or none have.

        Args:
            connection: Has the views of `open`.
            kind: What the images of the update are labelled with.
        """
        old_image_id = self._find_old_id(kind)
        if old_image_id is None:
            return False
        found = connection.execute(_HAS_IDS.format(old_image_id=old_image_id)).fetchall()
        return bool(found == [(True,)])

    def _find_old_id(self, kind: TargetKind) -> str | None:
        """Returns the SQL of the id that its list has for an image; None where it keeps none."""
        if kind.image_id is None or not self._has_kind(kind):
            return None
        if "source_id" not in self.columns.names:
            return None
        return kind.image_id.format(column="label" if kind.listed is None else "listed")

    def _has_kind(self, kind: TargetKind) -> bool:
        """Tells whether its images are labelled with the same kind of target."""
        return bool(self.columns.field("label").type == kind.column)


def _hash_content(kind: TargetKind, column: str, has_inputs: bool, source_id: str | None) -> str:
    """Returns the SQL of a hash of all of a row that its record has, with the label in a column."""
    extra = "extra::VARCHAR" if has_inputs else "''"
    return f"hash({kind.same.format(column=column)}, {extra}, {source_id or 'NULL'})"
