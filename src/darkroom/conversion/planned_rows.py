"""Lists every row that a conversion planned, also those that it rejected while it read images.

Converted from nothing with the dataset's label map, seed and options, the list gives the same
shards, byte for byte.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from darkroom import storage
from darkroom.conversion.leaves import UNKNOWN_BYTES
from darkroom.dataset import rejects
from darkroom.dataset.index import find_index_files, read_index_batches
from darkroom.dataset.layout import REJECTS_FILE, Folders
from darkroom.manifest.sources.jsonl import parse_line
from darkroom.manifest.sources.text import TextFile

ENDINGS = (".jsonl", ".ndjson")
_BATCH_ROWS = 8_192
_COLUMNS = ("id", "row", "uri", "split", "span", "label", "source_size")
_OPTIONAL = ("extra", "listed")
# What tells a reject from all others.
_CORRECTED = ("id", "row", "detail")


def list_corrected(source: object) -> frozenset[tuple[object, ...]]:
    """Returns the id of the image, row and detail of each lost object that is in a list of rejects.

    Args:
        source: What is converted; only a list of JSON Lines can be one of rejects.
    """
    if not isinstance(source, str | os.PathLike) or not os.fspath(source).endswith(ENDINGS):
        return frozenset()
    path = storage.absolute(source)
    lines = TextFile(path).lines() if storage.exists(path) else ()
    # Of a list that is not one of rejects, no line is parsed a second time.
    found = map(parse_line, (line for line in lines if '"stage"' in line))
    return frozenset(
        tuple(each.get(name) for name in _CORRECTED)
        for each in found
        if isinstance(each, dict) and each.get("stage") == rejects.OBJECT_STAGE
    )


def write_planned_rows(
    folders: Folders,
    path: str,
    *,
    has_objects: bool,
    corrected: Collection[tuple[object, ...]] = (),
) -> int:
    """Writes the list of the dataset whose files are in folders; returns the number of its rows.

    Images and objects that were lost are planned again, but for objects that are corrected.
    """
    lost: defaultdict[str, list[Any]] = defaultdict(list)
    file = storage.join(folders.rejects, REJECTS_FILE)
    for each in rejects.read_rejects(file) if has_objects else ():
        if each.stage == rejects.OBJECT_STAGE and _identify(each) not in corrected:
            lost[each.id] += json.loads(each.label or "{}")["objects"]
    count = 0
    with storage.open_write(path) as target:
        for row in _read_rows(folders, lost):
            weight = UNKNOWN_BYTES if row.size is None else row.size
            fields = {"id": row.id, "row": row.row, "span": row.span, "weight": weight}
            target.write(rejects.format_row(row, fields, has_objects=has_objects))
            count += 1
    return count


def _identify(reject: rejects.Reject) -> tuple[object, ...]:
    return tuple(getattr(reject, name) for name in _CORRECTED)


def _read_rows(folders: Folders, lost: Mapping[str, list[Any]]) -> Iterator[rejects.Reject]:
    """Yields the planned rows, with the texts that a reject has, and with their lost objects."""
    for path in find_index_files(folders.index):
        for batch in read_index_batches(path, _COLUMNS, _BATCH_ROWS, optional=_OPTIONAL):
            for each in batch.to_pylist():
                label = each.pop("label")
                size, label = each.pop("source_size"), each.pop("listed", label)
                if label is not None and each["id"] in lost:
                    label["objects"] += lost[each["id"]]
                extra = {k: v for k, v in (each.pop("extra", None) or {}).items() if v is not None}
                yield rejects.Reject(
                    **each,
                    label=rejects.format_target(label),
                    extra=extra,
                    size=size,
                    stage="",
                    reason="",
                    detail="",
                )
    for reject in rejects.read_rejects(storage.join(folders.rejects, REJECTS_FILE)):
        if reject.stage == rejects.CONVERT_STAGE:
            yield reject
