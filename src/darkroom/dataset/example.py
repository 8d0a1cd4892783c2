"""tf.train.Example on the wire, written and read without TensorFlow.

Features are written in the order of their names, except that `image/encoded` is last: then the
image is the end of the message and is not copied into it. Protobuf readers accept any order, and
with a fixed one equal examples have equal bytes.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Mapping, Sequence

from darkroom.errors import DataError

IMAGE_ENCODED = "image/encoded"
IMAGE_FORMAT = "image/format"
IMAGE_HEIGHT = "image/height"
IMAGE_WIDTH = "image/width"
IMAGE_CHANNELS = "image/channels"
IMAGE_FILENAME = "image/filename"
IMAGE_SOURCE_ID = "image/source_id"
IMAGE_SHA256 = "image/key/sha256"
LABEL_NUMBER = "image/class/label"
LABEL_TEXT = "image/class/text"

FeatureValue = bytes | int | float | list[bytes] | list[int] | list[float]

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


def encode_example(features: Mapping[str, FeatureValue], image: bytes | None = None) -> bytes:
    """Returns the bytes of a tf.train.Example up to, and without, those of its image.

    Args:
        features: Values by name: `bytes`, `int` (int64) or `float` (float32), or a list of them.
        image: Value of `image/encoded`; the caller appends it to the result.
    """
    entries = b"".join([encode_feature(name, features[name]) for name in sorted(features)])
    if image is None:
        return _wrap(1, entries)
    head = _bytes_entry_head(IMAGE_ENCODED, len(image))
    return _tagged(1, len(entries) + len(head) + len(image)) + entries + head


def encode_feature(name: str, value: FeatureValue) -> bytes:
    """Returns the bytes of one feature in an example: an entry of the map Features.feature."""
    if isinstance(value, list):
        return _list_entry(name, value)
    if isinstance(value, bytes):
        return _cached_bytes_entry_head(name, len(value)) + value
    # Not cached: zero and minus zero would be the same key.
    return _number_entry(name, value) if isinstance(value, float) else _cached_entry(name, value)


def _bytes_entry_head(name: str, num_bytes: int) -> bytes:
    """Returns the map entry of a `bytes` feature without the value at its end."""
    value = _tagged(1, num_bytes)
    values = _tagged(1, len(value) + num_bytes) + value
    entry = _wrap(1, name.encode()) + _tagged(2, len(values) + num_bytes) + values
    return _tagged(1, len(entry) + num_bytes) + entry


def _number_entry(name: str, value: int | float) -> bytes:
    if isinstance(value, int):
        number = _varint(value & 0xFFFFFFFFFFFFFFFF)
        values, kind = _tagged(1, len(number)) + number, 3
    else:
        values, kind = _tagged(1, 4) + struct.pack("<f", value), 2
    return _wrap(1, _wrap(1, name.encode()) + _wrap(2, _wrap(kind, values)))


def _list_entry(name: str, values: list[bytes] | list[int] | list[float]) -> bytes:
    """Returns the map entry of a list; of an empty one, a feature without values."""
    if not values:
        feature = b""
    elif isinstance(values[0], bytes):
        items = [_tagged(1, len(value)) + value for value in values]
        feature = _wrap(1, b"".join(items))
    elif isinstance(values[0], float):
        feature = _wrap(2, _wrap(1, struct.pack(f"<{len(values)}f", *values)))
    else:
        numbers = [_varint(value & 0xFFFFFFFFFFFFFFFF) for value in values]  # type: ignore[operator]
        feature = _wrap(3, _wrap(1, b"".join(numbers)))
    key = name.encode()
    return _wrap(1, _wrap(1, key) + _wrap(2, feature))


def _wrap(field: int, content: bytes) -> bytes:
    return _tagged(field, len(content)) + content


# Sizes, label numbers and lengths of texts repeat often.
_cached_bytes_entry_head = functools.lru_cache(maxsize=4096)(_bytes_entry_head)
_cached_entry = functools.lru_cache(maxsize=4096)(_number_entry)


def _tagged(field: int, length: int) -> bytes:
    """Returns the tag of a field and the length of its content."""
    tag = field << 3 | _LENGTH
    # By far the most lengths: these are several times as fast as a loop.
    if length < 0x80:
        return bytes((tag, length))
    if length < 0x4000:
        return bytes((tag, length & 0x7F | 0x80, length >> 7))
    if length < 0x200000:
        return bytes((tag, length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14))
    return bytes((tag,)) + _varint(length)


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def decode_example(record: bytes) -> dict[str, list[bytes] | list[int] | list[float]]:
    """Returns the features of a serialised tf.train.Example, each a list of its values.

    Raises:
        DataError: The bytes are not such a message.
    """
    try:
        return dict(_decode_entries(record))
    except (IndexError, ValueError, struct.error) as error:
        raise DataError(
            f"A record of {len(record)} bytes is not a tf.train.Example: {error}.",
            "Check that the file was written by darkroom or another writer of examples.",
        ) from error


def _decode_entries(record: bytes) -> Iterator[tuple[str, list[bytes] | list[int] | list[float]]]:
    for field, features in _fields(record):
        if field != 1 or not isinstance(features, bytes):
            continue
        for _, entry in _fields(features):
            parts = dict(_fields(_as_bytes(entry)))
            name = _as_bytes(parts.get(1, b"")).decode()
            yield name, _decode_feature(_as_bytes(parts.get(2, b"")))


def _decode_feature(feature: bytes) -> list[bytes] | list[int] | list[float]:
    for kind, values in _fields(feature):
        items = [value for field, value in _fields(_as_bytes(values)) if field == 1]
        if kind == 1:
            return [_as_bytes(item) for item in items]
        if kind == 2:
            return [number for item in items for number in _floats(item)]
        return [number for item in items for number in _integers(item)]
    return []


def _floats(item: bytes | int) -> Sequence[float]:
    packed = struct.pack("<I", item) if isinstance(item, int) else item
    return struct.unpack(f"<{len(packed) // 4}f", packed)


def _integers(item: bytes | int) -> Iterator[int]:
    if isinstance(item, int):
        yield item - (1 << 64) if item >> 63 else item
        return
    place = 0
    while place < len(item):
        number, place = _read_varint(item, place)
        yield number - (1 << 64) if number >> 63 else number


def _as_bytes(value: bytes | int) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where a message was expected")
    return value


def _fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yields the number and value of every field of a protobuf message."""
    place = 0
    while place < len(message):
        tag, place = _read_varint(message, place)
        wire = tag & 7
        if wire == _VARINT:
            number, place = _read_varint(message, place)
            yield tag >> 3, number
            continue
        if wire == _LENGTH:
            length, place = _read_varint(message, place)
        elif wire in (_FIXED32, _FIXED64):
            length = 4 if wire == _FIXED32 else 8
        else:
            raise ValueError(f"unknown wire type {wire}")
        value = message[place : place + length]
        if len(value) != length:
            raise ValueError("the message ends early")
        place += length
        yield tag >> 3, value if wire == _LENGTH else int.from_bytes(value, "little")


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[place]
        place += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if number >> 64 or (shift > 63 and byte >= 0x80):
            raise ValueError("a number has more than 64 bits")
        if byte < 0x80:
            return number, place
