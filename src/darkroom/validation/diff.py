"""What changed between two datasets, by their indexes: no image is read.

The changes are findings of a report on the newer one, so that whatever shows a report shows them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import duckdb

from darkroom import storage
from darkroom.dataset.commit import Dataset, read_dataset
from darkroom.dataset.index import IMAGE_COLUMNS, INDEX_COLUMNS, check_index_rows
from darkroom.dataset.index_queries import create_index_view
from darkroom.dataset.layout import REJECTS_FILE, Folders
from darkroom.dataset.manifest import Manifest
from darkroom.dataset.named import find_named_data
from darkroom.dataset.opening import check_outside
from darkroom.dataset.same_images import pair_others
from darkroom.options.diff import DiffOptions
from darkroom.options.fields import merge_options
from darkroom.options.validation import INFO, OFF
from darkroom.runtime import progress
from darkroom.runtime.text import MAX_LISTED_ROWS, format_count, list_first
from darkroom.storage import ledger
from darkroom.storage.database import name_damage, open_database
from darkroom.targets.kind import TargetKind, find_kind
from darkroom.validation.counts import count_dataset, fetch_number, fetch_rejects, fetch_rows
from darkroom.validation.judge import JudgedFiles, create_fields, create_rejects, name_labels
from darkroom.validation.report.dataset_report import DIFF_TITLE, DatasetReport
from darkroom.validation.report.findings import MAX_RANKED_ROWS, Finding
from darkroom.validation.report.pictures import RecordFolders
from darkroom.validation.report.write import REPORT_FILES, REPORT_HTML, write_report
from darkroom.validation.validate import ValidationResult

# Each index has thousands of files, so they are opened once; hashes are shorter than texts.
_COMPARED = """
CREATE TABLE {name} AS
SELECT key::UUID AS key, row, uri, split, COLUMNS('^label'),
    height, width, source_height, source_width,
    hash(said) AS said, hash(sha256) AS bytes, hash(coalesce(pixel_hash, sha256)) AS pixels,
    {others}
FROM {name}_index
"""
# Where other digits alone say otherwise, no object has changed.
_UNCHANGED = """
DELETE FROM pairs WHERE relabelled AND NOT (retold OR moved OR redrawn OR encoded)
    AND row NOT IN (SELECT row FROM changes)
"""
# The images of both that have other ids get the key of the older one.
_SAME = "UPDATE new SET key = pairs.old_key FROM ({pairs}) AS pairs WHERE new.key = pairs.key"
# What is not compared: where an image was found and when it was written, where its record is, and
# how the list says places. All other columns are, also those that are added one day.
LEFT_OUT = frozenset(
    {"row", "uri", "source_version", "shard", "position", "offset", "length", "listed"}
)
# Other columns may differ where what is compared first does not.
_SAME_LABEL = (
    "old.label IS NOT DISTINCT FROM new.label AND new.row NOT IN (SELECT row FROM changes)"
)
_FIRST = {
    **dict.fromkeys((*IMAGE_COLUMNS, "source_size"), "old.bytes = new.bytes"),
}
_NAMED = frozenset({"key", "split", "sha256"})
_OTHERS = """
CREATE TABLE others AS FROM (SELECT new.row AS row, new.uri AS uri, new.split AS split,
    new.label AS label, [each FOR each IN [{differing}] IF each IS NOT NULL] AS detail
FROM old JOIN new USING (key)) WHERE len(detail) > 0
"""
_COUNT_OTHERS = """
SELECT each, count(*) AS images FROM (SELECT unnest(detail) AS each FROM others)
GROUP BY each ORDER BY images DESC, each
"""
_FIRST_OTHERS = "SELECT * FROM others ORDER BY row LIMIT ?"
# Only images that changed: no question is about the others.
_PAIRS = """
CREATE TABLE pairs AS FROM (SELECT
    old.row AS other_row, old.split AS other_split, old.label AS other_label,
    new.row AS row, new.split AS split, new.label AS label,
    old.key IS NULL AS added, new.key IS NULL AS removed,
    old.split <> new.split AS moved,
    old.key IS NOT NULL AND new.key IS NOT NULL AND old.said <> new.said
        AS relabelled,
    relabelled AND old.label IS DISTINCT FROM new.label AS retold,
    old.bytes <> new.bytes AND old.pixels <> new.pixels AS redrawn,
    old.bytes <> new.bytes AND old.pixels = new.pixels AS encoded
FROM old FULL JOIN new USING (key)
) WHERE added OR removed OR moved OR relabelled OR redrawn OR encoded
"""
# What each change is called. Of images that are gone, split, labels and examples are the old ones.
IMAGE_CHANGES = {
    "added": "Images that are new",
    "removed": "Images that are gone",
    "moved": "Images that are in another split",
    "relabelled": "Images with another label",
    "redrawn": "Images with other pixels",
    "encoded": "Images with the same pixels in other bytes",
}
# An image has another label where that can be read, and no object says what changed.
_CHANGES = {each: each for each in IMAGE_CHANGES} | {
    "relabelled": "retold AND row NOT IN (SELECT row FROM changes)"
}
# Of images that both datasets have.
OBJECT_CHANGES = {
    "objects_added": "Objects that are new in their image",
    "objects_gone": "Objects that are gone from their image",
    "objects_relabelled": "Objects that have another class at the same place",
    "objects_moved": "Objects that are at another place in their image",
    "objects_marked": "Objects with other marks (crowd, difficult) at the same place",
}
_NO_CHANGES = """
SELECT '' AS change, row, uri, split, label, NULL AS object, '' AS detail FROM new WHERE false
"""
_COUNT_OBJECTS = """
SELECT label AS name, count(*) AS number FROM changes WHERE change = ? GROUP BY label
ORDER BY number DESC, name
"""
_COUNT_THEIR_IMAGES = "SELECT count(DISTINCT row) FROM changes WHERE change = ?"
_FIRST_OBJECTS = """
SELECT row, uri, split, label, object, detail FROM changes WHERE change = ?
ORDER BY row, label, object LIMIT ?
"""
_COUNT_SPLITS = """
SELECT {prefix}split AS name, count(*) AS number FROM pairs WHERE {change} GROUP BY name
ORDER BY number DESC, name
"""
# Images by each of their labels.
_COUNT_LABELS = """
SELECT named.label AS name, count(*) AS number
FROM (SELECT {prefix}row AS row FROM pairs WHERE {change}) JOIN {prefix}named AS named USING (row)
WHERE name <> '' GROUP BY name ORDER BY number DESC, name
"""
_EXAMPLES = """
WITH first AS (SELECT * FROM pairs WHERE {change} ORDER BY {prefix}row LIMIT {most})
SELECT first.{prefix}row AS row, uri, first.{prefix}split AS split, first.{prefix}label AS label,
    nullif(concat_ws(', ',
        CASE WHEN moved THEN 'was in ' || other_split END,
        CASE WHEN retold THEN 'was ' || coalesce(other_label, 'without label') END
    ), '') AS detail
FROM first JOIN {side} ON {side}.row = first.{prefix}row ORDER BY row
"""
_FROZEN = """
SELECT count(*) FROM pairs WHERE 'test' IN (coalesce(split, ''), coalesce(other_split, ''))
"""
_LOSSES = """
SELECT label, old.images AS images, coalesce(new.images, 0) AS now FROM
    (SELECT label, count(*) AS images FROM other_named GROUP BY label) AS old
    LEFT JOIN (SELECT label, count(*) AS images FROM named GROUP BY label) AS new USING (label)
WHERE label IS NOT NULL AND old.images - now > {share} * old.images ORDER BY label
"""
# An image whose twin was in train before has not moved: the checks of one dataset find it.
_LEAKED = """
CREATE VIEW leaked AS SELECT row, uri, split, label FROM new WHERE split = 'train' AND (
    key IN (SELECT key FROM old WHERE split = 'test')
    OR pixels IN (
        SELECT pixels FROM old WHERE pixels IS NOT NULL
        GROUP BY pixels HAVING bool_or(split = 'test') AND NOT bool_or(split = 'train')
    )
)
"""
_NOTHING = "There is no earlier dataset to compare with."


@storage.report_failures
@progress.shown
def diff(
    old: str | os.PathLike[str] | None,
    new: str | os.PathLike[str],
    *,
    policies: Mapping[str, str] | None = None,
    max_class_loss: float | None = None,
    report_dir: str | os.PathLike[str] | None = None,
) -> ValidationResult:
    """Compares two datasets by their indexes.

    All columns of the index are compared, and the numbers of labels, but not where an image was
    found (`row`, `uri`, `source_version`), where its record is (`shard`, `position`, `offset`,
    `length`), how the list says places (`listed`), and the order and last digits of objects.

    Args:
        old: The older dataset; of it and the newer one, no shards are needed. None: there is none
            yet.
        new: The newer one. An image of both has the same id, else the same path, else the same
            bytes in its record.
        policies: Effect of a finding on the run: fail, warn or off; see
            `darkroom.options.diff.DIFF_POLICIES`.
        max_class_loss: Share of its images that a class may lose. 0.1 if None.
        report_dir: Folder for `report.html`, `report.md` and `report.json`; None writes none.

    Returns:
        A report on the newer dataset. Its findings are what stops the run, then the changes, with
        the policy `info`.

    Raises:
        DataError: A folder is not a dataset, or its index is damaged.
        UsageError: An option is wrong.
        OutputError: `report_dir` is a dataset, or has files that are not a report.
        OSError: Something cannot be read or written.
    """
    options = merge_options(
        DiffOptions, None, {"policies": policies, "max_class_loss": max_class_loss}
    )
    roots = [find_named_data(each) for each in (old, new) if each is not None]
    folder = None if report_dir is None else storage.absolute(report_dir)
    if folder is not None:
        for root in roots:
            check_outside(root, folder, "The report")
        ledger.check_alone(folder, REPORT_FILES, "Choose a new folder for the report.")
        ledger.check_owned_files(folder, REPORT_FILES)
    *before, after = (find_files(Folders.of_dataset(root)) for root in roots)
    report = compare_datasets(before[0] if before else None, after, options)
    if folder is None:
        return ValidationResult(roots[-1], report)
    write_report(report, folder, RecordFolders(roots[-1], after.index_dir))
    return ValidationResult(roots[-1], report, storage.join(folder, REPORT_HTML))


def find_files(folders: Folders) -> JudgedFiles:
    """Returns the files of a dataset that are compared."""
    rejects, dataset = storage.join(folders.rejects, REJECTS_FILE), read_dataset(folders.examples)
    check_index_rows(folders.index, dataset, rejects)
    return JudgedFiles(folders.index, rejects, dataset)


def compare_datasets(
    before: JudgedFiles | None, after: JudgedFiles, options: DiffOptions
) -> DatasetReport:
    """Compares two datasets by their indexes; see `diff`.

    Args:
        before: The older dataset; None: there is none yet.
        after: The newer one.
        options: What may change.
    """
    source = after.read_source()
    kind = find_kind(source.target.kind)
    # Objects are compared with objects.
    is_same = before is not None and find_kind(before.read_source().target.kind) is kind
    differs = kind.differs if is_same else TargetKind.differs
    with (
        progress.step("Comparing the indexes"),
        tempfile.TemporaryDirectory(prefix="darkroom-") as scratch,
        open_database(scratch, has_objects=bool(kind.objects)) as connection,
    ):
        hashes = _open_index(connection, "new", after, scratch, differs)
        connection.execute("CREATE VIEW records AS SELECT * FROM new")
        create_rejects(connection, after.rejects_path, kind, scratch)
        create_fields(connection, source.target.names)
        counts = count_dataset(connection, source)
        if before is None:
            findings = [Finding("first", INFO, counts.written, _NOTHING)]
        else:
            old_hashes = _open_index(connection, "old", before, scratch, differs)
            for by in ("uri", "bytes"):
                connection.execute(_SAME.format(pairs=pair_others("old", "new", "key", by)))
            connection.execute(_PAIRS)
            changes = (is_same and kind.changes) or _NO_CHANGES
            connection.execute(f"CREATE TABLE changes AS {changes}")
            connection.execute(_UNCHANGED)
            findings = [*_judge(connection, options), *_list_objects(connection)]
            findings += _list_changes(connection)
            findings += _list_others(connection, old_hashes, hashes, differs)
            findings += _compare_numbers(before.read_source(), source)
        rejects = fetch_rejects(connection)
    return DatasetReport(
        **vars(counts),
        policies=options.policies,
        findings=tuple(findings),
        rejects=rejects,
        title=DIFF_TITLE,
    )


def _open_index(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    files: JudgedFiles,
    scratch: str,
    targets: Iterable[str],
) -> dict[str, str]:
    """Makes an index a table, and returns SQL of its hashes, by the names of what they are of.

    Those of `targets` are of what images are labelled with.
    """
    kind = find_kind(files.read_source().target.kind)
    index = f"{name}_index"
    create_index_view(connection, index, files.index_dir, scratch, kind.told, kind.said)
    others = {each: f'"{each}"' for each, _ in INDEX_COLUMNS if each not in LEFT_OUT | _NAMED}
    others |= dict.fromkeys(targets, "written")
    view = connection.view(index)
    extra = view.types[view.columns.index("extra")]
    # No name of the user's is in SQL.
    for place, (field, _) in enumerate(extra.children if extra.id == "struct" else (), start=1):
        others[f"extra.{field}"] = f"struct_extract_at(extra, {place})"
    # As text, 0 and -0 differ.
    hashes = [f"hash({sql}::VARCHAR) AS other_{n}" for n, sql in enumerate(others.values())]
    with name_damage(f"The index in {files.index_dir} is"):
        connection.execute(_COMPARED.format(name=name, others=", ".join(hashes)))
    view = "named" if name == "new" else "other_named"
    connection.execute(name_labels(kind, name, view))
    return {each: f"{name}.other_{n}" for n, each in enumerate(others)}


def _judge(connection: duckdb.DuckDBPyConnection, options: DiffOptions) -> Iterator[Finding]:
    """Yields what should not have changed."""
    policies = options.policies
    if policies["test_frozen"] != OFF and (count := fetch_number(connection, _FROZEN)):
        yield Finding(
            "test_frozen",
            policies["test_frozen"],
            count,
            f"The test split has {format_count(count, 'change')}, so scores cannot be compared "
            "with older ones.",
            "If this is intended, score the older model on the new one, too. If not, keep the test "
            "split as it is: split_ratios 90/10/0 (--split-ratios) adds no new image to it.",
        )
    if policies["class_loss"] != OFF:
        share = options.max_class_loss
        if rows := fetch_rows(connection, _LOSSES.format(share=share)):
            names = list_first([str(row["label"]) for row in rows])
            yield Finding(
                "class_loss",
                policies["class_loss"],
                len(rows),
                f"Classes that lost more than {share:.0%} of their images: {names}.",
                "See whether a part of the source is missing. If this is intended, allow it: "
                "max_class_loss (--max-class-loss).",
                rows[:MAX_LISTED_ROWS],
            )
    connection.execute(_LEAKED)
    if policies["test_to_train"] != OFF and (
        count := fetch_number(connection, "SELECT count(*) FROM leaked")
    ):
        yield Finding(
            "test_to_train",
            policies["test_to_train"],
            count,
            f"In train: {format_count(count, 'image')} of the old test split.",
            "Models that learn them look better on the old test split than they are.",
            fetch_rows(connection, f"SELECT * FROM leaked ORDER BY row LIMIT {MAX_LISTED_ROWS}"),
        )


def _list_changes(connection: duckdb.DuckDBPyConnection) -> Iterator[Finding]:
    """Yields a finding for each kind of change, with counts by split and label, and examples."""
    for name, title in IMAGE_CHANGES.items():
        side, prefix = ("old", "other_") if name == "removed" else ("new", "")
        said = {"change": _CHANGES[name], "prefix": prefix, "side": side}
        splits = fetch_rows(connection, _COUNT_SPLITS.format(**said))
        if total := sum(row["number"] for row in splits):
            labels = fetch_rows(connection, _COUNT_LABELS.format(**said))
            parts = "; ".join(map(_list_counts, filter(None, (splits, labels))))
            rows = fetch_rows(connection, _EXAMPLES.format(**said, most=MAX_RANKED_ROWS))
            yield Finding(name, INFO, total, f"{title}: {total:,} ({parts}).", "", rows)


def _list_others(
    connection: duckdb.DuckDBPyConnection,
    old: Mapping[str, str],
    new: Mapping[str, str],
    differs: Mapping[str, str],
) -> Iterator[Finding]:
    """Yields a finding of what else differs, in images that both datasets have.

    Args:
        connection: With both datasets.
        old: SQL of the hashes of the older one, by the names of what they are of.
        new: The same of the newer one.
        differs: SQL of what differs of targets; see `TargetKind`.
    """
    first = _FIRST | {name: f"{_SAME_LABEL} AND {sql}" for name, sql in differs.items()}
    names, nothing = [*{**new, **old}], "hash(NULL::VARCHAR)"
    differing = [
        f"CASE WHEN {old.get(name, nothing)} <> {new.get(name, nothing)} "
        f"AND {first.get(name, 'true')} THEN {number} END"
        for number, name in enumerate(names)
    ]
    connection.execute(_OTHERS.format(differing=", ".join(differing)))
    if count := fetch_number(connection, "SELECT count(*) FROM others"):
        counts = fetch_rows(connection, _COUNT_OTHERS)
        shown = list_first([f"{names[each['each']]} {each['images']:,}" for each in counts])
        rows = [
            {**row, "detail": ", ".join(names[each] for each in row["detail"])}
            for row in fetch_rows(connection, _FIRST_OTHERS, [MAX_RANKED_ROWS])
        ]
        message = f"Images with other values in columns of the index: {count:,} ({shown})."
        yield Finding("other_columns", INFO, count, message, "", tuple(rows))


def _compare_numbers(old: Manifest | Dataset, new: Manifest | Dataset) -> Iterator[Finding]:
    """Yields a finding of labels, or of names of numbers, whose number has changed."""
    before, after = (each.target.names or each.labels for each in (old, new))
    was = {name: number for number, name in enumerate(before)}
    found = [
        f"{name} is {number} (was {was[name]})"
        for number, name in enumerate(after)
        if was.get(name, number) != number
    ]
    if found:
        message = f"Labels with another number: {list_first(found)}."
        hint = (
            "A model of the old dataset has the old numbers: --label-map OLD/labels.txt keeps them."
        )
        yield Finding("renumbered", INFO, len(found), message, hint)


def _list_objects(connection: duckdb.DuckDBPyConnection) -> Iterator[Finding]:
    """Yields a finding for each kind of change of objects, in images that both datasets have."""
    for change, title in OBJECT_CHANGES.items():
        counts = fetch_rows(connection, _COUNT_OBJECTS, [change])
        if total := sum(row["number"] for row in counts):
            images = format_count(fetch_number(connection, _COUNT_THEIR_IMAGES, [change]), "image")
            message = f"{title}: {total:,}, in {images} ({_list_counts(counts)})."
            rows = fetch_rows(connection, _FIRST_OBJECTS, [change, MAX_RANKED_ROWS])
            yield Finding(change, INFO, total, message, "", rows)


def _list_counts(counts: Iterable[Mapping[str, Any]]) -> str:
    return list_first([f"{row['name']} {row['number']:,}" for row in counts])
