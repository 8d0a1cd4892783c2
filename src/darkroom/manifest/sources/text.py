"""Reads text files line by line in bounded memory; errors name line and byte."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise

from darkroom import storage
from darkroom.errors import DataError
from darkroom.manifest.sources.base import SourceState
from darkroom.options.source import DEFAULT_SOURCE_ENCODING

MAX_LINE_CHARACTERS = 1 << 20

_CHUNK_BYTES = 1 << 20
_SHOWN_BYTES = 40
# How a file begins whose characters have two or four bytes; the first that fits counts.
_WIDE = {
    "utf-32": rb"\xff\xfe\0\0|\0\0\xfe\xff",
    "utf-16": rb"\xff\xfe|\xfe\xff",
    "utf-32-le": rb"[^\0]\0\0\0",
    "utf-32-be": rb"\0\0\0[^\0]",
    "utf-16-le": rb"[^\0]\0",
    "utf-16-be": rb"\0[^\0]",
}
# A word with letters beyond ASCII. A character of several bytes may end with one of ASCII, but with
# none of these separators.
_WORD = re.compile(rb"[^\s,;\"':]*[\x80-\xff][^\s,;\"':]*")
_MAX_WORDS = 10_000
_SHOWN_WORDS = 3
# A letter of a script other than Latin inside a word of ASCII.
_ALIEN = re.compile("[a-z][^\\0-\u024f][a-z]")
_WESTERN = "windows-1252"
# Encodings that are in use. Those that give the letters of an earlier one are not shown.
_CANDIDATES = (
    *(_WESTERN, "windows-1250", "windows-1251", "windows-1253", "mac_roman", "koi8-r"),
    *("shift_jis", "gb18030", "big5", "euc_kr"),
    *("windows-1254", "windows-1257", "cp850", "cp852", "cp775", "mac_latin2"),
)


class TextFile:
    """A file of lines.

    Args:
        path: Where it is.
        encoding: How it is encoded; a byte order mark is left out.
        newline: As for `open`: the empty text splits at any line break and keeps it.

    Raises:
        DataError: It is UTF-16 or UTF-32, but `encoding` is not.
        OSError: It cannot be read.
    """

    def __init__(
        self, path: str, encoding: str = DEFAULT_SOURCE_ENCODING, newline: str = ""
    ) -> None:
        self._path = path
        self._encoding = encoding
        self._newline = newline
        self._state = SourceState(path)
        if encoding == DEFAULT_SOURCE_ENCODING:
            self._check_wide()

    def lines(self) -> Iterator[str]:
        """Yields every line with its line break.

        Raises:
            DataError: A line is too long or not in the encoding, or the file changed since this
                object was made.
        """
        codec = "utf-8-sig" if self._encoding == DEFAULT_SOURCE_ENCODING else self._encoding
        with storage.open_read(self._path) as binary:
            text = io.TextIOWrapper(binary, encoding=codec, newline=self._newline)
            try:
                # One more than allowed: a longer line is never read into memory as a whole.
                read = partial(text.readline, MAX_LINE_CHARACTERS + 1)
                for number, line in enumerate(iter(read, ""), start=1):
                    if len(line) > MAX_LINE_CHARACTERS:
                        raise DataError(
                            f"{self._path}, line {number}: longer than {MAX_LINE_CHARACTERS:,} "
                            "characters.",
                            "Check the line breaks, and keep longer texts in separate files.",
                        )
                    # utf-16-le and others that name the order of bytes keep the mark of it.
                    yield line.removeprefix("\ufeff") if number == 1 else line
            except UnicodeDecodeError as error:
                raise self._not_decodable(error) from error
        self._state.check()

    def _check_wide(self) -> None:
        """Refuses a file that begins with the mark of UTF-16 or UTF-32.

        Raises:
            DataError: It does; the hint names the encoding.
        """
        with storage.open_read(self._path) as file:
            start = file.read(4)
        for name, beginning in _WIDE.items():
            if re.match(beginning, start):
                kind, order = name[:6].upper(), name[7:].upper()
                raise DataError(
                    f"{self._path} is {kind}.",
                    f"Use --source-encoding {name}, or save it as UTF-8: "
                    f"iconv -f {kind}{order} -t UTF-8.",
                )

    def _not_decodable(self, error: UnicodeDecodeError) -> DataError:
        """Finds the first byte that is not in the encoding; the reader's own error lacks it."""
        decoder = codecs.getincrementaldecoder(self._encoding)()
        line, offset = 1, 0
        with storage.open_read(self._path) as file:
            while chunk := file.read(_CHUNK_BYTES):
                try:
                    decoder.decode(chunk)
                except UnicodeDecodeError as found:
                    # The decoder has kept the first bytes of a character from the previous chunk.
                    kept = len(found.object) - len(chunk)
                    line += found.object.count(b"\n", kept, found.start)
                    where = f"line {line}, byte {offset - kept + found.start:,}: "
                    return self._describe(where, found.object, found.start)
                line += chunk.count(b"\n")
                offset += len(chunk)
        return self._describe(f"its end, byte {offset:,}: ", error.object, error.start)

    def _describe(self, where: str, data: bytes, place: int) -> DataError:
        start = max(data.rfind(b"\n", 0, place) + 1, place - _SHOWN_BYTES)
        shown = data[start : place + _SHOWN_BYTES].splitlines()[0]
        hint = "Give the encoding in which the file was saved."
        if self._encoding == DEFAULT_SOURCE_ENCODING:
            hint = suggest_encoding(self._list_words())
        return DataError(f"{self._path} is not {self._encoding.upper()}, {where}{shown!r}.", hint)

    def _list_words(self) -> list[bytes]:
        """Returns the words of all lines that are not ASCII, each once."""
        words: dict[bytes, None] = {}
        with storage.open_read(self._path) as file:
            while (lines := file.readlines(_CHUNK_BYTES)) and len(words) < _MAX_WORDS:
                words.update(dict.fromkeys(_WORD.findall(b"".join(lines))))
        return [*words]


def suggest_encoding(words: Sequence[bytes]) -> str:
    """Returns what to do about words that are not UTF-8, by all of them.

    An encoding is advised where no other one gives words, as they are written. Else the first words
    are shown as the encodings have them in which all can be read.
    """
    read: dict[tuple[str, ...], str] = {}
    for name in _CANDIDATES:
        with suppress(UnicodeDecodeError):
            texts = tuple(word.decode(name) for word in words)
            if all(map(_is_plausible, texts)):
                read.setdefault(texts, name)
    if [*read.values()] == [_WESTERN]:
        return f"It looks like {_WESTERN}: give --source-encoding {_WESTERN}, or save it as UTF-8."
    shown = "; ".join(f"{', '.join(text[:_SHOWN_WORDS])} in {name}" for text, name in read.items())
    begun = f"The first words read {shown}. " if shown else ""
    return (
        f"{begun}Save it as UTF-8, or name its encoding, which its bytes do not tell: "
        "--source-encoding windows-1252, cp850, shift_jis, ..."
    )


def _is_plausible(word: str) -> bool:
    """Tells whether somebody may have written a word: not `Kдse`, `GRéS` or `T³r`."""
    if not all(each.isascii() or each.isalpha() or each.isdecimal() for each in word):
        return False
    pairs = (pair for pair in pairwise(word) if not "".join(pair).isascii())
    is_mixed = any(first.islower() and second.isupper() for first, second in pairs)
    return not (is_mixed or _ALIEN.search(word))
