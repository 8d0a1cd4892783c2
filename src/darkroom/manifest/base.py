"""The dataset that an update starts from: which of its images are those of the new list.

An image is unchanged when its file has the size and the version that the index names.
"""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from darkroom import storage
from darkroom.dataset.index import find_index_files
from darkroom.dataset.layout import REJECTS_FILE, Folders
from darkroom.dataset.named import name_dataset
from darkroom.dataset.rejects import CONVERT_STAGE
from darkroom.errors import DataError
from darkroom.storage.database import create_view
from darkroom.targets.kind import Kind

# An update that removes more than this share of a dataset is probably not meant.
_MOST_REMOVED = 0.1

# Rows that were rejected keep their span, and are tried again.
_BASE = f"""
CREATE TEMP TABLE base AS
SELECT id, span, split, shard, position, "offset", length, source_size, source_version, label,
    {{extra}} AS extra FROM base_index
UNION ALL BY NAME SELECT id, span FROM base_rejects WHERE stage = '{CONVERT_STAGE}'
"""
_TAKEN = """
CREATE TEMP TABLE taken AS
SELECT row, {span} AS span, CASE WHEN source_size = size AND source_version = mtime THEN {{
    'split': base.split, 'shard': shard, 'position': position, 'offset': "offset",
    'length': length, 'is_same': FALSE
}} END AS old, base.label AS old_label, base.extra AS old_extra
FROM base RIGHT JOIN {listed} AS listed USING (id)
"""
_COUNT_REMOVED = "SELECT count(*) FROM base ANTI JOIN {listed} AS listed USING (id)"
# A record is the same when it also has the same label and input columns.
_SAME = """struct_update(old, is_same :=
    {label} IS NOT DISTINCT FROM {old_label} AND {extra} IS NOT DISTINCT FROM old_extra)"""


@dataclass(frozen=True)
class Base:
    """A dataset whose rows are compared with those of a new list.

    Attributes:
        folders: Where its files are.
        fingerprint: Its fingerprint.
        labels: Its label map.
        has_inputs: Whether its index has input columns.
        allows_removals: Whether most of its rows may be missing in the list of the update.
        merges_spans: Whether all rows come into one span.
        planned: List of its rows, to which that of the update is appended; empty: that is whole.
    """

    folders: Folders
    fingerprint: str
    labels: tuple[str, ...]
    has_inputs: bool
    allows_removals: bool = False
    merges_spans: bool = False
    planned: str = ""

    @property
    def places(self) -> dict[str, str]:
        """The places of its parts, as a manifest keeps them for whoever takes its records."""
        examples = name_dataset(self.folders.examples, self.fingerprint)
        return {
            "examples": examples,
            "index": self.folders.index,
            "rejects": self.folders.rejects,
        }

    def match(
        self, connection: duckdb.DuckDBPyConnection, listed: str, scratch: str, *, has_spans: bool
    ) -> int:
        """Makes the table `taken`, with a row for each one of a list: its span, its old record.

        Args:
            connection: Has the rows of the list.
            listed: The name of their table.
            scratch: A local folder.
            has_spans: Whether the list says the spans. Else a row keeps that in which it came, and
                new rows have the next number.

        Returns:
            How many rows of the dataset are not in the list.

        Raises:
            DataError: They are more than a tenth, and nobody has said that they may be removed.
        """
        files = find_index_files(self.folders.index)
        create_view(connection, "base_index", files, scratch)
        rejects = storage.join(self.folders.rejects, REJECTS_FILE)
        create_view(connection, "base_rejects", [rejects], scratch)
        connection.execute(_BASE.format(extra="extra::VARCHAR" if self.has_inputs else "''"))
        newest, count = connection.execute("SELECT max(span), count(*) FROM base").fetchall()[0]
        span = "listed.span" if has_spans else f"coalesce(base.span, {(newest or 0) + 1})"
        span = "0" if self.merges_spans else span
        connection.execute(_TAKEN.format(span=span, listed=listed))
        removed = connection.execute(_COUNT_REMOVED.format(listed=listed)).fetchall()[0][0]
        if removed > _MOST_REMOVED * count and not self.allows_removals:
            raise DataError(
                f"{removed:,} of {count:,} images of {self.folders.examples} are not in the list, "
                f"more than {_MOST_REMOVED:.0%}.",
                "Give the whole list, or --append for new images alone (append= in Python). If "
                "they are to leave the dataset, --allow-removals (allow_removals=).",
            )
        return int(removed)

    def select_old(self, kind: Kind, labels: list[str], *, has_inputs: bool) -> str:
        """Returns the SQL of the column `old` of a kept row."""
        is_prefix = tuple(labels[: len(self.labels)]) == self.labels
        if not is_prefix or has_inputs != self.has_inputs:
            return "old"
        form = "{}" if kind.says is not None else "list_sort({})"
        extra = "extra::VARCHAR" if has_inputs else "''"
        return _SAME.format(
            label=form.format("label"), old_label=form.format("old_label"), extra=extra
        )
