"""Rejects: one row for every row of the source that was refused, with the reason.

`rejects.parquet` is for programs, `rejects.jsonl` for people and for the next run: its rows are
those of a manifest, so once the images are mended it can be converted as it is.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from darkroom import storage
from darkroom.dataset import layout, rejects
from darkroom.dataset.layout import REJECTS_FILE, REJECTS_LIST_FILE
from darkroom.runtime.text import MAX_LISTED_ROWS, make_visible
from darkroom.storage.parquet import BATCH_ROWS, read_batches

HINTS: Mapping[str, str] = {
    "animated": "Give one frame of it as a file of its own.",
    "bad_label": "Write the label without control and invisible characters, 1,000 at most.",
    "bad_value": "Correct the cell, or give the column another kind with --columns.",
    "conflict": "Keep one row for the image (or id), with the right label and split.",
    "corrupt_transfer": "Copy the image again: what arrived is not what the store says it holds.",
    "decoder_crash": "Save the image again with another program.",
    "decoder_memory": "Save the image again, smaller.",
    "decoder_timeout": "Save the image again with another program.",
    "empty": "Copy the file again: it has no bytes.",
    "empty_label": "Give the row a label.",
    "link_loop": "Make the link lead to a file.",
    "missing": "Relative paths start at the folder of the list: put it there, or mend the paths.",
    "multi_label": "Give the image one label.",
    "no_image": "Give the row the path of an image.",
    "not_a_file": "Name a file.",
    "not_an_image": "Get the image itself: this is another kind of file under its name.",
    "not_unicode": "Rename the file in UTF-8.",
    "nul_byte": "Remove the NUL byte; it often comes from a file that was cut off or is UTF-16.",
    "outside_layout": "Put each image into a folder that is named after its label, as in "
    "cat/1.jpg, or <split>/<label>/<file>; or give a list of images and labels.",
    "outside_root": "Move it below an allowed folder, or allow its folder with --allowed-root.",
    "permission_denied": "Grant the right to read it.",
    "ragged_row": "Give the row as many cells as the header; quote cells that hold commas.",
    "repeated_header": "Remove the line: it comes from joining files that each have a header.",
    "too_large": "Give a smaller image.",
    "truncated": "Copy the file again: its end is missing.",
    "undecodable": "Save the image again: it is damaged.",
    "unknown_label": "Correct the label, or add it to the label map.",
    "unreadable": "See the detail of the row for what the system says.",
    "unsupported_format": "Save the image as JPEG or PNG.",
    "unsupported_scheme": "Download the images, or name them by gs:// or s3://.",
    "windows_path": "Write paths with / and relative to the folder of the list.",
}

# Fields of a JSONL row that are diagnosis, not manifest; a file with all of them holds rejects.
REJECT_FIELDS = ("row", "stage", "reason", "detail", "id")

MANIFEST_STAGE = "manifest"
CONVERT_STAGE = "convert"

SCHEMA = pa.schema(
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
    ]
)


class Reject(NamedTuple):
    """A refused row.

    Attributes:
        row: Its number in the source, from 1.
        uri: URI of its image, as far as known; else empty.
        split: `train`, `eval` or `test`; empty when not known.
        label: Its label as it stands, empty where it is missing; None in a source without labels.
        stage: Where it was refused: `manifest` or `convert`.
        reason: Reason code.
        detail: What is wrong, for a person.
        id: Text whose hash is the key of the example, so that a rerun gives it the same key.
        extra: Its input columns by name; as they stand when they are what is wrong.
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


class RejectsWriter:
    """Writes rejects to a Parquet file as they come, in bounded memory; a context manager."""

    def __init__(self, path: str) -> None:
        self._file = storage.open_write(path)
        self._writer = pq.ParquetWriter(self._file, SCHEMA)
        self._rows: list[Reject] = []
        self.count = 0

    def __enter__(self) -> RejectsWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if kind is None:
            self._flush()
        self._writer.close()
        # On an error, what would be half a file does not appear in a remote store.
        self._file.__exit__(kind, *rest)

    def add(self, reject: Reject) -> None:
        """Adds one row."""
        self._rows.append(reject)
        self.count += 1
        if len(self._rows) >= BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        rows = [_as_record(reject) for reject in self._rows]
        if rows:
            self._writer.write_table(pa.Table.from_pylist(rows, schema=SCHEMA))
        self._rows = []


def _as_record(reject: Reject) -> dict[str, Any]:
    record = reject._asdict()
    record["extra"] = json.dumps(reject.extra) if reject.extra else None
    return {
        name: _as_unicode(value) if isinstance(value, str) else value
        for name, value in record.items()
    }


def _as_unicode(text: str) -> str:
    # File names that are not UTF-8 arrive with lone surrogates, which Parquet cannot hold.
    return text.encode(errors="backslashreplace").decode()


def read_rejects(path: str) -> Iterator[Reject]:
    """Yields the rows of a rejects' Parquet file."""
    for batch in read_batches(path):
        for record in batch.to_pylist():
            record["extra"] = json.loads(record["extra"]) if record["extra"] else {}
            yield Reject(**record)


def write_rejects(folder: str, parts: Iterable[str]) -> int:
    """Joins rejects' Parquet files into a folder's `rejects.parquet` and `rejects.jsonl`.

    Returns:
        The number of rows.
    """
    with (
        RejectsWriter(storage.join(folder, REJECTS_FILE)) as writer,
        storage.open_write(storage.join(folder, REJECTS_LIST_FILE)) as lines,
    ):
        for part in parts:
            for reject in read_rejects(part):
                writer.add(reject)
                lines.write(format_line(reject))
        return writer.count


def format_line(reject: Reject) -> bytes:
    """Returns the line of `rejects.jsonl` for a reject."""
    line: dict[str, Any] = {
        "split": reject.split,
        "image_uri": reject.uri,
        **({} if reject.label is None else {"label": reject.label}),
        "id": reject.id,
        "row": reject.row,
        "stage": reject.stage,
        "reason": reject.reason,
        "detail": reject.detail,
    }
    if reject.extra:
        line["extra"] = dict(reject.extra)
    # In JSON, what is no Unicode is escaped by a backslash, as it happens.
    return f"{json.dumps(line, ensure_ascii=False)}\n".encode(errors="backslashreplace")


def format_hint(rejected: Mapping[str, int]) -> str:
    """Returns what to do about the most frequent reason; empty when nothing is known.

    Args:
        rejected: Number of rejected rows by reason code.
    """
    if not rejected:
        return ""
    reason = max(sorted(rejected), key=lambda name: rejected[name])
    return f"{reason}: {HINTS[reason]}" if reason in HINTS else ""


def list_rejects(folder: str) -> str:
    """Returns the first rejects of a folder for a message, each on a line of its own."""
    lines: list[str] = []
    for reject in rejects.read_rejects(storage.join(folder, layout.REJECTS_FILE)):
        if len(lines) == MAX_LISTED_ROWS:
            lines.append("\n  ...")
            break
        text = f"row {reject.row}: {reject.reason} ({reject.detail}) {reject.uri}"
        lines.append(f"\n  {make_visible(text)}")
    return "The first:" + "".join(lines) if lines else ""


def count_rejects(folder: str) -> dict[str, int]:
    """Returns the number of refused rows in a dataset's folder by reason code."""
    path = storage.join(folder, layout.REJECTS_FILE)
    counts = Counter(reject.reason for reject in rejects.read_rejects(path))
    return dict(sorted(counts.items()))
