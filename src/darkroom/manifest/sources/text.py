"""Reads text files line by line in bounded memory; errors name line and byte."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from itertools import chain

from darkroom import storage
from darkroom.errors import DataError
from darkroom.manifest.sources.base import SourceState
from darkroom.options.source import DEFAULT_SOURCE_ENCODING

MAX_LINE_CHARACTERS = 1 << 20

_CHUNK_BYTES = 1 << 20
# That are read at once, with the rest of the last line.
_BLOCK_CHARACTERS = 1 << 13
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
_WESTERN = "windows-1252"


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
        """Returns every line with its line break; see `blocks`."""
        return chain.from_iterable(self.blocks())

    def blocks(self) -> Iterator[list[str]]:
        """Yields every line with its line break, several at once.

        Raises:
            DataError: A line is too long or not in the encoding, or the file changed since this
                object was made.
        """
        codec = "utf-8-sig" if self._encoding == DEFAULT_SOURCE_ENCODING else self._encoding
        with storage.open_read(self._path) as binary:
            text = io.TextIOWrapper(binary, encoding=codec, newline=self._newline)
            try:
                # utf-16-le and others that name the order of bytes keep the mark of it.
                start, number = text.read(1).removeprefix("\ufeff"), 0
                # One more than allowed: a longer line is never read into memory as a whole.
                most = MAX_LINE_CHARACTERS + 1
                while block := start + text.read(_BLOCK_CHARACTERS) + text.readline(most):
                    lines = io.StringIO(block, self._newline).readlines()
                    start, number = "", number + len(lines)
                    if len(lines[-1]) > MAX_LINE_CHARACTERS:
                        yield lines[:-1]
                        raise DataError(
                            f"{self._path}, line {number}: longer than {MAX_LINE_CHARACTERS:,} "
                            "characters.",
                            "Check the line breaks, and keep longer texts in separate files.",
                        )
                    yield lines
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
            while data := file.readline(_CHUNK_BYTES):
                try:
                    decoder.decode(data)
                except UnicodeDecodeError as found:
                    # The decoder has kept the first bytes of a character from the data before.
                    place = offset + found.start - (len(found.object) - len(data))
                    return self._describe(f"line {line}, byte {place:,}: ", found)
                line += data.endswith(b"\n")
                offset += len(data)
        return self._describe(f"its end, byte {offset:,}: ", error)

    def _describe(self, where: str, found: UnicodeDecodeError) -> DataError:
        start = max(found.start - _SHOWN_BYTES, 0)
        shown = found.object[start : found.start + _SHOWN_BYTES].strip()
        hint = "Give the encoding in which the file was saved."
        if self._encoding == DEFAULT_SOURCE_ENCODING:
            # Its bytes do not tell an encoding; who knows the words sees whether one is right.
            hint = (
                f"Save it as UTF-8, or name its encoding. As {_WESTERN}, which Excel writes in the "
                f"West, it reads {shown.decode(_WESTERN, errors='replace')!r}: if that is right, "
                f"give --source-encoding {_WESTERN}. Others are cp850, gb18030, shift_jis, ..."
            )
        return DataError(f"{self._path} is not {self._encoding.upper()}, {where}{shown!r}.", hint)
