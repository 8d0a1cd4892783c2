"""Where the files are that annotations name: beside them, or in a folder with a usual name.

Lists are written on one machine and read on another, and images move between folders. So a name is
tried in each folder where it may be: first as it is written, then without its first folders.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from typing import NamedTuple

from darkroom import storage
from darkroom.errors import DataError
from darkroom.runtime.text import list_first
from darkroom.storage.uris import has_scheme, resolve_uri

Spelling = Callable[[str], str]

# So many of the first names are looked for; some images of a dataset may be missing.
SAMPLE_NAMES = 8
_USUAL = ("images", "data", "JPEGImages")


class Place(NamedTuple):
    """Where files are.

    Attributes:
        folder: A folder.
        spell: Returns what a name is there: a path below the folder, or a URI.
    """

    folder: str
    spell: Spelling

    def resolve(self, name: str) -> str:
        """Returns the absolute path, or the URI, that a name means."""
        path = self.spell(name)
        return resolve_uri(path if has_scheme(path) else storage.join(self.folder, path))


def find_images(
    path: str,
    names: Sequence[str],
    image_dir: str | None,
    split: str = "",
    spellings: Sequence[Spelling] = (),
) -> Place:
    """Returns where the images of a file of annotations are.

    Args:
        path: The file, or a folder of files.
        names: Its first images as it names them.
        image_dir: The folder that the user says; the images may be in a folder of it.
        split: The folder of its split, as train2017; empty for none.
        spellings: As for `find_place`. Without any, names are as they are written, and in the
            folder of a user without bucket and first folders.

    Raises:
        DataError: None of these images is found.
        OSError: A store cannot be asked.
    """
    folder = path if storage.is_folder(path) else posixpath.dirname(path)
    starts = [image_dir] if image_dir else [folder, posixpath.dirname(folder)]
    below = ["", *_USUAL]
    if split:
        # Names may occur in each split, so these go first.
        inside = [f"{split}/{name}" for name in _USUAL] + [f"{name}/{split}" for name in _USUAL]
        below = ["", split, *inside, *_USUAL]
    folders = [storage.join(start, name).rstrip("/") for name in below for start in starts]
    usual = list_spellings(names, drop_bucket) if image_dir else [str]
    return find_place(f"The images of {path}", names, folders, spellings or usual)


def find_place(
    what: str, names: Sequence[str], folders: Sequence[str], spellings: Sequence[Spelling]
) -> Place:
    """Returns the first of some places that has the first of some names that any has.

    Args:
        what: The beginning of the error, as "The images of a.json".
        names: Them, as they are written; `SAMPLE_NAMES` are looked for. Of URIs no store or host
            is asked: if all are URIs, the place is the first one.
        folders: Where they may be, the most likely first.
        spellings: What they may be there, the most likely first.

    Raises:
        DataError: None of the names is found.
        OSError: A store cannot be asked.
    """
    sample = [name for name in dict.fromkeys(names) if name.strip()][:SAMPLE_NAMES]
    folders = [*dict.fromkeys(folders)]
    for spell in spellings:
        paths = [path for path in map(spell, sample) if not has_scheme(path)]
        if not paths:
            return Place(folders[0], spell)
        for path in paths:
            for folder in folders:
                if storage.exists(storage.join(folder, path)):
                    return Place(folder, spell)
    raise DataError(
        f"{what} are not found, as {list_first(sample)}. Tried: {', '.join(folders)}.",
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
