"""The readers that sidecars are written for."""

from __future__ import annotations

from collections.abc import Sequence

from darkroom.errors import UsageError
from darkroom.options.checks import check_known

# These read the shards themselves, and none of them reads a compressed one.
SHARD_READERS = ("tfds", "dali", "object_detection")
READERS = (*SHARD_READERS, "croissant", "huggingface")


def check_readers(readers: Sequence[str] | str, *, compressed: bool = False) -> tuple[str, ...]:
    """Returns the readers that were named, each once, in the order of `READERS`.

    Args:
        readers: Their names; in a text, commas separate them.
        compressed: Whether the shards are compressed.

    Raises:
        UsageError: One is unknown, or cannot read the shards.
    """
    given = readers.split(",") if isinstance(readers, str) else readers
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise UsageError("The readers are not a list of texts.", 'Write it as in ["tfds", "dali"].')
    check_known(given, READERS, "Sidecars are not written for")
    if compressed and (wrong := sorted({*given}.intersection(SHARD_READERS))):
        raise UsageError(
            f"The shards are compressed with gzip, which {' and '.join(wrong)} cannot read.",
            "Convert without compression, or leave them out.",
        )
    return tuple(each for each in READERS if each in given)
