"""Where the files are that annotations name: beside them, or in a folder with a usual name.

Lists are written on one machine and read on another, and images move between folders. So a name is
tried in each folder where it may be: first as it is written, then without its first folders.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from operator import ne

from darkroom import storage
from darkroom.dataset.splits import mention_split
from darkroom.errors import DataError
from darkroom.manifest.sources.listing import Listing, find_name, pair_names
from darkroom.runtime.text import list_first
from darkroom.storage.uris import has_scheme, relative_identity, resolve_uri

Spelling = Callable[[str], str]
# Yields the names of all images of a list, as they are written; it may be called again.
_Names = Callable[[], Iterable[str]]

# So many of the first names are looked for; some images of a dataset may be missing.
SAMPLE_NAMES = 8
# A list may have a row for each object.
_SAMPLE_ROWS = 100
_SHOWN = 4
_USUAL = ("images", "data", "JPEGImages")


def use_slashes(name: str) -> str:
    """Returns a path as Windows writes it with the slashes of others."""
    return name.replace("\\", "/")


def drop_bucket(name: str) -> str:
    """Returns the path in a URI without bucket or host; a path that has none stays."""
    return name.partition("://")[2].partition("/")[2] if has_scheme(name) else name


class Place:
    """Where files are.

    Args:
        folder: A folder.
        spell: Returns what a name is there: a path below the folder, or a URI.
        names: All names; see `Listing.moved`.
        listing: What is below the folder that the user named; without it, what is below `folder`
            is listed where a file is missing.

    Attributes:
        folder: The same.
        spell: The same.
    """

    def __init__(
        self, folder: str, spell: Spelling, names: _Names = tuple, listing: Listing | None = None
    ) -> None:
        self.folder, self.spell = folder, spell
        self._inside = f"{folder.rstrip('/')}/"
        self._all_names = names
        self._listing = listing
        self._names: dict[str, frozenset[str]] = {}
        if listing:
            listing.claims.append(self._list_paths)

    def _list_paths(self) -> Iterable[str]:
        return map(self.join, self._all_names())

    def join(self, name: str) -> str:
        """Returns the absolute path, or the URI, where a name should be."""
        path = self.spell(name)
        return resolve_uri(path if has_scheme(path) else storage.join(self.folder, path))

    def resolve(self, name: str) -> str:
        """Returns the absolute path, or the URI, that a name means.

        A file below the folder that is not there is looked for once more, by its name.
        """
        path = self.join(name)
        if not path.startswith(self._inside) or self._is_there(path):
            return path
        if self._listing is None:
            self._listing = Listing(self.folder)
            self._listing.claims.append(self._list_paths)
        return self._listing.moved.get(path, path)

    def _is_there(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        if folder not in self._names:
            self._names[folder] = frozenset(storage.list_folder(folder))
        return name in self._names[folder]


def find_images(
    path: str,
    names: _Names,
    image_dir: str | None,
    listing: Listing | None = None,
    reads: Sequence[Spelling] = (),
) -> Place:
    """Returns where the images of a file of annotations are.

    Args:
        path: The file, or a folder of files.
        names: Its images as it names them.
        image_dir: The folder that the user says; the images may be in a folder of it.
        listing: What is below the folder that the user named, if it is not the file.
        reads: As for `find_place`. Without it, names are paths; in the folder of a user also those
            in URIs.

    Raises:
        DataError: None of the first images is found.
        OSError: A store cannot be asked.
    """
    folder = path if storage.is_folder(path) else posixpath.dirname(path)
    starts = [image_dir] if image_dir else [folder, posixpath.dirname(folder)]
    places = ["", *_USUAL]
    # The folder of a split, as train2017, has its name or that of the file.
    named = relative_identity(path, listing.path) if listing else path
    if split := mention_split(*reversed(named.split("/")[-2:])):
        # Names may occur in each split, so these go first.
        inside = [f"{split}/{name}" for name in _USUAL] + [f"{name}/{split}" for name in _USUAL]
        places = ["", split, *inside, *_USUAL]
    folders = [storage.join(start, name).rstrip("/") for name in places for start in starts]
    reads = reads or (drop_bucket if image_dir else use_slashes,)
    below = image_dir or listing
    return find_place(f"The images of {path}", names, folders, reads, below=below, split=split)


def find_place(
    what: str,
    names: _Names,
    folders: Sequence[str],
    reads: Sequence[Spelling] = (use_slashes,),
    *,
    least_parts: int = 1,
    below: Listing | str | None = None,
    split: str = "",
) -> Place:
    """Returns the place that has most of the first names; of several, the first one.

    Args:
        what: The beginning of the error, as "The images of a.json".
        names: All names, as they are written; the first `SAMPLE_NAMES` are looked for. Of URIs no
            store or host is asked: if all are URIs, the place is the first one.
        folders: Where they may be, the most likely first.
        reads: Each returns the path in a name, the most likely first; a URI stays. A file may have
            the whole of a path, or its last parts alone.
        least_parts: How many of the last parts are never left out.
        below: What is below the folder that has the files, or that folder, if it is known: they
            may be anywhere in it, each under a name that no other one has.
        split: The split of the list, as it is written.

    Raises:
        DataError: None of the names is found.
        OSError: A store cannot be asked.
    """
    first = dict.fromkeys(name for name in islice(names(), _SAMPLE_ROWS) if name.strip())
    sample = [*first][:SAMPLE_NAMES]
    listing = below if isinstance(below, Listing) else None
    spellings = [each for read in reads for each in _list_spellings(sample, read, least_parts)]
    for spell in spellings:
        paths = [path for path in map(spell, sample) if not has_scheme(path)]
        if not paths:
            return Place(folders[0], spell, names, listing)
        most, found = 0, ""
        for folder in dict.fromkeys(folders):
            count = _count_there(folder, paths, listing)
            if count > most:
                most, found = count, folder
            if most == len(paths):
                break
        if most and (spell in spellings[:2] or _keeps_apart(spell, names())):
            return Place(found, spell, names, listing)
    if below:
        listing = listing or Listing(f"{below}")

        def spell_whole(name: str) -> str:
            return posixpath.join(split, spellings[1](name))

        # The whole path, as its folders may say the split.
        missing = {path: find_name(path) for path in map(spell_whole, sample)}
        if pair_names({}, missing, listing.images, find_name, place=str):
            return Place(listing.path, spell_whole, names, listing)
    raise DataError(
        f"{what} are not found, as {list_first(sample, most=_SHOWN)}. Tried: "
        f"{list_first([*dict.fromkeys(folders)], most=_SHOWN)}.",
        "Name the folder that has the images: --image-dir DIR (image_dir= in Python).",
    )


def _count_there(folder: str, paths: Sequence[str], listing: Listing | None) -> int:
    """Returns how many of some paths are in a folder; a store is asked only for few of them."""
    whole = [resolve_uri(storage.join(folder, path)) for path in paths]
    inside = [relative_identity(path, listing.path) for path in whole] if listing else whole
    if listing and all(map(ne, inside, whole)):
        return sum(path in listing.names for path in inside)
    # Where the first and the last one are not, others are hardly.
    if storage.is_remote(folder) and not any(map(storage.exists, (whole[0], whole[-1]))):
        return 0
    return sum(map(storage.exists, whole))


def _keeps_apart(spell: Spelling, names: Iterable[str]) -> bool:
    """Tells whether a spelling gives no two names one path, as of day1/1.jpg and day2/1.jpg."""
    found: dict[str, str] = {}
    return all(found.setdefault(spell(name), name) == name for name in names)


def _list_spellings(names: Iterable[str], read: Spelling, least_parts: int) -> list[Spelling]:
    """Returns what names that are alike may be: the whole of them, and their last parts."""
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
    parts = use_slashes(path).split("/")
    return [part for part in parts if part not in ("", ".", "..")]
