"""Reads text files line by line in bounded memory; errors name line and byte."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial

from darkroom import storage
from darkroom.errors import DataError
from darkroom.manifest.sources.base import SourceState
from darkroom.options.source import DEFAULT_SOURCE_ENCODING

MAX_LINE_CHARACTERS = 1 << 20

_CHUNK_BYTES = 1 << 20
_SHOWN_BYTES = 40
# Byte order marks with which a file in UTF-16 may begin.
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# A word with letters beyond ASCII. A character of several bytes may end with one of ASCII, but with
# none of these separators.
_WORD = re.compile(rb"[^\s,;\"':]*[\x80-\xff][^\s,;\"':]*")
_MAX_WORDS = 10_000
_SHOWN_WORDS = 3
# Single letters between those of ASCII are one of these in all code pages of Western, Central and
# Northern Europe and of Turkish, so that what is read is right whichever it is.
_SURE = re.compile("(?<![\x80-\xff])[ÄÉÓÖÜßäéóöü](?![\x80-\xff])".encode("latin-1"))
_CANDIDATES = (
    *("windows-1252", "windows-1250", "windows-1251", "windows-1253", "mac_roman", "koi8-r"),
    *("shift_jis", "gb18030", "big5", "euc_kr"),
)


class TextFile:
    """A file of lines.

    Args:
        path: Where it is.
        encoding: How it is encoded; a byte order mark is left out.
        newline: As for `open`: the empty text splits at any line break and keeps it.

    Raises:
        DataError: It is UTF-16, but `encoding` is not.
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
            self._check_utf16()

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

    def _check_utf16(self) -> None:
        with storage.open_read(self._path) as file:
            start = file.read(2)
        if start in _UTF16_MARKS:
            name = "utf-16"
        elif b"\0" in start:
            name = "utf-16-be" if start.startswith(b"\0") else "utf-16-le"
        else:
            return
        raise DataError(
            f"{self._path} is UTF-16.",
            f"Use --source-encoding {name}, or save it as UTF-8: iconv -f UTF-16 -t UTF-8.",
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

    An encoding is advised where no other one is likely. Else the first words are shown as the
    encodings have them in which all can be read.
    """
    if guess := guess_encoding(words):
        return f"It looks like {guess}: give --source-encoding {guess}, or save it as UTF-8."
    shown = b", ".join(words[:_SHOWN_WORDS])
    read: dict[str, str] = {}
    for name in _CANDIDATES:
        with suppress(UnicodeDecodeError):
            text = shown.decode(name)
            if all(word.decode(name).replace("-", "").isalnum() for word in words):
                read.setdefault(text, name)
    texts = "; ".join(f"{text} in {name}" for text, name in read.items())
    begun = f"The first words read {texts}. " if texts else ""
    return (
        f"{begun}Save it as UTF-8, or name its encoding, which its bytes do not tell: "
        "--source-encoding shift_jis, gb18030, koi8-r, ..."
    )


def guess_encoding(words: Iterable[bytes]) -> str | None:
    """Returns the encoding of words that are not UTF-8; None when they do not tell."""
    if any(not _SURE.search(word) or not _SURE.sub(b"", word).isascii() for word in words):
        return None
    return "windows-1252"
