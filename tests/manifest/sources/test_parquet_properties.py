"""Parquet of any types: every row is an entry or a reject, and numbers stay what they are."""

from __future__ import annotations

import datetime
import decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.parsed import parse_rows

from darkroom.dataset.example import encode_example
from darkroom.dataset.rejects import Reject
from darkroom.dataset.schema import Kind
from darkroom.manifest.opening import open_sources
from darkroom.options.manifest import ManifestOptions

pytestmark = pytest.mark.slow

_TEXT = st.text(max_size=6)
_INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
_KINDS = {
    pa.string(): _TEXT,
    pa.binary(): st.binary(max_size=6),
    pa.int8(): st.integers(-128, 127),
    pa.int64(): _INT64,
    pa.uint64(): st.integers(0, (1 << 64) - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(datetime.timezone.utc)),
    pa.duration("s"): st.timedeltas().map(lambda t: datetime.timedelta(seconds=t.days)),
    pa.decimal128(9, 3): st.integers(-99_999, 99_999).map(lambda n: decimal.Decimal(n) / 1000),
    pa.list_(pa.string()): st.lists(_TEXT, max_size=2),
    pa.list_(pa.binary()): st.lists(st.binary(max_size=6), max_size=2),
    pa.struct([("a", pa.int64()), ("b", pa.date32())]): st.fixed_dictionaries(
        {"a": _INT64, "b": st.dates()}
    ),
    pa.null(): st.none(),
}
_NAMES = ["image_uri", "split", "label", "id", "extra", "row"]


@st.composite
def tables(draw):
    rows = draw(st.integers(1, 5))
    columns = {}
    for name in draw(st.lists(st.sampled_from(_NAMES), min_size=1, unique=True)):
        kind = draw(st.sampled_from([pa.string(), *_KINDS]))
        cells = st.lists(st.one_of(st.none(), _KINDS[kind]), min_size=rows, max_size=rows)
        columns[name] = pa.array(draw(cells), kind)
    return pa.table({"image_uri": ["a.jpg"] * rows, **columns})


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("parquet") / "m.parquet"


@given(tables().filter(lambda table: "split" not in table.column_names))
@example(pa.table({"image_uri": [["a.jpg", "b.jpg"]]}))
@example(pa.table({"image_uri": [[b"a.jpg", b"b.jpg"]]}))
def test_every_row_is_an_entry_or_a_reject(path, table):
    pq.write_table(table, path)
    sources = open_sources(path)
    items = list(parse_rows(sources, ManifestOptions()))
    assert [item.row for item in items] == list(range(1, table.num_rows + 1))
    for place, item in enumerate(items):
        if isinstance(item, Reject):
            assert item.reason
            assert item.detail
            continue
        encode_example({name: as_feature(value) for name, value in item.extra.items()})
        for name, kind in sources[0].schema.inputs:
            check_value(item.extra[name], table[name][place].as_py(), kind)


def as_feature(value):
    if value is None:
        return b""
    return value.encode() if isinstance(value, str) else value


def check_value(found, given_value, kind):
    if given_value is None or given_value != given_value:
        assert found is None or kind is Kind.STRING
    elif kind in (Kind.INTEGER, Kind.FLOAT):
        assert found == given_value
        assert type(found) is (int if kind is Kind.INTEGER else float)
    elif isinstance(given_value, str):
        assert found == (given_value or None)
    else:
        assert found is None or isinstance(found, str)
