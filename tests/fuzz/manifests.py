"""What the targets of the sources share: any file has rows, or an error that says why."""

from __future__ import annotations

import sys
import tempfile
import zlib
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["darkroom"]):
    from tests.parsed import parse_rows

    from darkroom.dataset.example import encode_example
    from darkroom.dataset.rejects import OBJECT_STAGE, Reject, read_rejects
    from darkroom.errors import DataError, UsageError
    from darkroom.manifest.opening import open_sources
    from darkroom.manifest.writer import write_manifest
    from darkroom.options.manifest import ManifestOptions
    from darkroom.storage.uris import has_scheme

_FOLDER = tempfile.TemporaryDirectory(prefix="fuzz-")
_INT64 = range(-(1 << 63), 1 << 63)
# Writing a manifest takes two hundred times as long as reading its source.
_WRITTEN_SHARE = 128


def check_source(data: bytes, name: str) -> None:
    """Reads `data` as a file called `name`, and writes the manifest of some of them."""
    path = Path(_FOLDER.name, name)
    path.write_bytes(data)
    check_path(path, data)


def make_folder(name: str) -> Path:
    """Makes a folder for the files of an input."""
    folder = Path(_FOLDER.name, name)
    folder.mkdir(exist_ok=True)
    return folder


def check_path(path: Path, data: bytes) -> None:
    """Reads a source made of `data`, and writes the manifest of some of them."""
    try:
        items = list(parse_rows(open_sources(str(path)), ManifestOptions()))
    except (DataError, UsageError):
        return
    rows = [
        item.row for item in items if not isinstance(item, Reject) or item.stage != OBJECT_STAGE
    ]
    assert rows == list(range(1, len(rows) + 1))
    for item in items:
        check_item(item)
    # A remote image would be looked up.
    if zlib.crc32(data) % _WRITTEN_SHARE == 0 and not any(has_scheme(item.uri) for item in items):
        check_manifest(path, len(rows))


def check_item(item: object) -> None:
    """Checks that an entry can be stored, and that a reject says why it is one."""
    if isinstance(item, Reject):
        assert item.reason
        assert item.detail
        return
    label = item.label if isinstance(item.label, str) else ""
    for text in (item.key, item.id, item.uri, item.split, label):
        text.encode()
    for name, value in item.extra.items():
        assert not isinstance(value, int) or value in _INT64
        encode_example({name: value.encode() if isinstance(value, str) else value or 0})


def check_manifest(path: Path, num_rows: int) -> None:
    """Writes a manifest, and counts that no row is lost."""
    try:
        manifest = write_manifest(str(path), _FOLDER.name, _FOLDER.name)
    except (DataError, UsageError):
        return
    rejects = [
        each
        for each in read_rejects(f"{_FOLDER.name}/rejects.parquet")
        if each.stage != OBJECT_STAGE
    ]
    assert manifest.rows == num_rows
    assert manifest.rejected == len(rejects)
    assert manifest.num_examples + manifest.rejected + manifest.deduplicated == num_rows
