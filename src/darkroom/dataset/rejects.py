"""Rejects: one row for every rejected row of the source, with the reason.

`rejects.parquet` is for programs, `rejects.jsonl` for people and for the next run: its rows are
rows of a manifest, so once the images are fixed it can be converted as it is.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import nsmallest
from typing import Any, NamedTuple

import pyarrow as pa

from darkroom import storage
from darkroom.dataset.checksums import FileSum, SummedFile, SummedTable
from darkroom.dataset.labels import SEE_FORMS
from darkroom.dataset.layout import REJECTS_FILE, REJECTS_LIST_FILE
from darkroom.dataset.objects import ObjectCounts
from darkroom.runtime.text import MAX_LISTED_ROWS, make_visible
from darkroom.storage.parquet import read_batches

REJECT_HINTS: Mapping[str, str] = {
    "animated": "Save one frame as a separate file.",
    "ambiguous_orientation": "Say where the boxes are: upright, as the image is shown, or stored, "
    'as its file has it. For single images, change "orientation" to "upright" or "stored" in their '
    "lines of rejects.jsonl, and append these (--update --append). --box-orientation "
    "(box_orientation= in Python) holds for all images of the list, whatever size it declares.",
    "bad_annotation": "Correct the file of annotations that the detail names.",
    "bad_box": "Give the object a box with four numbers, the left and upper side first.",
    "bad_label": "Write the label without control and invisible characters, and in at most 1,000 "
    "characters.",
    "bad_value": "Correct the value, or give its column another kind: name those of all columns, "
    """as in --columns '{"image_uri": "image", "label": "string_label", "id": "string"}' """
    "(columns= in Python). For objects: pandas writes JSON by "
    'frame.to_json("list.jsonl", orient="records", lines=True).',
    "conflict": "Keep one row for the image (or id), with the right label and split. Rows with "
    "objects of one image need the same split, width, height and orientation.",
    "corrupt_transfer": "Copy the image again: it arrived with wrong bytes.",
    "decoder_crash": "Save the image again with another program.",
    "decoder_memory": "Save the image again, smaller.",
    "decoder_timeout": "Save the image again with another program.",
    "empty": "Copy the file again: it has no bytes.",
    "empty_label": "Give the row a label.",
    "link_loop": "Make the link lead to a file.",
    "missing": "Relative paths start at the folder of the list: put the file there, or correct the "
    "path.",
    "multi_label": "Give the image one label, or convert with label_kind labels.",
    "no_image": "Give the row the path of an image.",
    "not_a_file": "Name a file.",
    "not_an_image": "Get the image itself: this file is something else.",
    "not_unicode": "Rename the file in UTF-8.",
    "nul_byte": "Remove the NUL byte; it often comes from a truncated or UTF-16 file.",
    "other_size": "Correct the size that the list gives, or name the image that was annotated.",
    "outside_image": "Correct the box: it is outside the image by more than a pixel.",
    "outside_layout": "Put each image into a folder that is named after its label, as in "
    "cat/1.jpg, or <split>/<label>/<file>; or give a list of images and labels.",
    "outside_root": "Move the file below an allowed folder, or allow its folder with "
    "--allowed-root (allowed_roots= in Python).",
    "permission_denied": "Grant permission to read the file. Without the right to list, S3 answers "
    "the same for a file that does not exist.",
    "ragged_row": "Give the row as many cells as the header; quote cells that contain commas.",
    "repeated_header": "Remove the line: it comes from joining files that each have a header.",
    "too_large": "Give a smaller image.",
    "truncated": "Copy the file again: its end is missing.",
    "undecodable": "Save the image again: it is damaged.",
    "unknown_class": "Name the class in the categories, data.yaml or classes.txt, or correct "
    "its number.",
    "unknown_image": "Add the image to the images of the annotations, or delete its objects there.",
    "unknown_label": "Correct the label, or add it to the label map.",
    "unreadable": "The detail of the row has the system's message.",
    "unsupported_format": "Save the image as JPEG or PNG.",
    "unsupported_scheme": "Download the images, or name them by gs:// or s3://.",
    "windows_path": "Write paths with / and relative to the folder of the list.",
}

_ABOUT_LABELS = frozenset(("bad_label", "empty_label", "multi_label", "unknown_label"))

# Fields of a JSONL row that describe a reject; a file with all of them is a list of rejects.
REJECT_FIELDS = ("id", "row", "stage", "reason", "detail")
# The same of a list of all planned rows of a dataset; see `darkroom.conversion.planned_rows`.
PLANNED_FIELDS = ("id", "row", "span", "weight")

# The option that allows more rejects, as hints name it.
LIMIT_OPTION = "max_rejects (--max-rejects)"

# So much of a URI is shown: a cell with an image, or with a text, may have thousands.
_MAX_URI_CHARACTERS = 200

MANIFEST_STAGE = "manifest"
CONVERT_STAGE = "convert"
# Of an object that was rejected alone: its image has a record.
OBJECT_STAGE = "object"

_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("uri", pa.string()),
        ("split", pa.string()),
        ("label", pa.string()),
        ("stage", pa.string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("id", pa.string()),
        ("extra", pa.string()),
        ("span", pa.int64()),
        ("size", pa.int64()),
    ]
)


class Reject(NamedTuple):
    """A rejected row.

    Attributes:
        row: Its number in the source, from 1.
        uri: URI of its image; empty when not known.
        split: `train`, `eval` or `test`; empty when not known.
        label: Its label as in the source, empty if missing; None in a source without labels.
        stage: Where it was rejected: `manifest` or `convert`; `object` for an object of an image
            that was not rejected.
        reason: Reason code.
        detail: The problem, in words for a person.
        id: Text that the key of the example is the hash of, so that a rerun gives the same key.
        extra: Its input columns by name; the text of the cells when they are wrong.
        span: Its span.
        size: Bytes of its image, where it was rejected later and its size is known.
    """

    row: int
    uri: str
    split: str
    label: str | None
    stage: str
    reason: str
    detail: str
    id: str
    extra: Mapping[str, Any] = {}
    span: int = 0
    size: int | None = None


def format_target(value: Any) -> str | None:
    """Returns what an image is labelled with as a reject has it: lists and objects are JSON.

    Of what JSON does not have, as a date, it is the text.
    """
    return value if value is None or isinstance(value, str) else json.dumps(value, default=str)


class RejectsWriter(SummedTable):
    """Writes rejects to a Parquet file as they come, in bounded memory; a context manager."""

    def __init__(self, path: str) -> None:
        super().__init__(path, _SCHEMA)
        self.count = 0

    def add(self, reject: Reject) -> None:
        """Adds one row."""
        self.count += 1
        self._add_rows([reject])

    def _make_table(self, rows: Sequence[Reject]) -> pa.Table:
        return pa.Table.from_pylist(list(map(_as_record, rows)), schema=_SCHEMA)


def _as_record(reject: Reject) -> dict[str, Any]:
    record = reject._asdict()
    record["extra"] = json.dumps(reject.extra) if reject.extra else None
    # File names that are not UTF-8 have lone surrogates, which Parquet cannot store.
    return {
        name: value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
        for name, value in record.items()
    }


def read_rejects(path: str) -> Iterator[Reject]:
    """Yields the rows of a rejects' Parquet file."""
    for batch in read_batches(path):
        for record in batch.to_pylist():
            record["extra"] = json.loads(record["extra"]) if record["extra"] else {}
            yield Reject(**record)


def read_first_rejects(path: str, number: int) -> list[Reject]:
    """Returns the rejects of the first rows: the file has them in the order of the shards."""
    return nsmallest(number, read_rejects(path), key=lambda reject: reject.row)


def write_rejects(
    folder: str,
    parts: Iterable[str],
    find_part: Callable[[str], str] = str,
    *,
    has_objects: bool = False,
) -> tuple[int, dict[str, FileSum]]:
    """Joins rejects' Parquet files into a folder's `rejects.parquet` and `rejects.jsonl`.

    Args:
        folder: Where they go.
        parts: Paths of the files to join.
        find_part: Returns the path for a file until it is complete.
        has_objects: Whether rows are labelled with objects.

    Returns:
        The number of rows, and the sums of both files by name.
    """
    paths = [storage.join(folder, name) for name in (REJECTS_FILE, REJECTS_LIST_FILE)]
    unfinished = [find_part(path) for path in paths]
    with (
        RejectsWriter(unfinished[0]) as writer,
        storage.open_write(unfinished[1]) as file,
    ):
        lines = SummedFile(file)
        for part in parts:
            for reject in read_rejects(part):
                writer.add(reject)
                lines.write(_format_line(reject, has_objects))
        storage.sync_file(file)
    for part, path in zip(unfinished, paths, strict=True):
        if part != path:
            storage.rename(part, path)
    return writer.count, {REJECTS_FILE: writer.sum, REJECTS_LIST_FILE: lines.sum}


def _format_line(reject: Reject, has_objects: bool) -> bytes:
    """Returns the line of `rejects.jsonl` for a reject."""
    fields = {name: getattr(reject, name) for name in REJECT_FIELDS}
    return format_row(reject, {**fields, "span": reject.span}, has_objects=has_objects)


def format_row(row: Any, fields: Mapping[str, Any], *, has_objects: bool) -> bytes:
    """Returns a line of a list of images that darkroom reads again.

    Args:
        row: Has `split`, `uri`, `label` as `format_target` gives it, and `extra`.
        fields: Further ones, of `REJECT_FIELDS` or `PLANNED_FIELDS`.
        has_objects: Whether rows are labelled with objects, which have a column of their own.
    """
    line: dict[str, Any] = {
        "split": row.split,
        "image_uri": row.uri,
        **_spell_label(row.label, has_objects),
        **fields,
    }
    if row.extra:
        line["extra"] = dict(row.extra)
    # JSON, too, escapes lone surrogates with a backslash.
    return f"{json.dumps(line, ensure_ascii=False)}\n".encode(errors="backslashreplace")


def _spell_label(label: str | None, has_objects: bool) -> dict[str, Any]:
    """Returns the column of what a row is labelled with; what cannot be read as objects is text."""
    if not has_objects:
        return {} if label is None else {"label": label}
    with suppress(ValueError, RecursionError):
        return {"objects": label and json.loads(label)}
    return {"objects": label}


def format_hint(rejected: Mapping[str, int]) -> str:
    """Returns what to do, a line for each reason that is known, the most frequent first.

    Args:
        rejected: Number of rejected rows by reason code.
    """
    known = sorted(REJECT_HINTS.keys() & rejected.keys(), key=lambda name: (-rejected[name], name))
    lines = [f"{reason}: {REJECT_HINTS[reason]}" for reason in known]
    if rejected.keys() & _ABOUT_LABELS:
        lines.append(SEE_FORMS)
    return "\n".join(lines)


def are_too_many(
    limit: float, rejected: int, total: int, objects: ObjectCounts | None = None
) -> bool:
    """Tells whether more than a share was rejected of rows, or of their objects.

    Args:
        limit: The share that is allowed, 0 to 1. 29 of 100 are not more than 0.29, although
            0.29 * 100 is less than 29.
        rejected: How many rows were rejected.
        total: How many there are.
        objects: The numbers of their objects.
    """
    if objects and are_too_many(limit, objects.rejected, objects.read):
        return True
    return rejected / max(total, 1) > limit


def list_rejects(folder: str) -> str:
    """Returns the first rejects of a folder for a message, each on a separate line."""
    first = read_first_rejects(storage.join(folder, REJECTS_FILE), MAX_LISTED_ROWS + 1)
    lines = [
        make_visible(f"row {each.row}: {each.reason} ({each.detail}) ")
        + make_visible(each.uri, _MAX_URI_CHARACTERS)
        for each in first[:MAX_LISTED_ROWS]
    ]
    if len(first) > MAX_LISTED_ROWS:
        lines.append("...")
    return "\n  ".join(["The first:", *lines]) if lines else ""


def count_rejects(folder: str) -> dict[str, int]:
    """Returns the number of rejected rows in a dataset's folder by reason code."""
    found = read_rejects(storage.join(folder, REJECTS_FILE))
    counts = Counter(reject.reason for reject in found if reject.stage != OBJECT_STAGE)
    return dict(sorted(counts.items()))


def count_rejected_objects(folder: str, count: Callable[[Any], int]) -> dict[str, int]:
    """Returns the number of rejected objects in a dataset's folder by reason code.

    Args:
        folder: The folder.
        count: Returns the number of objects in the label of a reject.
    """
    counts: Counter[str] = Counter()
    for reject in read_rejects(storage.join(folder, REJECTS_FILE)):
        counts[reject.reason] += count(reject.label)
    return dict(sorted((+counts).items()))
