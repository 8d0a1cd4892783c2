"""From what the gallery's page saved to the file that `--decisions` takes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from darkroom import storage
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.index import read_index
from darkroom.dataset.layout import Folders
from darkroom.dataset.named import find_named
from darkroom.dataset.opening import check_index_files, check_outside, read_unchanged
from darkroom.dataset.pointer import find_data
from darkroom.decisions.files import hash_files
from darkroom.decisions.lines import Decision, format_decisions
from darkroom.decisions.saved import (
    COLUMNS,
    MAX_BYTES,
    Saved,
    identify_saved,
    parse_saved,
    resolve_saved,
)
from darkroom.runtime import progress
from darkroom.runtime.text import MAX_LISTED_ROWS, format_count, make_visible
from darkroom.storage import ledger

_STATE = ("source_size", "source_version", "changes")


@dataclass(frozen=True)
class Resolved:
    """The result of `resolve`.

    Attributes:
        path: The file that `--decisions` takes.
        actions: How many decisions there are of each action.
        unknown: Images whose file has changed or is gone, or cannot be read, where the record does
            not have its bytes. Decisions about them are left out.
    """

    path: str
    actions: Mapping[str, int]
    unknown: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the result as values that JSON knows."""
        return asdict(self)


@storage.report_failures
@progress.shown
def resolve(
    directory: str | os.PathLike[str],
    saved: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> Resolved:
    """Writes the decisions that the gallery's page saved with the keys and hashes of their images.

    Where a record has the very bytes of a file, no file is read.

    Args:
        directory: The dataset that the gallery showed.
        saved: The file that the page saved.
        output: The file to write.
        overwrite: Whether a file that exists is replaced.

    Returns:
        What was written.

    Raises:
        DataError: The file is damaged or was saved for another dataset; or the dataset is damaged.
        OutputError: The file exists, or is in the dataset.
        OSError: A file cannot be read or written, or is too large.
    """
    root, path = find_data(find_named(directory)), storage.absolute(output)
    check_outside(root, path, "The list")
    ledger.check_output_file(
        path,
        overwrite=overwrite,
        otherwise=f"Files can be joined: cat NEW >> {os.path.basename(path)}.",
    )
    source = storage.absolute(saved)
    content = parse_saved(storage.read_bytes(source, MAX_BYTES), source)
    known, unknown = read_places(content, Folders.of_dataset(root))
    storage.write_bytes(path, format_decisions(known))
    counts = Counter(each.action for each in known)
    return Resolved(path, dict(counts), tuple(unknown))


def read_places(saved: Saved, folders: Folders) -> tuple[list[Decision], list[str]]:
    """Returns decisions with the keys and hashes of their images, and the images without.

    Args:
        saved: What the page saved.
        folders: The dataset that it showed, and its index.

    Raises:
        DataError: It was saved for another dataset; or the dataset is damaged.
        OSError: A file cannot be read.
    """
    root = folders.examples

    def read() -> tuple[str, pa.Table]:
        dataset = read_dataset(root)
        if folders.index.startswith(f"{root}/"):  # In TFX it is a separate artifact.
            check_index_files(root, dataset)
        return dataset.fingerprint, read_index(folders.index, [*COLUMNS, *_STATE])

    fingerprint, index = read_unchanged([root], read)
    decisions = resolve_saved(saved, fingerprint, index)
    keys = pa.array({key for each in decisions for key, _, _ in each.images}, pa.string())
    # Records with other bytes than their files.
    made_anew = pc.and_(pc.not_equal(index["changes"], ""), pc.is_in(index["key"], keys))
    rows = index.filter(made_anew).to_pylist()
    files = [(row["uri"], (row["source_size"], row["source_version"])) for row in rows]
    hashes = dict(zip((row["key"] for row in rows), hash_files(files), strict=True))
    known: list[Decision] = []
    unknown: list[str] = []
    mark = identify_saved(saved)
    for each in decisions:
        lost = [name for key, _, name in each.images if hashes.get(key) == ""]
        unknown += lost
        if not lost:
            sha256 = hashes.get(each.key, each.sha256)
            other = hashes.get(each.other_key or "", each.other_sha256)
            known.append(replace(each, sha256=sha256, other_sha256=other, saved=mark))
    return known, list(dict.fromkeys(unknown))


def format_resolved(result: Resolved) -> str:
    """Returns the result as text for a terminal."""
    counts = ", ".join(f"{action} {count:,}" for action, count in result.actions.items())
    lines = [f"Decisions  {counts or 'none'}", f"File       {result.path}"]
    if result.unknown:
        count = format_count(len(result.unknown), "image")
        lines.append(f"Left out   {count}, whose files cannot be read, or changed since:")
        lines += [f"           {make_visible(uri)}" for uri in result.unknown[:MAX_LISTED_ROWS]]
    return "\n".join(lines)
