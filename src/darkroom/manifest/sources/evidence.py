"""What is looked at of a file to know its form: the beginning and the end of its text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from darkroom import storage

_SAMPLE_BYTES = 1 << 16
# Lists that Hugging Face knows by their names.
METADATA_FILES = ("metadata.jsonl", "metadata.csv", "metadata.parquet")


@dataclass(frozen=True)
class Evidence:
    """What is known of a source.

    Attributes:
        text: The beginning and the end of its text.
    """

    text: str

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of JSON in the text, whatever they are in."""
        return frozenset(re.findall(r'"([\w-]+)"\s*:', self.text))

    @cached_property
    def lines(self) -> list[str]:
        """The first lines of the text that are not blank."""
        return list(islice(filter(None, map(str.strip, self.text.splitlines())), 20))

    @cached_property
    def first_value(self) -> Any:
        """The value of JSON in the first line; None if that is not JSON."""
        with suppress(ValueError, RecursionError):
            return json.loads(self.lines[0]) if self.lines else None
        return None


def has_keys(*keys: str) -> Callable[[Evidence], bool]:
    """Returns a function that tells whether JSON has keys, in any of its objects."""
    return lambda found: found.keys.issuperset(keys)


def is_never(found: Evidence) -> bool:
    """Tells that no text is of a form, because its files are known by their columns."""
    return False


def read_evidence(path: str) -> Evidence:
    """Returns the beginning and the end of a text file.

    Raises:
        OSError: It cannot be read.
    """
    size = storage.stat_file(path).size_bytes
    with storage.open_read(path) as file:
        data = file.read(_SAMPLE_BYTES)
        if size > 2 * _SAMPLE_BYTES:
            file.seek(size - _SAMPLE_BYTES)
            data += b"\n" + file.read(_SAMPLE_BYTES)
    return Evidence(data.decode("utf-8-sig", errors="replace"))
