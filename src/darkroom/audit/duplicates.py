"""Finds images that are in a dataset more than once, by its index.

There are three kinds of groups. The images of a `bytes` group have the same bytes (SHA-256). Those
of a `pixels` group have the same pixels in different bytes, as after a lossless change of the file,
or as a JPEG and the PNG that Pillow, OpenCV or TensorFlow make of it. Those of a `near` group look
like one of them: candidates by perceptual hashes and features, of which the pixels are compared
where OpenCV is there. A person decides which are copies, so all images of such a group are kept.

One image of each group is kept: the one in the test split, else in the eval split, else in train.
Of several in that split, the one with the smallest key is kept. So the splits that measure a model
stay as they are, and leakage is removed from train. If labels differ, all images are kept: a person
has to decide which label is right, and validation keeps reporting them.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.dataset import layout
from darkroom.dataset.commit import read_output
from darkroom.dataset.index_queries import (
    create_index_view,
    match_decoded_copies,
    select_twins,
)
from darkroom.dataset.layout import DUPLICATES_SCHEMA
from darkroom.dataset.named import find_named
from darkroom.dataset.opening import check_index_files, check_outside
from darkroom.errors import DataError, UsageError
from darkroom.features.alike import KnownPairs
from darkroom.features.neighbours import find_neighbours
from darkroom.features.opening import open_features
from darkroom.images.near_records import create_near_groups
from darkroom.runtime import progress
from darkroom.runtime.markup import Html, element, join_html
from darkroom.runtime.result import FAIR, GOOD, Outcome, Result, list_facts
from darkroom.runtime.table import Drawn, Table
from darkroom.runtime.text import format_count
from darkroom.storage import ledger
from darkroom.storage.database import create_view, open_database
from darkroom.storage.parquet import BATCH_ROWS, read_batches
from darkroom.targets.kind import find_kind

# Limits of a card: groups, and images of each.
_MAX_GROUPS = _MAX_IMAGES = 3
BYTES, PIXELS, NEAR = "bytes", "pixels", "near"

_MEMBER = "key, row, uri, split, label, said, sha256, pixels"
_CANDIDATES = """
SELECT '{kind}' AS kind, {column} AS content, * FROM ({twins}) WHERE {column} IS NOT NULL
"""
_NEAR_CANDIDATES = """
SELECT 'near' AS kind, number::VARCHAR AS content, key, row, uri, split, label, said,
    sha256, coalesce(pixels, sha256) AS pixels
FROM matched JOIN near_looks USING (row)
"""
# After sorting, the images of a group are adjacent. Sorting can use the disk; grouping cannot.
_SORTED = """
SELECT * FROM ({candidates})
ORDER BY kind, content, list_position(['test', 'eval', 'train'], split), key
"""
_COUNT_SURPLUS = "SELECT count(DISTINCT hash(key)) FROM listed WHERE NOT keep"


@dataclass(frozen=True)
class Duplicates(Result):
    """The result of `find_duplicates`.

    Attributes:
        path: The Parquet file with one row for each image of a group: `group`, `kind`, `key`,
            `row`, `uri`, `split`, `label`, `keep`, `labels_differ`, `splits_differ`.
        bytes_groups: Groups of images with the same bytes.
        pixels_groups: Groups of images with the same pixels in different bytes.
        surplus: Images that are not kept: `convert(..., exclude=path)` leaves them out.
        labels_differ: Groups with more than one label; all their images are kept.
        splits_differ: Groups with images in more than one split.
        has_pixels: Whether pixels were compared, which needs a conversion with checks `full`.
        near_groups: Groups of images that look like one of them; None where not asked for.
    """

    path: str
    bytes_groups: int
    pixels_groups: int
    surplus: int
    labels_differ: int
    splits_differ: int
    has_pixels: bool
    near_groups: int | None = None

    @property
    def _num_groups(self) -> int:
        return self.bytes_groups + self.pixels_groups + (self.near_groups or 0)

    def describe(self) -> Outcome:
        """Returns what it says to people; its card shows the first groups."""
        same_pixels = format_count(self.pixels_groups, "group")
        labels, near = format_count(self.labels_differ, "group"), ""
        if self.near_groups is not None:
            near = f"{format_count(self.near_groups, 'group')}, of which all are kept"
        facts = {
            "Same bytes": format_count(self.bytes_groups, "group"),
            "Same pixels": same_pixels if self.has_pixels else "unknown (needs checks full)",
            "Look alike": near,
            "In two splits": format_count(self.splits_differ, "group"),
            "Two labels": f"{labels}, of which all images are kept",
            "To leave out": format_count(self.surplus, "image"),
            "List": self.path,
        }
        if not self._num_groups:
            return Outcome("No image occurs more than once", list_facts(facts), GOOD)
        title = f"{format_count(self._num_groups, 'group')} of images that occur more than once"
        return Outcome(title, list_facts(facts), FAIR)

    def _repr_html_(self) -> str:
        """Returns it as a notebook shows it, with the first groups; they are read for that."""
        shown = _make_groups(self.path, self._num_groups) if self._num_groups else None
        return self.describe()._replace(more=[shown]).to_card()


@storage.report_failures
@progress.shown
def find_duplicates(
    directory: str | os.PathLike[str],
    output: str | os.PathLike[str] = layout.DUPLICATES_FILE,
    *,
    overwrite: bool = False,
    near: bool = False,
) -> Duplicates:
    """Finds images that are in a dataset more than once, and lists them in a Parquet file.

    Args:
        directory: A dataset; local or remote.
        output: The Parquet file, outside of the dataset.
        overwrite: Whether a file that exists is replaced.
        near: Whether images that look alike are groups, too. All of these are kept.

    Returns:
        The path of the file, and how many groups there are.

    Raises:
        DataError: The folder is not a dataset, or its index is missing or damaged.
        OutputError: `output` exists already, or is in the dataset.
        UsageError: The name of `output` does not end in `.parquet`.
        OSError: The dataset cannot be read, or the file cannot be written.
    """
    named, path = find_named(directory), storage.absolute(output)
    # A conversion that gets the list tells its form by the ending.
    if not path.lower().endswith(".parquet"):
        raise UsageError(
            f"The list is a Parquet file, and the name {path} does not end in .parquet.",
            f"Name it {os.path.splitext(path)[0]}.parquet (--output).",
        )
    root, dataset = read_output(named)
    check_outside(named, path, "The list")
    ledger.check_output_file(path, overwrite=overwrite)
    check_index_files(root, dataset)
    index_dir, kind = storage.join(root, layout.INDEX_FOLDER), find_kind(dataset.target.kind)
    with (
        progress.step("Comparing"),
        tempfile.TemporaryDirectory(prefix="darkroom-") as scratch,
        open_database(scratch, has_objects=bool(kind.objects)) as connection,
    ):
        create_index_view(connection, "records", index_dir, scratch, kind.told, kind.said)
        records = (root, index_dir) if near else None
        return _write_groups(connection, path, dataset.checks == "full", scratch, near=records)


def _write_groups(
    connection: duckdb.DuckDBPyConnection,
    path: str,
    has_pixels: bool,
    scratch: str,
    *,
    near: tuple[str, str] | None = None,
) -> Duplicates:
    """Writes the list of all groups to `path`, and returns what is in it.

    `near` has the folders of dataset and index; None: images that look alike are not searched.
    The list is complete before it replaces an earlier one.
    """
    match_decoded_copies(connection)
    if near:
        _compare_looks(connection, near)
    written = os.path.join(scratch, "duplicates.parquet")
    counts: Counter[str] = Counter()
    with pq.ParquetWriter(written, DUPLICATES_SCHEMA) as writer:
        records = _find_groups(connection, counts, near is not None)
        while batch := list(islice(records, BATCH_ROWS)):
            writer.write_table(pa.Table.from_pylist(batch, schema=DUPLICATES_SCHEMA))
    create_view(connection, "listed", [written], scratch)
    surplus = connection.execute(_COUNT_SURPLUS).fetchall()[0][0]
    storage.replace_file(written, path)
    return Duplicates(
        path,
        bytes_groups=counts[BYTES],
        pixels_groups=counts[PIXELS],
        surplus=surplus,
        labels_differ=counts["labels_differ"],
        splits_differ=counts["splits_differ"],
        has_pixels=has_pixels,
        near_groups=counts[NEAR] if near else None,
    )


def _compare_looks(connection: duckdb.DuckDBPyConnection, records: tuple[str, str]) -> None:
    """Creates the groups of images that look alike, from the folders of dataset and index."""
    features = open_features(records[1])
    neighbours = None if features is None else find_neighbours(features)
    compared = create_near_groups(connection, records, neighbours, KnownPairs)
    if compared.left_out:
        progress.note(compared.left_out)
    if not compared.is_verified:
        progress.note("Groups are not verified on pixels: that needs OpenCV, the extra `reader`.")


def _find_groups(
    connection: duckdb.DuckDBPyConnection, counts: Counter[str], near: bool
) -> Iterator[dict[str, Any]]:
    """Yields the images of all groups, and counts the groups."""
    kinds = {BYTES: "sha256", PIXELS: "pixels"}
    twins = select_twins(_MEMBER)
    queries = [_CANDIDATES.format(kind=kind, column=kinds[kind], twins=twins) for kind in kinds]
    queries += [_NEAR_CANDIDATES] if near else []
    query = _SORTED.format(candidates=" UNION ALL ".join(queries))
    batches = connection.sql(query).to_arrow_reader(BATCH_ROWS)
    records = (record for batch in batches for record in batch.to_pylist())
    for (kind, _), same in groupby(records, itemgetter("kind", "content")):
        members = list(same)
        # What is the same in another way, too, is a group of that kind.
        beside = {PIXELS: "sha256", NEAR: "pixels"}.get(kind)
        if len(members) == 1 or (beside and not _differ(members, beside)):
            continue
        # Places in a copy that is cut or turned are other ones.
        labels_differ = _differ(members, "label" if kind == NEAR else "said")
        splits_differ = _differ(members, "split")
        counts.update([kind, "groups"])
        counts["labels_differ"] += labels_differ and kind != NEAR
        counts["splits_differ"] += splits_differ and kind != NEAR
        for place, member in enumerate(members):
            yield {
                **member,
                "group": counts["groups"],
                "keep": place == 0 or labels_differ or kind == NEAR,
                "labels_differ": labels_differ,
                "splits_differ": splits_differ,
            }


def _differ(members: Sequence[dict[str, Any]], name: str) -> bool:
    # A record without a label conflicts with no other.
    return len({member[name] for member in members} - {None}) > 1


def _make_groups(path: str, count: int) -> Html | None:
    """Returns the images of the first groups; None if the list is not there any more."""
    columns = ["group", "kind", "uri", "split", "label"]
    try:
        batch = next(read_batches(path, columns))
        first = pa.Table.from_batches([batch]).select(columns).to_pylist()
    except (OSError, DataError, pa.ArrowException, KeyError, StopIteration):
        return None
    groups = islice(groupby(first, itemgetter("group", "kind")), _MAX_GROUPS)
    rows = [(kind, _list_images(list(same))) for (_, kind), same in groups]
    more = f"{count - len(rows):,} more" if count > len(rows) else ""
    table = Table("", ("same", "images of a group"), rows, more=more)
    return table.to_html() if rows else None


def _list_images(members: Sequence[dict[str, Any]]) -> Drawn:
    names = [
        f"{each['uri']} ({', '.join(filter(None, (each['split'], each['label'])))})"
        for each in members[:_MAX_IMAGES]
    ]
    more = ["and others"] if len(members) > len(names) else []
    return Drawn("", join_html(*(element("div", name) for name in (*names, *more))))
