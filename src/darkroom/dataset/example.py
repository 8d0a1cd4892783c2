"""tf.train.Example on the wire, written and read without TensorFlow.

Features are written in the order of their names, except that `image/encoded` is last: then the
image is the end of the message and is not copied into it. Protobuf readers accept any order, and
with a fixed one equal examples have equal bytes.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

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

FeatureValues = list[bytes] | list[int] | list[float]
FeatureValue = bytes | int | float | FeatureValues

# Of groups, 3 and 4, no version of examples has any.
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
# The most bytes of a number, and of a tag or a length.
_NUMBER_BYTES, _TAG_BYTES = 10, 5
_MAX_NUMBER, _MAX_FIELD = (1 << 64) - 1, (1 << 29) - 1


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


def encode_source_id(key: str, number: int | None) -> bytes:
    """Returns `image/source_id` of a record: its number as text, or its key if it has none."""
    return (key if number is None else f"{number}").encode()


def encode_feature(name: str, value: FeatureValue) -> bytes:
    """Returns the bytes of one feature in an example: an entry of the map Features.feature."""
    if isinstance(value, bytes):
        return _cached_bytes_entry_head(name, len(value)) + value
    if isinstance(value, int):
        return _cached_integer(name, value)
    values = value if isinstance(value, list) else [value]
    if not values:
        return _wrap(1, _cached_name(name) + _wrap(2, b""))
    first = values[0]
    if isinstance(first, float):
        return _cached_floats(name, len(values))(*values)
    is_text = isinstance(first, bytes)
    packed = b"".join(map(_cached_text, values)) if is_text else _pack_integers(values)
    return _cached_list_head(name, 1 if is_text else 3, len(packed)) + packed


def _bytes_entry_head(name: str, num_bytes: int) -> bytes:
    """Returns the map entry of a `bytes` feature without the value at its end."""
    value = _tagged(1, num_bytes)
    return _list_head(name, 1, len(value) + num_bytes) + value


def _make_floats(name: str, count: int) -> Callable[..., bytes]:
    """Returns what makes the map entry of so many floats."""
    head = _list_head(name, 2, 4 * count)
    return functools.partial(struct.Struct(f"<{len(head)}s{count}f").pack, head)


def _list_head(name: str, kind: int, num_bytes: int) -> bytes:
    """Returns the map entry of a list without its values, the field `kind` of a feature."""
    # Texts are fields of the list, and numbers one field.
    head = b"" if kind == 1 else _tagged(1, num_bytes)
    for field in (kind, 2):
        head = _tagged(field, len(head) + num_bytes) + head
    entry = _cached_name(name) + head
    return _tagged(1, len(entry) + num_bytes) + entry


def _pack_integers(values: Sequence[Any]) -> bytes:
    try:
        packed = bytes(values)  # as most numbers of classes
    except ValueError:
        packed = b"\x80"  # A number takes several bytes.
    if packed.isascii():
        return packed
    return b"".join([_varint(value & 0xFFFFFFFFFFFFFFFF) for value in values])


def _wrap(field: int, content: bytes) -> bytes:
    return _tagged(field, len(content)) + content


# Sizes, label numbers and lengths of texts repeat often.
_cached_bytes_entry_head = functools.lru_cache(maxsize=4096)(_bytes_entry_head)
_cached_integer = functools.lru_cache(maxsize=4096)(
    lambda name, value: encode_feature(name, [value])
)
_cached_list_head = functools.lru_cache(maxsize=4096)(_list_head)
_cached_text = functools.lru_cache(maxsize=4096)(lambda text: _wrap(1, text))
_cached_floats = functools.lru_cache(maxsize=4096)(_make_floats)
_cached_name = functools.lru_cache(maxsize=4096)(lambda name: _wrap(1, name.encode()))


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


def decode_example(record: bytes) -> dict[str, FeatureValues]:
    """Returns the features of a serialised tf.train.Example, each a list of its values.

    As by protobuf, fields are skipped that no example has or that are of another type on the wire,
    and of what comes several times the last one counts, or all are joined. Groups are refused.

    Raises:
        DataError: The bytes are not such a message.
    """
    found: dict[str, FeatureValues] = {}
    try:
        for entry in _find_messages(_find_messages([memoryview(record)], 1), 1):
            name, value = "", bytearray()
            for field, wire, content in _fields(entry):
                if (field, wire) == (1, _LENGTH):
                    name = bytes(content).decode()
                elif (field, wire) == (2, _LENGTH):
                    # Messages that follow each other are one.
                    value += content
            found[name] = _decode_feature(memoryview(value))
    except (IndexError, ValueError, struct.error) as error:
        raise DataError(
            f"A record of {len(record)} bytes is not a tf.train.Example: {error}.",
            "Check that the file was written by darkroom or another writer of examples.",
        ) from error
    return found


def name_image(features: Mapping[str, Sequence[Any]]) -> str:
    """Returns the name of the image of a record, for a message."""
    names = features.get(IMAGE_FILENAME) or features.get(IMAGE_SOURCE_ID) or ()
    if not names:
        return "without a name"
    return names[0].decode(errors="replace") if isinstance(names[0], bytes) else str(names[0])


def _find_messages(messages: Iterable[memoryview], number: int) -> Iterator[memoryview]:
    """Yields the messages in a field of messages."""
    for message in messages:
        for field, wire, content in _fields(message):
            if (field, wire) == (number, _LENGTH):
                yield content


def _decode_feature(feature: memoryview) -> FeatureValues:
    """Returns the values of a serialised Feature; of several kinds of lists the last one counts."""
    values: list[Any] = []
    last = 0
    for kind, wire, content in _fields(feature):
        if wire != _LENGTH or kind not in _PARSERS:
            continue
        # Lists of one kind that follow each other are joined.
        if kind != last:
            values, last = [], kind
        parse = _PARSERS[kind]
        for field, item_wire, item in _fields(content):
            if field == 1:
                values += parse(item_wire, item)
    return values


def _parse_bytes(wire: int, item: memoryview) -> list[bytes]:
    return [bytes(item)] if wire == _LENGTH else []


def _parse_floats(wire: int, item: memoryview) -> Sequence[float]:
    if wire not in (_LENGTH, _FIXED32):
        return ()
    return struct.unpack(f"<{len(item) // 4}f", item)


def _parse_integers(wire: int, item: memoryview) -> Iterator[int]:
    place = 0
    while wire in (_LENGTH, _VARINT) and place < len(item):
        number, place = _read_varint(item, place)
        yield number - (1 << 64) if number >> 63 else number


# By the field of a feature that has the values.
_PARSERS: dict[int, Callable[[int, memoryview], Iterable[Any]]] = {
    1: _parse_bytes,
    2: _parse_floats,
    3: _parse_integers,
}


def _fields(message: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Yields the number, the type on the wire and the bytes of every field of a message."""
    place, end = 0, len(message)
    while place < end:
        tag, start = _read_varint(message, place, _TAG_BYTES)
        wire = tag & 7
        if wire == _LENGTH:
            length, start = _read_varint(message, start, _TAG_BYTES)
            place = start + length
        elif wire == _VARINT:
            place = _read_varint(message, start)[1]
        elif wire in (_FIXED32, _FIXED64):
            place = start + (4 if wire == _FIXED32 else 8)
        else:
            raise ValueError(f"unknown wire type {wire}")
        if place > end:
            raise ValueError("the message ends early")
        if not (field := tag >> 3 & _MAX_FIELD):
            raise ValueError("the number of a field is 0")
        yield field, wire, message[start:place]


def _read_varint(message: memoryview, place: int, most: int = _NUMBER_BYTES) -> tuple[int, int]:
    """Returns a number of at most 64 bits, and the place after it."""
    number = message[place]
    if number < 0x80:
        return number, place + 1
    number &= 0x7F
    for shift in range(7, 7 * most, 7):
        place += 1
        byte = message[place]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & _MAX_NUMBER, place + 1
    raise ValueError(f"a number has more than {most} bytes")
