"""The TFRecord reader: any file holds just the records that would write it, or is a DataError."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import atheris
import harness

with atheris.instrument_imports(include=["darkroom"]):
    from darkroom.dataset.tfrecord import RecordWriter, read_records
    from darkroom.errors import DataError

_FOLDER = tempfile.TemporaryDirectory(prefix="fuzz-")


def check(data: bytes) -> None:
    for name in ("plain", "packed.gz"):
        path = Path(_FOLDER.name, name)
        path.write_bytes(data)
        try:
            records = list(read_records(str(path)))
        except DataError:
            continue
        if name == "plain":
            assert write(records) == data, "the file holds more than its records"


def write(records: list[bytes], compressed: bool = False) -> bytes:
    file = io.BytesIO()
    writer = RecordWriter(file, compressed)
    for record in records:
        writer.write(record)
    writer.close()
    return file.getvalue()


def make_seeds() -> list[bytes]:
    contents = ([], [b""], [b"a"], [b"first", b"", b"x" * 300])
    return [write(records, packed) for records in contents for packed in (False, True)]


if __name__ == "__main__":
    harness.fuzz(check, make_seeds())
