"""SHA-256 of the files of a folder, in a file that `sha256sum --check` reads.

The index names URIs, so its hashes differ from folder to folder and cannot be in `dataset.json`.
"""

from __future__ import annotations

from collections.abc import Sequence

from darkroom import storage
from darkroom.errors import DataError

SUMS_FILE = "SHA256SUMS"
_HASH_LENGTH = 64


def write_sums(folder: str, names: Sequence[str]) -> None:
    """Writes the hashes of files directly in a folder."""
    lines = [f"{storage.hash_file(storage.join(folder, name))}  {name}\n" for name in sorted(names)]
    path = storage.join(folder, SUMS_FILE)
    storage.write_bytes(path, "".join(lines).encode(), known_part=True)


def count_sums_bytes(names: Sequence[str]) -> int:
    """Returns the length of the file that `write_sums` writes for files of these names."""
    return sum(len(f"{'':{_HASH_LENGTH}}  {name}\n".encode()) for name in names)


def read_sums(folder: str) -> dict[str, str]:
    """Reads the hashes of a folder's files by name.

    Raises:
        DataError: The file is not as `write_sums` writes it.
        OSError: It is missing or cannot be read.
    """
    path = storage.join(folder, SUMS_FILE)
    text = storage.read_bytes(path).decode(errors="replace")
    sums = {line[_HASH_LENGTH + 2 :]: line[:_HASH_LENGTH] for line in text.split("\n") if line}
    if text != "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)):
        raise DataError(f"{path} is damaged.", "Convert the source again.")
    return sums
