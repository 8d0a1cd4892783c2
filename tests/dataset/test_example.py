from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.dataset.example import decode_example, encode_example
from darkroom.errors import DataError

_NAMES = st.text(min_size=1, max_size=20).filter(lambda name: name != "image/encoded")
_VALUES = st.one_of(
    st.binary(max_size=300),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(width=32, allow_nan=False),
)


def test_the_bytes_are_those_of_the_protobuf():
    # Example { features { feature { key "a" value { int64_list { value: 300 } } }
    #                      feature { key "b" value { bytes_list { value: "xy" } } } } }
    assert encode_example({"b": b"xy", "a": 300}).hex(" ") == (
        "0a 1b 0a 0b 0a 01 61 12 06 1a 04 0a 02 ac 02 0a 0b 0a 01 62 12 06 0a 04 0a 02 78 79"
    ).replace("0a 1b", "0a 1a")


@given(st.dictionaries(_NAMES, _VALUES, max_size=6), st.one_of(st.none(), st.binary(max_size=300)))
def test_an_encoded_example_is_decoded(features, image):
    record = encode_example(features, image) + (image or b"")
    expected = {name: [value] for name, value in features.items()}
    if image is not None:
        expected["image/encoded"] = [image]
    assert decode_example(record) == expected


def test_equal_features_make_equal_bytes_in_any_order():
    assert encode_example({"a": 1, "b": b"x"}) == encode_example({"b": b"x", "a": 1})


@given(st.binary(max_size=200))
def test_any_bytes_are_an_example_or_a_data_error(record):
    with contextlib.suppress(DataError):
        decode_example(record)


def test_a_record_that_ends_early_is_an_error():
    with pytest.raises(DataError, match=r"is not a tf\.train\.Example"):
        decode_example(encode_example({"name": b"value"})[:-2])


def test_a_number_of_more_than_64_bits_is_an_error():
    record = bytes.fromhex("0a150a130a0161120e1a0c0a0a" + "ff" * 9 + "01")
    assert decode_example(record) == {"a": [-1]}
    with pytest.raises(DataError, match="64 bits"):
        decode_example(record[:-1] + b"\x02")
