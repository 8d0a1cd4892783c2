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


def test_a_record_with_a_group_is_an_error():
    with pytest.raises(DataError, match="unknown wire type 3"):
        decode_example(encode_example({"name": b"value"}) + bytes.fromhex("1b 1c"))


def test_a_record_that_ends_early_is_an_error():
    with pytest.raises(DataError, match=r"is not a tf\.train\.Example"):
        decode_example(encode_example({"name": b"value"})[:-2])


def field(number: int, content: bytes) -> bytes:
    return bytes((number << 3 | 2, len(content))) + content


def feature(value: bytes, name: bytes = b"a") -> bytes:
    return field(1, field(1, field(1, name) + field(2, value)))


def numbers(content: bytes) -> bytes:
    return field(3, field(1, content))


ONE = numbers(b"\x01")
# Odd messages, and what protobuf makes of them; None: it refuses them.
ODD = {
    "a field that no example has": (feature(ONE) + bytes.fromhex("10 05"), {"a": [1]}),
    "fields of other types": (
        feature(b"\x08\x05" + field(3, b"\x09" + bytes(8)) + ONE),
        {"a": [1]},
    ),
    "numbers one by one": (feature(field(3, bytes.fromhex("08 05 08 06"))), {"a": [5, 6]}),
    "floats one by one": (feature(field(2, bytes.fromhex("0d 00 00 80 3f"))), {"a": [1.0]}),
    "half a float": (feature(field(2, field(1, bytes(6)))), None),
    "an unknown kind": (feature(field(4, field(1, b"xy"))), {"a": []}),
    "two kinds": (feature(ONE + field(1, field(1, b"x"))), {"a": [b"x"]}),
    "one kind twice": (feature(ONE + numbers(b"\x02")), {"a": [1, 2]}),
    "a value twice": (
        field(1, field(1, field(1, b"a") + field(2, ONE) + field(2, numbers(b"\x02")))),
        {"a": [1, 2]},
    ),
    "a name twice": (feature(ONE) + feature(field(1, field(1, b"x"))), {"a": [b"x"]}),
    "no name and no value": (field(1, field(1, b"")), {"": []}),
    "a name that is not text": (feature(ONE, b"\xff"), None),
    "a field without a number": (feature(ONE) + bytes.fromhex("02 00"), None),
    "a number of 64 bits": (feature(numbers(b"\xff" * 9 + b"\x01")), {"a": [-1]}),
    "a number of 70 bits": (feature(numbers(b"\xff" * 9 + b"\x7f")), {"a": [-1]}),
    "a number of 77 bits": (feature(numbers(b"\xff" * 10 + b"\x01")), None),
}


@pytest.mark.parametrize(("record", "expected"), ODD.values(), ids=ODD)
def test_an_odd_message_is_what_protobuf_makes_of_it(record, expected):
    if expected is not None:
        assert decode_example(record) == expected
        return
    with pytest.raises(DataError, match=r"is not a tf\.train\.Example"):
        decode_example(record)
