"""Makes the dataset of an attempt that of an output on a store, in a single write.

A reader finds the old dataset or the new one, never a mix. Of two attempts that end at the same
time, the store lets one write.
"""

from __future__ import annotations

from dataclasses import dataclass

from darkroom import storage
from darkroom.conversion.output import ownership
from darkroom.conversion.output.attempts import RECORD_FILE
from darkroom.dataset import journal
from darkroom.dataset.layout import DATA_FOLDER, DATASET_FILE, Folders, is_reserved
from darkroom.dataset.pointer import format_pointer
from darkroom.errors import ChangedError, OutputError

_LAST = (journal.JOURNAL_FILE, RECORD_FILE)


@dataclass(frozen=True)
class Publication:
    """The state of an output on a store when an attempt began, which it will replace.

    Attributes:
        output: The output.
        version: The version of its `dataset.json`; empty when there was none.
        earlier: The names of the folders of datasets and attempts in it.
    """

    output: str
    version: str
    earlier: tuple[str, ...]

    @classmethod
    def begin(cls, output: str) -> Publication:
        """Looks at an output, before anything is written."""
        names = storage.list_folder(output)
        return cls(output, read_version(output), tuple(filter(DATA_FOLDER.fullmatch, names)))

    def publish(self, data: str, fingerprint: str) -> None:
        """Makes a complete dataset that of the output, then deletes the one it replaces.

        Args:
            data: The folder of the dataset, in the output.
            fingerprint: Its fingerprint.

        Raises:
            OutputError: Another attempt has done so since this one began.
        """
        # Before the commit that proves them is replaced.
        found = ownership.survey(Folders.of_dataset(self.output))
        path = storage.join(self.output, DATASET_FILE)
        text = format_pointer(data.rpartition("/")[2], fingerprint)
        try:
            storage.write_if_unchanged(path, text, self.version)
        except ChangedError as error:
            # The answer to an earlier try may have been lost.
            if path not in storage.match_pattern(path) or storage.read_bytes(path) != text:
                raise OutputError(
                    f"Another run has written a dataset into {self.output} since this one began.",
                    "That dataset stays. To replace it, run this again with overwrite "
                    "(--overwrite).",
                ) from error
        self._delete_replaced(found, data)

    def _delete_replaced(self, found: ownership.Survey, data: str) -> None:
        kept = (storage.join(self.output, DATASET_FILE), Folders.of_dataset(self.output).attempts)
        own = (*kept, f"{data}/", *self._list_newer(found))
        for name in self.earlier:
            folder = storage.join(self.output, name)
            ours = [path for path in found.ours if path.startswith(f"{folder}/")]
            # Workers of that attempt may still write. Its journal proves their files, so it is the
            # last to go, when they have written nothing for a whole run.
            last = {path for path in ours if path.rpartition("/")[2] in _LAST}
            storage.delete_files(path for path in ours if path not in last or last == {*ours})
        storage.delete_files(path for path in found.ours if not path.startswith(own))
        for name in filter(is_reserved, storage.list_folder(self.output)):
            storage.remove_empty_folders(storage.join(self.output, name))

    def _list_newer(self, found: ownership.Survey) -> set[str]:
        """Returns the folders of attempts that began after this one, and of earlier ones."""
        inside = (path[len(self.output) + 1 :].partition("/")[0] for path in found.ours)
        return {f"{storage.join(self.output, n)}/" for n in inside if DATA_FOLDER.fullmatch(n)}


def read_version(output: str) -> str:
    """Returns the version of an output's `dataset.json`; empty if it does not exist."""
    try:
        return storage.stat_file(storage.join(output, DATASET_FILE)).version
    except FileNotFoundError:
        return ""
