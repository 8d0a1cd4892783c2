"""CSV there and back: what Python's csv writes from any text is what our source reads."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from darkroom.dataset.schema import Columns, Schema
from darkroom.manifest.sources.base import Row
from darkroom.manifest.sources.csv import CsvSource

pytestmark = pytest.mark.slow

_COLUMNS = ("image_uri", "label", "note")
_SCHEMA = Schema.parse({"image_uri": "image", "label": "string_label", "note": "string"})
# U+FDD0, a noncharacter that no text may hold, is NUL to the source.
_TEXT = st.text(
    st.one_of(
        st.sampled_from("\",\r\n'; \t\x0b\x0c\x1c\x85\u2028\ufeff=\0"),
        st.characters(exclude_categories=["Cs"], exclude_characters="\ufdd0"),
    ),
    max_size=12,
)
_ROWS = st.lists(st.tuples(_TEXT, _TEXT, _TEXT), min_size=1, max_size=8)
_DIALECTS = st.sampled_from(
    [
        {},
        {"quoting": csv.QUOTE_ALL},
        {"quoting": csv.QUOTE_ALL, "lineterminator": "\n"},
        {"quoting": csv.QUOTE_ALL, "lineterminator": "\r"},
        {"quoting": csv.QUOTE_NONNUMERIC},
    ]
)


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("csv") / "m.csv"


@given(_ROWS, _DIALECTS, st.sampled_from(["utf-8", "utf-8-sig"]))
@example([("a", "b", "1\r\n2\n3\r"), ('"', '""', ",")], {}, "utf-8")
@example([("", "", ""), ("\ufeff", " ", "\n")], {}, "utf-8-sig")
def test_any_cells_are_read_as_written(path, rows, dialect, encoding):
    rows = [cells for cells in rows if cells != _COLUMNS]
    # Python 3.10 writes no NUL.
    written = [[cell.replace("\0", "<nul>") for cell in cells] for cells in (_COLUMNS, *rows)]
    text = io.StringIO(newline="")
    csv.writer(text, **dialect).writerows(written)
    path.write_bytes(text.getvalue().replace("<nul>", "\0").encode(encoding))

    found = list(CsvSource(str(path), Columns(_SCHEMA)).rows())

    for number, (item, cells) in enumerate(zip(found, rows, strict=True), start=1):
        assert item.row == number
        if any("\0" in cell for cell in cells):
            assert item.fault
            assert item.fault.reason == "nul_byte"
            assert item.values == [cell.replace("\0", "\ufffd") for cell in cells]
        else:
            assert item == Row(number, list(cells))


@given(_ROWS, st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=8, max_size=8))
@pytest.mark.crosses
def test_exported_records_are_read_as_exported(path, rows, numbers):
    from darkroom.audit.contact_sheet import format_csv

    records = [
        {"name": [name.replace("\0", "").encode()], "n": [number], "image/encoded": [b"\xff\xd8"]}
        for (name, _, _), number in zip(rows, numbers, strict=False)
    ]
    path.write_text(format_csv(records, ["image/encoded", "name", "n"]), "utf-8", newline="")

    source = CsvSource(str(path), Columns(Schema.parse({"name": "string", "n": "integer"})))

    for item, record in zip(source.rows(), records, strict=True):
        name, number = item.values
        assert int(number) == record["n"][0]
        # Text that a spreadsheet would run begins with an apostrophe; other text is unchanged.
        expected = record["name"][0].decode()
        assert name in (expected, f"'{expected}")
        assert name[:1] not in tuple("=+-@\t\r")
        assert name == expected or expected[0] in "=+-@\t\r"
