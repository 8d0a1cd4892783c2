"""Completes `Read as` when all rows are read: splits, labels, and what of them is in doubt."""

from __future__ import annotations

import json
import posixpath
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import duckdb

from darkroom.dataset.labels import list_lookalikes
from darkroom.dataset.read_as import (
    BY_COLUMN,
    BY_HASH,
    BY_NAMES,
    COLUMN_ORDER,
    GIVEN_MAP,
    OWN_NUMBERS,
    Doubt,
    ReadAs,
    join_class_ids,
)
from darkroom.dataset.schema import Kind, Schema, find_boxes
from darkroom.dataset.splits import mention_split, parse_split
from darkroom.manifest.classes import WHOLE_NUMBER, LabelMap
from darkroom.manifest.formats import count_untaken
from darkroom.manifest.sources.base import Source
from darkroom.manifest.sources.layouts import doubt_classes, list_parts
from darkroom.manifest.sources.listing import Listing
from darkroom.options.manifest import ManifestOptions
from darkroom.options.source import (
    AUTO_FORMAT,
    BOX_COLUMNS,
    NO_OBJECTS,
    NUMBER_ORDER,
    ODD_BOXES,
    ONE_CLASS,
    SIMILAR_LABELS,
    SPLIT_CLASS,
    SPLIT_COLUMN,
    TASK_CLASS,
)
from darkroom.runtime import by_name
from darkroom.runtime.text import list_first
from darkroom.targets.kind import TargetKind

# All rows are asked only about columns that may be of splits by the first ones.
_FIRST_ROWS = 1_000
# A column of splits has few texts.
_MOST_TEXTS = 50
_TEXTS = "list(DISTINCT trim(struct_extract(extra, {name})::VARCHAR))"
_EMPTY_SPLITS = """
SELECT split, count(*) FROM staged WHERE {objects} IS NOT NULL
GROUP BY split HAVING max(len({objects})) = 0 AND count(*) >= {fewest} ORDER BY split
"""
_UNNAMED_IMAGES = "images that no annotation names"
# So many images without objects may be chance.
_FEWEST_EMPTY = 5
# Of rows that were rejected, only the URIs are known.
_UNNAMED = """
WITH named AS (SELECT uri FROM parsed UNION ALL SELECT uri FROM read_parquet($rejects))
SELECT count(*) FROM (SELECT unnest($there) AS uri) ANTI JOIN named USING (uri)
"""
# Shares count as pixels of a square of a thousand.
_LISTED = """
SELECT [{names}][len([each FOR each IN [{rows}] IF each <= row])] AS file,
    regexp_replace(uri, '[^/]*$', '') AS folder, nullif(declared, '') AS split,
    if(label.width = 1 AND label.height = 1, 1000, 1) AS unit,
    label.width * unit AS width, label.height * unit AS height, label.objects AS objects
FROM staged
"""
_MOST_SHOWN = 3
_ORIENTED = "boxes in the {} image by --box-orientation, whatever size is declared"
_ANNOTATED = "SELECT count(*) FROM staged WHERE {objects} IS NOT NULL"
_UNASSIGNED = "SELECT count(*) FROM kept WHERE declared = ''"
# What a column says that is named after a split, as test or is_valid.
_MARKS = frozenset(("0", "1", "0.0", "1.0", "true", "false", "yes", "no", "t", "f", "y", "n"))
# The columns of other sources are not features.
_WHERE = {BY_HASH: "by hash", BY_NAMES: "by the names of the files"}


def complete(
    connection: duckdb.DuckDBPyConnection,
    sources: Sequence[Source],
    kind: TargetKind,
    label_map: LabelMap,
    options: ManifestOptions,
    rejects: str,
) -> ReadAs:
    """Returns how sources were read.

    Args:
        connection: Has the views `parsed` and `staged` of their rows, and `kept` of those that are
            planned.
        sources: The files of one source, whose columns are of the same kinds.
        kind: What rows are labelled with.
        label_map: The labels in the order of their numbers, and what says so.
        options: How rows became entries.
        rejects: The Parquet file of the rows that were not parsed.
    """
    found, schema = _join([each.read_as for each in sources]), sources[0].schema
    columns = schema.columns if sources[0].has_columns else ()
    shares = "/".join(f"{100 * share:g}" for share in options.ratios.as_tuple())
    splits = BY_HASH
    doubts, remarks = [*found.doubts], found.remarks
    if kind.objects is not None and options.box_orientation:
        remarks += (_ORIENTED.format(options.box_orientation),)
    if any(each.split for each in sources):
        splits = BY_NAMES
    elif schema.split is not None:
        splits = BY_COLUMN if found.splits == BY_HASH else found.splits
    doubts += _doubt_columns(connection, schema, splits, options)
    if label_map.origin not in (GIVEN_MAP, COLUMN_ORDER, OWN_NUMBERS):
        is_folder = bool(found.layout) and options.schema is None
        doubts += _doubt_labels(kind, label_map.labels, options, is_folder=is_folder)
    doubts += label_map.doubts
    if kind.objects is not None:
        doubts += _doubt_empty(connection, kind.objects)
        doubts += _doubt_boxes(connection, sources)
        if (listing := sources[0].listing) and options.format == AUTO_FORMAT:
            query = _ANNOTATED.format(objects=kind.objects.format(column="label"))
            doubts += doubt_classes(listing, connection.execute(query).fetchall()[0][0])
    return replace(
        found,
        remarks=remarks,
        columns={name: kind.value for name, kind in columns},
        group=options.group_column or "",
        splits=splits,
        unassigned=connection.execute(_UNASSIGNED).fetchall()[0][0],
        ratios=shares + (", by class" if options.stratify else ""),
        labels=label_map.origin,
        left_out={**found.left_out, **_count_left_out(connection, sources[0].listing, rejects)},
        doubts=tuple(doubts),
    ).accept(options.accept)


def _count_left_out(
    connection: duckdb.DuckDBPyConnection, listing: Listing | None, rejects: str
) -> Mapping[str, int]:
    """Returns how much of a folder with annotations was not read: images, annotations, folders."""
    if listing is None:
        return {}
    there = [*map(listing.join, listing.images)]
    unnamed = connection.execute(_UNNAMED, {"there": there, "rejects": rejects}).fetchall()[0][0]
    counts = listing.left_out | {_UNNAMED_IMAGES: unnamed} | count_untaken(listing)
    return {what: count for what, count in sorted(counts.items()) if count}


def _join(parts: Sequence[ReadAs]) -> ReadAs:
    """Returns how several files were read: the first one, with what was decided about others."""
    first = parts[0]
    if len(parts) == 1:
        return first
    headers = {each.header for each in parts}
    doubts = {doubt.name: doubt for each in reversed(parts) for doubt in reversed(each.doubts)}
    return replace(
        first,
        files=len(parts),
        counts=dict(sum((Counter(each.counts) for each in parts), Counter())),
        header=first.header if len(headers) == 1 else None,
        remarks=tuple(dict.fromkeys(remark for each in parts for remark in each.remarks)),
        unread=tuple(dict.fromkeys(name for each in parts for name in each.unread)),
        class_ids=join_class_ids(parts),
        doubts=tuple(reversed(doubts.values())),
    )


def _doubt_columns(
    connection: duckdb.DuckDBPyConnection, schema: Schema, splits: str, options: ManifestOptions
) -> Iterator[Doubt]:
    """Yields a doubt for columns that may have boxes or splits, and are features."""
    names = [name for name, _ in schema.inputs]
    if options.schema is not None:
        return
    if boxes := find_boxes(names):
        yield Doubt(
            BOX_COLUMNS,
            f"Columns that seem to have boxes are features: {', '.join(boxes)}.",
            "To read boxes, write the columns xmin, ymin, xmax and ymax in pixels, beside filename "
            "and class, or a column objects. If they are features: "
            f"--accept {BOX_COLUMNS} (accept= in Python).",
        )
    if SPLIT_COLUMN in options.accept:
        return
    first = [name for name, _ in _find_split_columns(connection, names, _FIRST_ROWS)]
    for name, texts in _find_split_columns(connection, first):
        others = {each: kind.value for each, kind in schema.columns if kind != Kind.SPLIT}
        columns = f"--columns {shlex.quote(json.dumps(others | {name: 'split'}))}"
        where = f"by the column {schema.split}" if splits == BY_COLUMN else _WHERE[splits]
        what, use = "names splits", f'To use it: {columns}. With "string" it stays a feature'
        if not all(map(parse_split, texts)):
            use = "To use it, write a column split with train, eval and test. If it is none"
        if not all(map(mention_split, texts)):
            what = "seems to mark a split"
        yield Doubt(
            SPLIT_COLUMN,
            f"The column {name!r} {what}, and splits are {where}.",
            f"{use}, as with --accept {SPLIT_COLUMN} (columns= and accept= in Python).",
        )


def _find_split_columns(
    connection: duckdb.DuckDBPyConnection, names: Sequence[str], first: int | None = None
) -> list[tuple[str, list[str]]]:
    """Returns which columns name or mark a split in all rows, or the first ones; and their texts.

    A cell may be empty.
    """
    if not names:
        return []
    cells = [_TEXTS.format(name="'{}'".format(name.replace("'", "''"))) for name in names]
    rows = "staged" if first is None else f"(FROM staged LIMIT {first})"
    found = connection.execute(f"SELECT {', '.join(cells)} FROM {rows}").fetchall()[0]
    columns = []
    for name, texts in zip(names, found, strict=True):
        texts = [text for text in texts or () if text]
        has_marks = _MARKS.issuperset(map(str.lower, texts))
        is_mark = has_marks and mention_split(name.removeprefix("is"))
        if 0 < len(texts) <= _MOST_TEXTS and (is_mark or all(map(mention_split, texts))):
            columns.append((name, texts))
    return columns


def _doubt_empty(connection: duckdb.DuckDBPyConnection, objects: str) -> Iterator[Doubt]:
    """Yields the doubt about splits in which people looked at images, and found nothing."""
    query = _EMPTY_SPLITS.format(objects=objects.format(column="label"), fewest=_FEWEST_EMPTY)
    if found := connection.execute(query).fetchall():
        splits = " and ".join(f"the {count:,} images of {split}" for split, count in found)
        yield Doubt(
            NO_OBJECTS,
            f"There is no object in {splits}, and the list says that people looked at them.",
            "Look whether they were lost on the way, as in an export. If nothing is in the images: "
            f"--accept {NO_OBJECTS} (accept= in Python).",
        )


def _doubt_boxes(
    connection: duckdb.DuckDBPyConnection, sources: Sequence[Source]
) -> Iterator[Doubt]:
    """Yields the doubt about boxes that a tool wrote wrongly, as far as lists say sizes."""
    names = [posixpath.basename(each.name).replace("'", "''") for each in sources]
    told = {"names": ", ".join(f"'{name}'" for name in names)}
    told["rows"] = ", ".join(f"{each.first_row}" for each in sources)
    if odd := by_name.find("find_odd_groups")(connection, _LISTED.format(**told)):
        yield Doubt(
            ODD_BOXES,
            "".join(f"{each}. " for each in odd[:_MOST_SHOWN]).rstrip(),
            "Look at some of them, and correct the list, or the tool. If images are turned by "
            "EXIF: --box-orientation upright. If the boxes are right: "
            f"--accept {ODD_BOXES} (accept= in Python).",
        )


def _doubt_labels(
    kind: TargetKind, label_map: Sequence[str], options: ManifestOptions, *, is_folder: bool
) -> Iterator[Doubt]:
    """Yields the doubts about labels whose numbers follow from their texts.

    Args:
        kind: What images are labelled with.
        label_map: The labels.
        options: How rows became entries.
        is_folder: Whether the labels are names of folders, which may be of something else.
    """
    if is_folder and (named := [name for name in label_map if mention_split(name)]):
        yield Doubt(
            SPLIT_CLASS,
            f"Classes are named after splits: {list_first(named)}.",
            "Splits are named in a column split, or by folders around those of the labels. If they "
            f"are classes, as they were read: --accept {SPLIT_CLASS} (accept= in Python).",
        )
    if is_folder and (parts := list_parts(label_map)):
        yield Doubt(
            TASK_CLASS,
            "Classes are named as folders of detection or segmentation, of which darkroom reads no "
            f"boxes and no masks: {list_first(parts)}.",
            "Name labels in a list of images. If they are classes, as they were read: "
            f"--accept {TASK_CLASS} (accept= in Python).",
        )
    if kind.name == "label" and len(label_map) == 1 and options.schema is None:
        yield Doubt(
            ONE_CLASS,
            f"All images have the label {label_map[0]!r}.",
            "Labels are in a column label, or the names of folders. If this is meant: "
            f"--accept {ONE_CLASS} (accept= in Python).",
        )
    if alike := list_lookalikes(label_map):
        yield Doubt(
            SIMILAR_LABELS,
            f"Labels look alike: {alike}.",
            "Write them the same way if they mean the same. If they differ: "
            f"--accept {SIMILAR_LABELS} (accept= in Python).",
        )
    is_told = options.schema is not None or kind.objects is not None
    is_sorted = [*label_map] == sorted(label_map)
    if not is_told and is_sorted and all(map(WHOLE_NUMBER.fullmatch, label_map)):
        numbers = [int(label) for label in label_map]
        if numbers != sorted(numbers):
            yield _build_order(label_map, sorted(numbers))


def _build_order(label_map: Sequence[str], numbers: Sequence[int]) -> Doubt:
    """Returns the doubt about whole numbers that are numbered as text."""
    wrong = next(place for place, label in enumerate(label_map) if int(label) != numbers[place])
    write = "sort -n RECORDS/labels.txt > labels.txt"
    if [*numbers] == [*range(numbers[0], numbers[-1] + 1)]:
        write = f"seq {numbers[0]} {numbers[-1]} > labels.txt"
    return Doubt(
        NUMBER_ORDER,
        f"Labels are whole numbers, and numbered as text: {label_map[wrong]!r} is number {wrong}.",
        f"To number them in their order: {write}, and --label-map labels.txt (label_map= in "
        f"Python). If their numbers do not matter: --accept {NUMBER_ORDER} (accept=).",
    )
