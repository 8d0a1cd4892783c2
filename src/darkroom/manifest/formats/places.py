"""Where the files are that annotations name: beside them, or in a folder with a usual name.

Lists are written on one machine and read on another, and images move between folders. So a name is
tried in each folder where it may be: first as it is written, then without its first folders.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from darkroom import storage
from darkroom.dataset.splits import UNASSIGNED, find_split, mention_split
from darkroom.errors import DataError
from darkroom.manifest.sources.listing import Listing
from darkroom.runtime.text import list_first
from darkroom.storage.uris import has_scheme, relative_identity, resolve_uri

Spelling = Callable[[str], str]

# So many of the first names are looked for; some images of a dataset may be missing.
SAMPLE_NAMES = 8
_SHOWN_FOLDERS = 4
_USUAL = ("images", "data", "JPEGImages")


class Place:
    """Where files are.

    Args:
        folder: A folder.
        spell: Returns what a name is there: a path below the folder, or a URI.
        listing: What is below the folder that the user named; without it, what is below `folder`
            is listed where a file is missing.

    Attributes:
        folder: The same.
        spell: The same.
    """

    def __init__(self, folder: str, spell: Spelling, listing: Listing | None = None) -> None:
        self.folder, self.spell = folder, spell
        self._inside = f"{folder.rstrip('/')}/"
        self._listing = listing
        self._names: dict[str, frozenset[str]] = {}

    @cached_property
    def _by_name(self) -> ByName:
        listing = self._listing or Listing(self.folder)
        return ByName(map(listing.join, listing.images))

    def resolve(self, name: str) -> str:
        """Returns the absolute path, or the URI, that a name means.

        A file below the folder that is not there is looked for once more, by its name.
        """
        path = self.spell(name)
        path = resolve_uri(path if has_scheme(path) else storage.join(self.folder, path))
        if path.startswith(self._inside) and not self._is_there(path):
            return self._by_name.find(path) or path
        return path

    def _is_there(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        if folder not in self._names:
            self._names[folder] = frozenset(storage.list_folder(folder))
        return name in self._names[folder]


class ByName:
    """Files by their names, which say less than their paths.

    Args:
        paths: Them.
        has_ending: Whether the ending, in any case, is a part of the name.
    """

    def __init__(self, paths: Iterable[str], *, has_ending: bool = True) -> None:
        self._has_ending = has_ending
        self._paths: defaultdict[str, list[str]] = defaultdict(list)
        for path in paths:
            self._paths[self._name(path)].append(path)

    def _name(self, path: str) -> str:
        name, ending = posixpath.splitext(posixpath.basename(path))
        return name + ending.lower() if self._has_ending else name

    def find(self, path: str) -> str | None:
        """Returns the only file with the name of a path, and of no other split; None without."""
        found = [
            each for each in self._paths.get(self._name(path), ()) if are_of_one_split(path, each)
        ]
        return found[0] if len(found) == 1 else None


def are_of_one_split(first: str, second: str) -> bool:
    """Tells whether the folders of two files name no two splits."""
    splits = {find_split(posixpath.dirname(path)) for path in (first, second)}
    return len(splits - {UNASSIGNED, None}) < 2


def find_images(
    path: str,
    names: Sequence[str],
    image_dir: str | None,
    listing: Listing | None = None,
    spellings: Sequence[Spelling] = (),
) -> Place:
    """Returns where the images of a file of annotations are.

    Args:
        path: The file, or a folder of files.
        names: Its first images as it names them.
        image_dir: The folder that the user says; the images may be in a folder of it.
        listing: What is below the folder that the user named, if it is not the file.
        spellings: As for `find_place`. Without any, names are as they are written, and in the
            folder of a user without bucket and first folders.

    Raises:
        DataError: None of these images is found.
        OSError: A store cannot be asked.
    """
    folder = path if storage.is_folder(path) else posixpath.dirname(path)
    starts = [image_dir] if image_dir else [folder, posixpath.dirname(folder)]
    below = ["", *_USUAL]
    # The folder of a split, as train2017, has its name or that of the file.
    named = relative_identity(path, listing.path) if listing else path
    if split := mention_split(*reversed(named.split("/")[-2:])):
        # Names may occur in each split, so these go first.
        inside = [f"{split}/{name}" for name in _USUAL] + [f"{name}/{split}" for name in _USUAL]
        below = ["", split, *inside, *_USUAL]
    folders = [storage.join(start, name).rstrip("/") for name in below for start in starts]
    if listing and not image_dir:
        found = dict.fromkeys(map(posixpath.dirname, listing.images))
        folders += [
            listing.join(each) for each in found if are_of_one_split(f"{split}/", f"{each}/")
        ]
    usual = list_spellings(names, drop_bucket) if image_dir else [str]
    return find_place(f"The images of {path}", names, folders, spellings or usual, listing)


def find_place(
    what: str,
    names: Sequence[str],
    folders: Sequence[str],
    spellings: Sequence[Spelling],
    listing: Listing | None = None,
) -> Place:
    """Returns the place that has most of some names; of several, the first one.

    Args:
        what: The beginning of the error, as "The images of a.json".
        names: Them, as they are written; `SAMPLE_NAMES` are looked for. Of URIs no store or host
            is asked: if all are URIs, the place is the first one.
        folders: Where they may be, the most likely first.
        spellings: What they may be there, the most likely first.
        listing: What is below the folder that the user named.

    Raises:
        DataError: None of the names is found.
        OSError: A store cannot be asked.
    """
    sample = [name for name in dict.fromkeys(names) if name.strip()][:SAMPLE_NAMES]
    folders = [*dict.fromkeys(folders)]
    for spell in spellings:
        paths = [path for path in map(spell, sample) if not has_scheme(path)]
        if not paths:
            return Place(folders[0], spell, listing)
        most, found = 0, ""
        for folder in folders:
            count = sum(storage.exists(storage.join(folder, path)) for path in paths)
            if count > most:
                most, found = count, folder
            if most == len(paths):
                break
        if most:
            return Place(found, spell, listing)
    raise DataError(
        f"{what} are not found, as {list_first(sample)}. Tried: "
        f"{list_first(folders, most=_SHOWN_FOLDERS)}.",
        "Name the folder that has the images: --image-dir DIR (image_dir= in Python).",
    )


def list_spellings(
    names: Sequence[str], read: Spelling = str, least_parts: int = 1
) -> list[Spelling]:
    """Returns what names may be in another folder: the whole of them, and their last parts.

    Args:
        names: Names that are alike.
        read: Returns the path in a name; a URI stays.
        least_parts: How many of the last parts of a path are never left out.
    """
    most = max((len(_list_parts(read(name))) for name in names), default=0)
    depths = range(max(most - least_parts, 0) + 1)
    return [read, *(_leave_out(depth, read) for depth in depths)]


def _leave_out(depth: int, read: Spelling) -> Spelling:
    def spell(name: str) -> str:
        path = read(name)
        parts = _list_parts(path)
        return path if has_scheme(path) else "/".join(parts[depth:] or parts[-1:])

    return spell


def _list_parts(path: str) -> list[str]:
    """Returns the parts of a path; `/` and `../` at its beginning are none."""
    parts = path.replace("\\", "/").split("/")
    return [part for part in parts if part not in ("", ".", "..")]


def drop_bucket(name: str) -> str:
    """Returns the path in a URI without bucket or host; a path that has none stays."""
    return name.partition("://")[2].partition("/")[2] if has_scheme(name) else name
