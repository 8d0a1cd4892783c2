"""Where a writer writes: a folder, or a prefix in a store, with files of somebody else in it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from darkroom import storage
from darkroom.dataset.checksums import read_sums
from darkroom.dataset.pointer import find_data

_TOKEN = re.compile(r"(?<=data-)[0-9a-f]{8}|(?<=/\.attempt/)[0-9a-f]{8}")
# On a store, the record of the newest attempt, and what proves the files of an attempt that may
# still write: it goes when a later run finds nothing else in its folder.
_STAYS = re.compile(r"out/(data-TOKEN/)?\.attempt/(current|TOKEN/(journal|attempt))\.json")
# An unfinished file of a name that only its process knew.
_PART = re.compile(r"\.part-\w{8}")


class Place:
    """A folder in which a command writes, and in which others have files, too.

    Args:
        root: Its path or URI.
        inside: The output in it.

    Attributes:
        root: As given.
        output: The path of the output.
    """

    def __init__(self, root: str, inside: str = "out") -> None:
        self.root, self.output = root, f"{root}/{inside}"
        self._mine: dict[str, bytes] = {}

    def read(self) -> dict[str, bytes]:
        """Returns all files, hidden ones too, by name."""
        if not storage.is_remote(self.root):
            paths = (path for path in Path(self.root).rglob("*") if path.is_file())
            return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in paths}
        names = storage.list_everything(self.root)
        return {name: storage.read_bytes(f"{self.root}/{name}") for name in names}

    def restore(self, files: dict[str, bytes]) -> None:
        """Makes these the only files."""
        if storage.is_remote(self.root):
            storage.delete(self.root)
            for name, data in files.items():
                storage.write_bytes(f"{self.root}/{name}", data)
            return
        shutil.rmtree(self.root, ignore_errors=True)
        for name, data in files.items():
            path = Path(self.root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def put(self, name: str, data: bytes = b"mine") -> None:
        """Puts a file of somebody else into the place."""
        storage.make_folder(f"{self.root}/{name}".rpartition("/")[0])
        storage.write_bytes(f"{self.root}/{name}", data)
        self._mine[name] = data

    def take_away(self, name: str) -> None:
        """Lets somebody take a file away."""
        storage.delete_file(f"{self.root}/{name}")
        self._mine.pop(name, None)

    def check_mine(self) -> None:
        """Checks that nobody has changed or deleted the files of somebody else."""
        found = self.read()
        assert {name: found.get(name) for name in self._mine} == self._mine

    def read_ours(self) -> dict[str, bytes]:
        """Returns all other files, with one name for each attempt, but those that may stay."""
        is_remote, found = storage.is_remote(self.root), dict[str, bytes]()
        for path, data in self.read().items():
            name = _TOKEN.sub("TOKEN", path)
            if is_remote and name == "out/dataset.json":
                data = _TOKEN.sub("TOKEN", data.decode()).encode()
            is_left = _STAYS.fullmatch(name) if is_remote else _PART.search(name)
            if path not in self._mine and not is_left:
                assert name not in found
                found[name] = data
        return found

    def read_dataset(self) -> dict[str, bytes]:
        """Returns the files of the dataset that its list of hashes names."""
        data = find_data(self.output)
        names = (*read_sums(data), "SHA256SUMS")
        return {name: storage.read_bytes(f"{data}/{name}") for name in names}
