"""`darkroom.describe`: adds files for readers of other frameworks to a dataset that exists."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from darkroom import storage
from darkroom.conversion.output.additions import add_sidecars
from darkroom.dataset.checksums import read_sums, sum_bytes, write_sidecars
from darkroom.dataset.commit import Dataset, read_dataset
from darkroom.dataset.layout import Folders
from darkroom.dataset.named import find_named
from darkroom.dataset.opening import check_index_files, check_outside, read_unchanged
from darkroom.dataset.pointer import find_data
from darkroom.errors import UsageError
from darkroom.options.sidecars import READERS, check_readers
from darkroom.runtime import progress
from darkroom.runtime.result import Fact, Outcome, Result
from darkroom.runtime.text import format_count
from darkroom.sidecars.readers import build_sidecars, list_sidecars
from darkroom.storage import ledger


@dataclass(frozen=True)
class Description(Result):
    """The files that `describe` wrote.

    Attributes:
        directory: Their folder.
        readers: Whom they are for.
        files: Their paths below it.
        bytes: Their lengths in all.
    """

    directory: str
    readers: tuple[str, ...]
    files: tuple[str, ...]
    bytes: int

    def describe(self) -> Outcome:
        """Returns the files, and how to open them."""
        use = {
            "tfds": f'tfds.builder_from_directory("{self.directory}")',
            "dali": f"index_path: {self.directory}/dali-index/SPLIT/*.idx",
            "object_detection": f"label_map_path: {self.directory}/label_map.pbtxt",
            "croissant": f"{self.directory}/croissant.json",
            "huggingface": f'load_dataset("{self.directory}")',
        }
        said = f"Wrote {format_count(len(self.files), 'file')}, {self.bytes:,} bytes in all."
        return Outcome("Sidecars", [said, *(Fact(name, use[name]) for name in self.readers)])


@storage.report_failures
@progress.shown
def describe(
    directory: str | os.PathLike[str],
    readers: Sequence[str] | str,
    output: str | os.PathLike[str] | None = None,
) -> Description:
    """Writes the small files with which other readers find the records of a dataset.

    No image is read or copied. `tfds`, `dali` and `object_detection` then read the shards
    themselves, the last one only those with boxes; `croissant` and `huggingface` describe the
    index, which has a row for each record.

    Args:
        directory: A folder that `darkroom.convert` wrote.
        readers: `tfds`, `dali`, `object_detection`, `croissant` and `huggingface`, or some of them;
            in a text with commas.
        output: Folder to write to instead of the dataset; made if it does not exist.

    Returns:
        The files.

    Raises:
        UsageError: A reader is unknown or cannot read the shards, or the index is elsewhere.
        DataError: There is no dataset, it is damaged, or it was replaced meanwhile.
        OutputError: Files of these names are not darkroom's, or another run writes there.
        OSError: A file cannot be read or written.
    """
    names, place = check_readers(readers), find_named(directory)
    if not names:
        raise UsageError("No reader was named.", f"Known: {', '.join(READERS)}.")
    target = None if output is None else storage.absolute(output)
    if target is not None:
        check_outside(place, target, "The description")
        ledger.check_folder(target)
        bound = {"croissant", "tfds"} if storage.is_remote(place) else {"croissant"}
        if wrong := sorted(bound.intersection(names)):
            raise UsageError(
                f"From another folder, {' and '.join(wrong)} cannot find the files of {place}.",
                "Leave out output (--output), or these readers.",
            )

    def read() -> tuple[str, Dataset, dict[str, bytes]]:
        data = find_data(place)
        dataset = read_dataset(data)
        check_index_files(data, dataset)
        root = "" if target is None else f"{data}/"
        contents = build_sidecars(names, dataset, Folders.of_dataset(data).index, root)
        return data, dataset, contents

    with progress.step("Describing"):
        data, dataset, contents = read_unchanged([place], read)
        if target is None:
            hint = "Write the files into another folder with output (--output)."
            add_sidecars(place, data, dataset, contents, hint)
        else:
            sums = {name: sum_bytes(each).sha256 for name, each in contents.items()}
            ledger.claim(target, sums)
            write_sidecars(target, contents, storage.find_part)
    return Description(target or data, names, tuple(contents), sum(map(len, contents.values())))


def add_missing(output: str, readers: Sequence[str]) -> None:
    """Adds sidecars to a dataset whose list does not name them."""
    data = find_data(output)
    shards = [shard.file for shard in read_dataset(data).shards]
    listed = read_sums(data)
    missing = [name for name in readers if not {*list_sidecars([name], shards)} & listed.keys()]
    if missing:
        describe(output, missing)
