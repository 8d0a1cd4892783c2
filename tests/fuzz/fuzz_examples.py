"""The reader of tf.train.Example: any record has values of the three kinds, or is a DataError."""

from __future__ import annotations

import atheris
import harness

with atheris.instrument_imports(include=["darkroom"]):
    from darkroom.dataset.example import decode_example, encode_example
    from darkroom.errors import DataError

_INT64 = range(-(1 << 63), 1 << 63)


def check(data: bytes) -> None:
    try:
        features = decode_example(data)
    except DataError:
        return
    for name, values in features.items():
        name.encode()
        assert len({type(value) for value in values}) <= 1
        for value in values:
            assert isinstance(value, bytes | float) or value in _INT64
    single = {
        name: values[0]
        for name, values in features.items()
        if len(values) == 1 and values[0] == values[0]
    }
    expected = {name: [value] for name, value in single.items()}
    assert decode_example(encode_example(single)) == expected


def make_seeds() -> list[bytes]:
    image = b"\xff\xd8\xff\xd9"
    return [
        encode_example({}),
        encode_example({"a": 1, "b": -1, "c": 300, "d": 0.5, "e": b"text"}),
        encode_example({"image/class/label": 7}, image) + image,
        # Example { features { feature { key "a" value { int64_list { value: [1, 2, 300] } } } } },
        # packed, then value by value; and the same with floats.
        bytes.fromhex("0a0f0a0d0a01611208" + "1a060a040102ac02"),
        bytes.fromhex("0a100a0e0a01611209" + "1a07080108020 8ac02".replace(" ", "")),
        bytes.fromhex("0a110a0f0a0161120a" + "12080a0600000000 803f".replace(" ", "")),
    ]


if __name__ == "__main__":
    harness.fuzz(check, make_seeds())
