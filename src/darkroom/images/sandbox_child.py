"""The other process, in which decoders may crash, hang or ask for too much memory.

It reads an image from its standard input, a socket, and answers with the result of `prepare_image`;
then it reads the next one. Its parent is `sandbox`. Only fixed numbers, JSON and the bytes of
images go over the socket; nothing in them is executed.

    request   memory that may be taken (8 bytes), length (8 bytes), image
    answer    length of the text (4 bytes), length of the image (8 bytes), JSON text, image

The text of an answer is `{"image": ...}`, `{"error": [reason, detail]}`, or `{"need": ...}` when
an image takes more memory than granted. The bytes of an image that stays as it is are not sent.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import socket
import struct
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from PIL import Image

from darkroom.errors import RejectError
from darkroom.images import pillow
from darkroom.images.memory import MAX_PIXELS, TRIM_BYTES, MemoryNeededError, Need, trim_memory
from darkroom.images.prepare import PreparedImage, prepare_image
from darkroom.options.image import ImageOptions
from darkroom.targets.geometry import Matrix

REQUEST = struct.Struct("<QQ")
ANSWER = struct.Struct("<IQ")

# The text of an answer that rejects the image begins so.
_ERROR = b'{"error": '
_TOO_MUCH = "it takes more memory than its size asks for"
_PLAIN_FIELDS = tuple(name for name in PreparedImage._fields if name != "encoded")
# Memory for Python and the decoders, besides the pixels.
_SLACK_BYTES = 32 << 20
# What may stay of earlier images, besides what the C library keeps for the next one.
_MOST_LEFT_BYTES = TRIM_BYTES + _SLACK_BYTES
# No core file, no writing, few open files.
_LIMITS = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": 0, "RLIMIT_NOFILE": 32}
_PR_SET_NO_NEW_PRIVS = 38


def read_exactly(connection: socket.socket, num_bytes: int) -> bytearray:
    """Reads exactly `num_bytes` bytes.

    Raises:
        EOFError: The other side is gone.
    """
    data = bytearray(num_bytes)
    view, place = memoryview(data), 0
    while place < num_bytes:
        received = connection.recv_into(view[place:])
        if received == 0:
            raise EOFError
        place += received
    return data


def format_answer(image: PreparedImage, data: bytes) -> tuple[bytes, bytes]:
    """Returns the text and the bytes of the answer for an image prepared from `data`."""
    values = {name: getattr(image, name) for name in _PLAIN_FIELDS}
    is_same = image.encoded is data
    text = json.dumps({"image": values, "is_same": is_same})
    return text.encode(), b"" if is_same else image.encoded


def parse_answer(answer: dict[str, Any], encoded: bytes, data: bytes) -> PreparedImage:
    """Returns the image of an answer to the request for `data`.

    Raises:
        KeyError, TypeError: The answer has no image.
    """
    values = answer["image"]
    values["changes"], values["matrix"] = tuple(values["changes"]), Matrix(*values["matrix"])
    return PreparedImage(encoded=data if answer["is_same"] else encoded, **values)


def serve(options: Mapping[str, Any], cpu_seconds: int) -> None:
    """Prepares images until the other side is gone.

    Args:
        options: How images are checked and stored: the fields of `ImageOptions`.
        cpu_seconds: Processor time for one image: with more, the system ends this process.
    """
    image_options = ImageOptions(**options)
    with socket.socket(fileno=0) as connection:
        base_bytes, left_bytes = _confine(), 0
        connection.sendall(ANSWER.pack(0, 0))
        with suppress(EOFError, OSError):
            # A process in which much is left ends: the next image gets a new one.
            while left_bytes <= _MOST_LEFT_BYTES:
                granted, length = REQUEST.unpack(read_exactly(connection, REQUEST.size))
                _limit("RLIMIT_CPU", int(time.process_time()) + 1 + cpu_seconds)
                limit_bytes = base_bytes + 2 * length + granted + _SLACK_BYTES
                if base_bytes:
                    _limit("RLIMIT_AS", limit_bytes)
                data = bytes(read_exactly(connection, length))
                text, encoded = _answer(data, image_options, granted)
                if left_bytes > 0 and text.startswith(_ERROR):
                    _limit("RLIMIT_AS", limit_bytes + left_bytes)
                    text = _check_error(text, data, image_options, granted)
                connection.sendall(ANSWER.pack(len(text), len(encoded)) + text)
                connection.sendall(encoded)
                if granted > TRIM_BYTES:
                    trim_memory()
                left_bytes = _count_bytes() - base_bytes


def _check_error(text: bytes, data: bytes, options: ImageOptions, granted: int) -> bytes:
    """Returns the text of the answer for an image that failed in a process that worked before.

    The limit of memory counted from the process as new: what accepts an image then accepts it
    alone. Now it counts from what earlier images have left: what rejects an image now rejects it
    alone. When both do not agree, the image is sound and had too little memory, or takes more than
    it may. A new process tells (`sandbox`).
    """
    again, _ = _answer(data, options, granted)
    return text if again.startswith(_ERROR) else _format_error("decoder_memory", _TOO_MUCH)


def _format_error(reason: str, detail: str) -> bytes:
    return _ERROR + json.dumps([reason, detail]).encode() + b"}"


def _answer(data: bytes, options: ImageOptions, granted: int) -> tuple[bytes, bytes]:
    """Returns the text and the bytes of the answer for an image, also when preparing it fails.

    `granted` is the memory, in bytes, that it may take.
    """

    @contextmanager
    def check_grant(need: Need) -> Iterator[None]:
        if need.num_bytes > granted:
            raise MemoryNeededError(need)
        yield

    try:
        return format_answer(prepare_image(data, options, check_grant), data)
    except MemoryNeededError as error:
        return json.dumps({"need": error.need}).encode(), b""
    except RejectError as error:
        return _format_error(error.reason, error.detail), b""
    except MemoryError:
        return _format_error("decoder_memory", _TOO_MUCH), b""
    except Exception as error:  # noqa: BLE001  one bad image must not end the process
        text = f"its decoder raised {type(error).__name__}: {error}"
        return _format_error("decoder_crash", text), b""


def _confine() -> int:
    """Limits this process to the needs of decoding; returns its bytes of address space, or 0."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    _load_readers()
    for name, value in _LIMITS.items():
        _limit(name, value)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    return _count_bytes()


def _count_bytes() -> int:
    """Returns the address space of this process in bytes; 0 where the system does not tell it."""
    with suppress(OSError), open("/proc/self/statm", "rb", buffering=0) as file:
        return int(file.read().split()[0]) * resource.getpagesize()
    return 0


def _load_readers() -> None:
    """Loads all readers, which no image then has to, and keeps them from starting threads."""
    Image.preinit()
    pillow.load_readers()
    with suppress(ImportError):
        from PIL import AvifImagePlugin

        AvifImagePlugin.DEFAULT_MAX_THREADS = 1
    with suppress(ImportError):
        from pillow_heif import options

        options.DECODE_THREADS = 1


def _limit(name: str, value: int) -> None:
    """Sets a resource limit where the system supports it."""
    with suppress(AttributeError, OSError, ValueError):
        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (value if hard < 0 else min(value, hard), hard))
