"""From a file of decisions to lines that last: what the gallery saved is resolved on the way.

Among its lines may be what the page saved, once or several times. That means something only while
the dataset that the page showed is there, and the run that takes it may replace this dataset. So
its lines are kept: beside the file, and by the run, whose dataset then has them as a sidecar. Their
mark says from which saved text they are, so that a later run finds them in either place.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator, Sequence

import pyarrow as pa

from darkroom import storage
from darkroom.dataset.checksums import find_changed, read_sums
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.index import read_index
from darkroom.dataset.layout import DECISIONS_FILE, Folders
from darkroom.dataset.named import find_named_data
from darkroom.dataset.opening import check_index_files, read_unchanged
from darkroom.decisions.lines import MAX_DECISION_BYTES, format_decisions, parse_decision
from darkroom.decisions.saved import (
    SAVED_COLUMNS,
    Saved,
    identify_saved,
    is_saved,
    parse_saved,
    resolve_saved,
)
from darkroom.errors import (
    DarkroomError,
    DataError,
    LostDatasetError,
    UsageError,
    describe_os_error,
)
from darkroom.runtime import progress
from darkroom.runtime.text import list_first

_BOM = b"\xef\xbb\xbf"


def make_lasting(
    path: str, folder: str, datasets: Sequence[Folders] = (), *, beside: bool = False
) -> str:
    """Returns a file that has the decisions of a file as lines that last.

    Args:
        path: The file.
        folder: Where the new file is written.
        datasets: Datasets that the run knows: each may be the one that was shown, or have the lines
            that an earlier run kept.
        beside: Whether new lines are also written beside the file, if its folder can be written.

    Returns:
        The new file; the given one if it has nothing that the gallery saved.

    Raises:
        DataError: A line is neither a decision nor what the gallery saves.
        LostDatasetError: The dataset that a line is about is not there any more.
        OSError: A file cannot be read or written, or is too large.
    """
    texts = list(_split(storage.read_bytes(path, MAX_DECISION_BYTES).removeprefix(_BOM)))
    if not any(is_saved(text) for _, text in texts):
        return path
    parts = []
    for number, text in texts:
        where = f"{path}, line {number}" if len(texts) > 1 else path
        if is_saved(text):
            parts.append(_find_lines(parse_saved(text, where), path, datasets, beside))
        else:
            parse_decision(text, where)
            parts.append(text + b"\n")
    lasting = storage.join(folder, DECISIONS_FILE)
    storage.write_bytes(lasting, b"".join(parts))
    return lasting


def _split(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the lines of a file with their numbers; all at once what was saved over many lines."""
    if is_saved(data):
        yield 1, data.strip()
        return
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            yield number, line.strip()


def _find_lines(saved: Saved, path: str, datasets: Sequence[Folders], beside: bool) -> bytes:
    """Returns the lasting lines of a saved text, as an earlier run kept them or by its dataset.

    Raises:
        LostDatasetError: Neither is there.
        OSError: A file cannot be read or written.
    """
    mark = identify_saved(saved)
    kept = f"{path.removesuffix('.json').removesuffix('.jsonl')}.{mark}.jsonl"
    if (lines := _read_kept(kept)) is not None:
        return lines
    found: list[str] = []
    named = Folders("", "", saved.records, saved.index, "")
    for each in (*datasets, *([named] if saved.records else [])):
        try:
            folders = each if each.index else _open_place(each.examples)
            fingerprint = read_dataset(folders.examples).fingerprint
        except (*storage.UNUSABLE, DataError, UsageError, PermissionError) as error:
            said = error.message if isinstance(error, DarkroomError) else describe_os_error(error)
            found.append(said.rstrip("."))
            continue
        if fingerprint == saved.dataset:
            lines = _resolve(saved, folders)
            if beside:
                _keep(kept, lines)
            return lines
        if lines := _read_sidecar(folders.examples, mark):
            return lines
        found.append(f"{folders.examples} has the fingerprint {fingerprint}")
    raise LostDatasetError(
        f"{path} has decisions about the dataset {saved.dataset}, which is not there any more: "
        f"{'; '.join(found) or 'this run knows of no dataset'}.",
        f"Give their lasting lines, {kept}, or {DECISIONS_FILE} in the dataset, or in the manifest "
        "of TFX, of the run that took them first. If none did: name the dataset that the gallery "
        "showed as base (--base), or make a new gallery.",
    )


def _open_place(place: str) -> Folders:
    return Folders.of_dataset(find_named_data(place))


def _resolve(saved: Saved, folders: Folders) -> bytes:
    """Returns the lasting lines of a saved text, by the index of its dataset.

    Raises:
        DataError: The dataset is damaged, or was replaced meanwhile.
        OSError: A file cannot be read.
    """
    root = folders.examples

    def read() -> pa.Table:
        dataset = read_dataset(root)
        if dataset.fingerprint != saved.dataset:
            raise DataError(f"The dataset in {root} was replaced while it was read.", "Try again.")
        if folders.index.startswith(f"{root}/"):  # In TFX it is a separate artifact.
            check_index_files(root, dataset)
        return read_index(folders.index, [*SAVED_COLUMNS])

    decisions, lost = resolve_saved(saved, read_unchanged([root], read))
    if lost:
        progress.warn(
            f"Left out, because the images are gone or changed since: {list_first(lost)}."
        )
    return format_decisions(decisions)


def _read_kept(path: str) -> bytes | None:
    """Returns the lines that an earlier run wrote beside a file; None if there are none."""
    try:
        lines = storage.read_bytes(path, MAX_DECISION_BYTES)
    # A store may deny what is not there.
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    for number, line in _split(lines):
        parse_decision(line, f"{path}, line {number}")
    return lines


def _read_sidecar(folder: str, mark: str) -> bytes:
    """Returns the lines with a mark that a dataset has as a sidecar; none if it is damaged."""
    try:
        sums = read_sums(folder)
        if DECISIONS_FILE not in sums or [*find_changed(folder, sums, [DECISIONS_FILE])]:
            return b""
        data = storage.read_bytes(storage.join(folder, DECISIONS_FILE), MAX_DECISION_BYTES)
    except (*storage.UNUSABLE, DataError):
        return b""
    lines = data.splitlines(keepends=True)
    return b"".join(each for each in lines if json.loads(each).get("saved") == mark)


def _keep(path: str, lines: bytes) -> None:
    """Writes lasting lines beside their file; says so if nothing can be written there."""
    try:
        storage.write_bytes(path, lines)
    except OSError as error:
        if not isinstance(error, PermissionError) and error.errno != errno.EROFS:
            raise
        progress.warn(f"The lasting lines are in the dataset alone: {path} cannot be written.")
        return
    progress.note(f"Decisions that last, also when the dataset changes: {path}.")
