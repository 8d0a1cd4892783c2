"""Reads a large file of JSON in little memory.

Its parts stay text in a memory map, whose pages the system can drop, until some are parsed at a
time. The map is of a copy: one of a file that somebody cuts would end the process. What is wrong
with one element of an array does not hide the others.
"""

from __future__ import annotations

import mmap
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from darkroom import storage
from darkroom.errors import DataError
from darkroom.manifest.sources.base import SourceState
from darkroom.manifest.sources.jsonl import decode_json

_BLOCK_ELEMENTS = 1024
_COPIED_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"
# Texts with what is between them, or what Python writes for numbers that JSON does not have.
_NOT_JSON = re.compile(rb'(?:"[^"\\]*(?:\\.[^"\\]*)*"[^"NI-]*){1,1000}|(NaN|-?Infinity)', re.DOTALL)
_KEY = re.compile(rb'[\s{,]*"(?:[^"\\]|\\.)*"\s*:\s*')
_END = re.compile(rb"\s*\}\s*|\s*\{\s*\}\s*")
_Element = TypeVar("_Element")
_Parts = dict[str, msgspec.Raw] | list[msgspec.Raw]


@dataclass(frozen=True)
class Elements(Generic[_Element]):
    """Successive elements of an array.

    Attributes:
        good: Those with the expected form.
        bad: All others, each as a dict, as far as it is one, with its problem.
    """

    good: list[_Element]
    bad: list[tuple[dict[str, Any], str]]


class JsonFile:
    """A file of JSON, as it was when this object was made.

    Args:
        path: Where it is.

    Attributes:
        parts: The texts of the values of an object by their keys, or those of an array.

    Raises:
        DataError: It is not an object or an array of JSON in UTF-8, it is nested too deeply, one
            of its keys occurs twice, or it was changed while it was copied.
        OSError: It cannot be read.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        state = SourceState(path)
        with storage.open_read(path) as file, tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(file, copy, _COPIED_BYTES)
            state.check()
            if not copy.tell():
                raise DataError(f"{path} is empty.", "Copy the file again.")
            copy.flush()
            # A page is copied when something is written into it.
            self._map = mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_COPY)
        self._check_wide()
        self._text = memoryview(self._map)[len(_BOM) if self._map[:3] == _BOM else 0 :]
        self.parts = self._split()
        self._check_keys()

    def _check_wide(self) -> None:
        start = self._map[: 1 << 10]
        if b"\0" in start or start[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise DataError(
                f"{self._path} is UTF-16 or UTF-32.",
                f"Save it as UTF-8, as JSON has to be: iconv -f UTF-16 -t UTF-8 {self._path}",
            )

    def _split(self) -> _Parts:
        try:
            try:
                return _split(self._text)
            except msgspec.DecodeError:
                self._replace_numbers()
                return _split(self._text)
        except msgspec.ValidationError as error:
            problem = f"is not an object of JSON, or an array: {error}"
        # msgspec 0.22 and 0.23 raise different errors where a key is not UTF-8.
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problem = f"is not complete, or not JSON: {error}"
        except RecursionError:
            problem = "is nested too deeply"
        raise DataError(f"{self._path} {problem}.", "Write it again, or copy it again.")

    def _replace_numbers(self) -> None:
        """Makes text of numbers that JSON does not have, which is then no number."""
        found = [match.span(1) for match in _NOT_JSON.finditer(self._text) if match[1]]
        for first, stop in found:
            self._text[first:stop] = b'"?"'.ljust(stop - first)

    def _check_keys(self) -> None:
        """Checks that the values fill the object: of a key there twice, one value is missing."""
        if isinstance(self.parts, list):
            return
        place = 0
        for value in self.parts.values():
            if key := _KEY.match(self._text, place):
                place = key.end() + len(value)
        if not _END.fullmatch(self._text, place):
            raise DataError(
                f"{self._path} has one of its keys twice: {', '.join(self.parts):.200}.",
                "Join what the keys have, or delete one of them.",
            )

    def find_text(self, key: str, name: str) -> str | None:
        """Returns a text in an object that the file's object has; None where there is none."""
        parts = self.parts if isinstance(self.parts, dict) else {}
        with suppress(ValueError, RecursionError):
            found = msgspec.json.decode(parts.get(key, b"{}"))
            text = found.get(name) if isinstance(found, dict) else None
            return text if isinstance(text, str) else None
        return None

    def read_values(self) -> Iterator[Any]:
        """Yields the values of an array.

        Raises:
            DataError: It is an object, or a value cannot be read.
        """
        if isinstance(self.parts, dict):
            raise DataError(
                f"{self._path} is not an array of JSON, as Label Studio exports tasks.",
                "Export them as JSON.",
            )
        for number, part in enumerate(self.parts, start=1):
            try:
                yield decode_json(bytes(part).decode())
            except (ValueError, RecursionError) as error:  # noqa: PERF203  which one it is
                raise DataError(
                    f"{self._path}, value {number:,}: it cannot be read: {error!s:.200}.",
                    "Export it again in UTF-8.",
                ) from error

    def read_array(self, key: str, kind: type[_Element]) -> Iterator[Elements[_Element]]:
        """Yields the elements of an array of an object, in their order within both kinds.

        Args:
            key: Its key; an absent array has no elements.
            kind: The form of an element, a struct of msgspec.

        Raises:
            DataError: The value is not an array.
        """
        array = self.parts.get(key, b"[]") if isinstance(self.parts, dict) else b"[]"
        try:
            parts = msgspec.json.decode(array, type=list[msgspec.Raw])
        except msgspec.ValidationError as error:
            raise DataError(
                f"{self._path}: {key} is {bytes(array)[:40]!r}, expected an array.",
                "Name a file of annotations.",
            ) from error
        parse = msgspec.json.Decoder(kind).decode
        # Taken from the end, so that the memory of each is free for what is made of it.
        parts.reverse()
        while parts:
            yield _parse(parts[: -_BLOCK_ELEMENTS - 1 : -1], parse)
            del parts[-_BLOCK_ELEMENTS:]


def _split(text: memoryview) -> _Parts:
    parts: _Parts = msgspec.json.decode(text, type=_Parts)
    return parts


def _parse(
    parts: Iterable[msgspec.Raw], parse: Callable[[msgspec.Raw], _Element]
) -> Elements[_Element]:
    found: Elements[_Element] = Elements([], [])
    add = found.good.append
    for part in parts:
        try:
            add(parse(part))
        except ValueError as error:  # noqa: PERF203  each element by itself
            value: Any = None
            with suppress(ValueError, RecursionError):
                value = msgspec.json.decode(part)
            found.bad.append((value if isinstance(value, dict) else {}, f"{error}"))
    return found
