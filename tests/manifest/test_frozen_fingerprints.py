"""Fingerprints that may not change: by them caches and finished conversions are found.

The text of a reject is a part of its fingerprint, so another wording is another dataset, too. Paths
are absolute and lead nowhere, so that a fingerprint does not depend on the folder of the test.
"""

from __future__ import annotations

import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.parsed import parse_rows

from darkroom.dataset.rejects import Reject
from darkroom.dataset.schema import Schema
from darkroom.manifest.fingerprint import fingerprint_source
from darkroom.manifest.opening import open_sources
from darkroom.options.manifest import ManifestOptions

LABELS = (
    "split,image_uri,label\n"
    "TRAIN,/nowhere/a.jpg,cat\n,/nowhere/b.jpg,dog\nTEST,/nowhere/c.jpg,007\n"
)
FAULTS = (
    "image_uri,label,age\n/usr/a.jpg,cat,1\n,cat,2\n/usr/b.jpg,cat\n/usr/c\0.jpg,cat,3\n"
    "image_uri,label,age\n/usr/d.jpg,cat,old\nhttp://host/e.jpg,cat,4\n/elsewhere/f.jpg,cat,5\n"
    "C:\\nowhere\\g.jpg,cat,6\n/usr/h.jpg,,7\n/usr/i.jpg,c\u200bat,8\n/usr/j.jpg,cow,9\n"
    f"/usr/{'k' * 5000}.jpg,cat,10\n"
)
FAULT_CODES = {
    *("bad_label", "bad_value", "empty_label", "no_image", "nul_byte"),
    *("outside_root", "ragged_row", "repeated_header", "unknown_label", "unsupported_scheme"),
    "windows_path",
}


def _boxes(*boxes, label="cat"):
    objects = [{"label": label, "box": box, "id": n} for n, box in enumerate(boxes)]
    return {"width": 20, "height": 10, "objects": objects}


def _write_lines(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def _write(path, text):
    path.write_bytes(text.encode())
    return path


def _many(folder):
    rows = "".join(f"/nowhere/{n}.jpg,{n % 7}\n" for n in range(16_500))
    return _write(folder / "l.csv", f"image_uri,label\n{rows}"), {}


def _spans(folder):
    for number in (3, 11):
        _write(folder / f"week-{number}.csv", f"image_uri,label\n/nowhere/{number}.jpg,cat\n")
    return folder / "week-{SPAN}.csv", {}


def _types(folder):
    table = pa.table(
        {
            "image_uri": ["/nowhere/a.jpg", "/nowhere/b.jpg"],
            "label": pa.array([3, None]),
            "whole": pa.array([1 << 60, None]),
            "share": pa.array([1e-05, 0.1 + 0.2]),
            "single": pa.array([0.1, None], pa.float32()),
            "text": ["a\0b", "\u00e4\U0001f600"],
        }
    )
    pq.write_table(table, folder / "l.parquet")
    return folder / "l.parquet", {}


def _objects(folder):
    rows = [
        {"image_uri": "/nowhere/a.jpg", "objects": _boxes([1, 2, 3, 4], [0, 0, 1e-05, 2])},
        {"image_uri": "/nowhere/b.jpg", "objects": _boxes([1, 2, 3], ["x", 0, 1, 1], [5, 1, 4, 2])},
        {"image_uri": "/nowhere/c.jpg", "objects": _boxes([1, 2, 3, 4], label="")},
        {"image_uri": "/nowhere/d.jpg", "objects": None},
        {"image_uri": "/nowhere/\udcff.jpg", "objects": _boxes()},
    ]
    return _write_lines(folder / "l.jsonl", rows), {}


SOURCES = {
    "labels": lambda folder: (_write(folder / "l.csv", LABELS), {"seed": 3}),
    "faults": lambda folder: (
        _write(folder / "l.csv", FAULTS),
        {
            "allowed_roots": ("/usr",),
            "labels": ("cat", "dog"),
            "schema": Schema.parse(
                {"image_uri": "image", "label": "string_label", "age": "integer"}
            ),
        },
    ),
    "more than a block of rows": _many,
    "spans of names": _spans,
    "spans of a column": lambda folder: (
        _write(
            folder / "l.csv", "image_uri,label,week\n/nowhere/a.jpg,cat,7\n/nowhere/b.jpg,cat,\n"
        ),
        {"span_column": "week"},
    ),
    "types": _types,
    "objects": _objects,
    "a DataFrame": lambda _: (
        pd.DataFrame({"image": ["/nowhere/a.jpg", None], "label": ["cat", "dog"], "age": [1.5, 2]}),
        {},
    ),
    "several labels": lambda folder: (
        _write(folder / "l.csv", "image_uri,label\n/nowhere/a.jpg,b;a\n/nowhere/b.jpg,\n"),
        {"label_separator": ";"},
    ),
    "numbers": lambda folder: (
        _write(folder / "l.csv", "image_uri,x,y\n/nowhere/a.jpg,1e-05,2\n/nowhere/b.jpg,,x\n"),
        {"target_columns": ("x", "y")},
    ),
    "ids": lambda folder: (
        _write(folder / "l.csv", "id,image_uri,label\n7,/nowhere/a.jpg,cat\n,/nowhere/b.jpg,cat\n"),
        {},
    ),
    "rows without images": lambda folder: (
        _write(folder / "l.csv", "label,age\ncat,1\ncat,1\ndog,0.5\n"),
        {"schema": Schema.parse({"label": "string_label", "age": "float"})},
    ),
}
FROZEN = {
    "labels": "d559450bc5b7af8dc767462193a3aff0",
    "faults": "7d3b45196f68001dcfc4a65df35976a1",
    "more than a block of rows": "b7cee4d1c947b5a0cc746fb5881e02dc",
    "spans of names": "4a4dcfde915fdfbcb544b731e64cb678",
    "spans of a column": "8fde1b0c6cc5cf56d1ce160d1030f3bf",
    "types": "be081d9bafab52345e7d61a5af065382",
    "objects": "a6098c3bd97c700b8af6c554f7ca3d4e",
    "a DataFrame": "359c12d3b00f7b973f6227b8e0c6537e",
    "several labels": "84385b4053c6e6ce759c4aeb63113f97",
    "numbers": "488eb8c54bcc62ad262ff9e70b6f74a6",
    "ids": "845b22f6765ef446c0ecdc3fd721affc",
    "rows without images": "a18a2bcff1bd951e4f90b5d6ff007895",
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_fingerprint_is_that_of_older_versions(name, tmp_path):
    source, options = SOURCES[name](tmp_path)
    assert fingerprint_source(source, ManifestOptions(**options)) == FROZEN[name]


def test_the_faults_have_each_code_of_a_list(tmp_path):
    source, options = SOURCES["faults"](tmp_path)
    options = ManifestOptions(**options)
    rows = parse_rows(open_sources(source, options), options)
    assert {row.reason for row in rows if isinstance(row, Reject)} == FAULT_CODES
