"""`darkroom.upgrade`: brings a dataset to the newest format, without its source.

Format 2 lists every file, and the hashes of those beside the shards. The records stay as they are,
byte for byte.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import Any

from darkroom import storage
from darkroom.audit.findings import format_findings
from darkroom.audit.verify import verify
from darkroom.dataset.checksums import read_sums, sum_file
from darkroom.dataset.commit import FORMAT_VERSION, Dataset, read_dataset, write_commit
from darkroom.dataset.layout import (
    INDEX_FOLDER,
    REJECTS_FILE,
    REJECTS_LIST_FILE,
    SUMS_FILE,
    Folders,
)
from darkroom.dataset.pointer import find_data
from darkroom.errors import DataError, OutputError
from darkroom.runtime import cards, progress
from darkroom.storage.locks import FolderLock


@dataclass(frozen=True)
class UpgradeResult:
    """What `upgrade` did.

    Attributes:
        directory: The dataset.
        from_version: The version of its format before.
        format_version: The version now.
        fingerprint: The fingerprint now: that of the new commit.
    """

    directory: str
    from_version: int
    format_version: int
    fingerprint: str = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Returns the result as values for JSON."""
        return asdict(self)

    def _repr_html_(self) -> str:
        """Returns the result as a notebook shows it."""
        if self.from_version == self.format_version:
            title = f"The dataset already has format {self.format_version}"
        else:
            title = f"The dataset now has format {self.format_version}; it had {self.from_version}"
        return cards.make_card(title, cards.make_path("Dataset", self.directory), tone=cards.GOOD)


@storage.report_failures
@progress.shown
def upgrade(directory: str | os.PathLike[str]) -> UpgradeResult:
    """Verifies a dataset, and brings it to the newest format.

    The records are not changed, and no image of the source is read. An upgrade that was ended is
    taken up by the next one.

    Args:
        directory: A folder that `darkroom.convert` wrote, or an Examples artifact of darkroom.

    Returns:
        The versions before and after. They are equal when there was nothing to do.

    Raises:
        DataError: It is not a dataset, or it is damaged.
        OutputError: Another process holds it, or it has a file `SHA256SUMS` of somebody else.
        OSError: It cannot be read or written.
    """
    root = find_data(storage.absolute(directory))
    before = read_dataset(root)
    if before.format_version == FORMAT_VERSION:
        return UpgradeResult(root, FORMAT_VERSION, FORMAT_VERSION, before.fingerprint)
    with FolderLock(root):
        _check(root)
        after = read_dataset(root).with_files()
        _write(root, after)
    return UpgradeResult(root, before.format_version, FORMAT_VERSION, after.fingerprint)


def format_upgrade(result: UpgradeResult) -> str:
    """Returns the result as text for a terminal."""
    if result.from_version == result.format_version:
        return f"{result.directory} already has format {result.format_version}."
    return (
        f"{result.directory} now has format {result.format_version}; it had {result.from_version}."
    )


def _check(root: str) -> None:
    result = verify(root)
    if not result.is_sound:
        raise DataError(
            f"{root} is not sound, so it stays as it is:{format_findings(result.findings)}",
            "Restore the files from a copy, or convert the source again.",
        )
    if storage.exists(storage.join(root, SUMS_FILE)):
        try:
            read_sums(root)  # an upgrade that was ended has left it
        except DataError as error:
            raise OutputError(
                f"{root} has a file {SUMS_FILE} that darkroom did not write.",
                "Move it elsewhere: a dataset of format 2 has its own under this name.",
            ) from error


def _write(root: str, dataset: Dataset) -> None:
    index = {name: sum_file(storage.join(root, INDEX_FOLDER, name)) for name in _list_index(root)}
    names = {REJECTS_FILE, REJECTS_LIST_FILE}.intersection(storage.list_folder(root))
    rejects = {name: sum_file(storage.join(root, name)) for name in names}
    # Before the commit: without it, a dataset of format 1 is still sound.
    storage.delete_file(storage.join(root, INDEX_FOLDER, SUMS_FILE))
    write_commit(Folders.of_dataset(root), dataset, index, rejects)


def _list_index(root: str) -> list[str]:
    names = storage.list_folder(storage.join(root, INDEX_FOLDER))
    return [name for name in names if name != SUMS_FILE]
