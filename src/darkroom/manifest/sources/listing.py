"""What is below a folder: images, annotations, and what else was put there. All readers ask it."""

from __future__ import annotations

import posixpath
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from darkroom import storage
from darkroom.dataset.journal import find_outputs
from darkroom.dataset.schema import Schema
from darkroom.dataset.splits import SPLITS, UNASSIGNED, find_split
from darkroom.images.headers import is_image_name
from darkroom.manifest.sources.evidence import Evidence, read_evidence
from darkroom.storage.uris import find_ending, relative_identity

# Of files that may have annotations.
_TEXTS = (".json", ".xml", ".yaml", ".yml", ".txt", ".csv", ".jsonl", ".ndjson")
# Folders of images or annotations; those of images have the same paths apart from them.
_USUAL = frozenset(
    (
        *("annotations", "annotation", "annots", "xml", "xmls", "labels", "label"),
        *("jpegimages", "images", "image", "imgs", "img", "data"),
    )
)
# So many files of an ending are looked into, to know whether there are any of a form; and what is
# known of so many is kept.
_MOST_FILES, _MOST_KEPT = 64, 512


def find_stem(path: str) -> str:
    """Returns the name of a file without folders and ending; some systems write accents apart."""
    return unicodedata.normalize("NFC", posixpath.splitext(posixpath.basename(path))[0])


def find_name(path: str) -> str:
    """Returns the name of a file without folders, with its ending in lower case."""
    return find_stem(path) + find_ending(path)


def _find_split(path: str) -> str:
    """Returns the split that the folders of a file name, below that of the user; empty for none."""
    return find_split(posixpath.dirname(path)) or UNASSIGNED


def name_listed(path: str) -> str:
    """Returns the path of a file without its ending and usual folders, as lists of splits do."""
    folders = path.split("/")[:-1]
    return "/".join([*(each for each in folders if each.lower() not in _USUAL), find_stem(path)])


def pair_names(
    found: Mapping[str, str],
    missing: Mapping[str, str],
    files: Iterable[str],
    name: Callable[[str], str] = find_stem,
    place: Callable[[str], str] = name_listed,
) -> dict[str, str]:
    """Returns the files that names mean of which none is where it should be.

    Names say less than paths, as numbers are names, too. So a pair is the only one of its name. It
    is of no two splits, and what is missing in one of the folders that are there is in no other.

    Args:
        found: The files that are where they should be, by the paths of those that name them. All
            paths are below the folder of the user.
        missing: Names of other files, likewise.
        files: Paths of all files. One at the place of a file that was found is of no other name.
        name: Returns the name in the path of a file.
        place: Returns what those that name a file and the file have alike in their paths.
    """
    used = {*found.values()}
    taken = {*map(place, used)}
    homes = {posixpath.dirname(place(path)) for path in found} - {""}
    by_split: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    by_home: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for file in files if missing else ():
        if file not in used:
            by_split[name(file), _find_split(file)].append(file)
            by_home[name(file), posixpath.dirname(place(file))].append(file)
    pairs: dict[str, str] = {}
    uses: Counter[str] = Counter()
    for path, named in missing.items():
        split, home = _find_split(path), posixpath.dirname(place(path))
        splits = (split, UNASSIGNED) if split else (UNASSIGNED, *SPLITS)
        likely = [each for one in splits for each in by_split.get((named, one), ())[:2]]
        near = by_home.get((named, home), []) if home in homes else likely
        uses.update({each[0] for each in (likely, near) if len(each) == 1})
        if len(near) == 1 and place(near[0]) not in taken:
            pairs[path] = near[0]
    return {path: file for path, file in pairs.items() if uses[file] == 1}


class Listing:
    """The files below a folder that a user named, without those that darkroom wrote.

    Args:
        path: The folder.

    Attributes:
        path: The same.
        files: Paths of all files, relative to it.
        outputs: Paths, likewise, of outputs of conversions below it, finished or not.
        left_out: How many files, and how many folders as a whole, were not listed, by reason.
        images: Those of `files` that have the ending of an image.
        others: All others of them.
        taken: Those of `others` that a reader has taken.
        claims: Each returns the paths of all images of a list, where they should be.
        schemas: The columns of those of `others` that were opened as lists; None for what is not a
            list of images.

    Raises:
        OSError: A folder cannot be read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.left_out: Counter[str] = Counter()
        self.files, self.outputs = find_outputs(path, self.left_out)
        self.images = [*filter(is_image_name, self.files)]
        self.others = [file for file in self.files if not is_image_name(file)]
        self.taken: set[str] = set()
        self.claims: list[Callable[[], Iterable[str]]] = []
        self.schemas: dict[str, Schema | None] = {}
        self._known: dict[str, Evidence] = {}

    def join(self, file: str) -> str:
        """Returns the path of one of the files."""
        return storage.join(self.path, file)

    @cached_property
    def moved(self) -> dict[str, str]:
        """Where images are that are not where lists say, by the paths there.

        It is asked when all lists are opened: an image that one of them names is that of no other.
        """
        named = {
            inside
            for claim in self.claims
            for path in claim()
            if (inside := relative_identity(path, self.path)) != path
        }
        found = {path: path for path in named & self.names}
        missing = {path: find_name(path) for path in named - self.names}
        pairs = pair_names(found, missing, self.images, find_name, place=str)
        return {self.join(path): self.join(image) for path, image in pairs.items()}

    @cached_property
    def names(self) -> frozenset[str]:
        """The same as `files`, to look for one."""
        return frozenset(self.files)

    @cached_property
    def _by_ending(self) -> dict[str, list[str]]:
        """The files that are not images, by their endings; the first of each folder first."""
        places: Counter[str] = Counter()
        found: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for file in self.others:
            ending = find_ending(file)
            group = f"{posixpath.dirname(file)}/{ending}"
            found[ending].append((places[group], file))
            places[group] += 1
        return {ending: [file for _, file in sorted(files)] for ending, files in found.items()}

    def read_evidence(self, file: str) -> Evidence:
        """Returns what is known of a file.

        Raises:
            OSError: It cannot be read.
        """
        if found := self._known.get(file):
            return found
        found = read_evidence(self.join(file))
        if len(self._known) < _MOST_KEPT:
            self._known[file] = found
        return found

    def list_texts(self) -> list[str]:
        """Returns the first files that may have annotations: JSON first, and of each folder one."""
        return [file for ending in _TEXTS for file in self._by_ending.get(ending, ())[:_MOST_FILES]]

    def find(self, is_it: Callable[[Evidence], bool]) -> Iterator[str]:
        """Yields the files whose text has a form.

        Raises:
            OSError: One cannot be read.
        """
        return self.find_by(_TEXTS, lambda file: is_it(self.read_evidence(file)))

    def find_by(self, endings: Iterable[str], has: Callable[[str], bool]) -> Iterator[str]:
        """Yields the files of some endings that have something, if any of the first ones has it."""
        for ending in endings:
            files = self._by_ending.get(ending, [])
            if any(map(has, files[:_MOST_FILES])):
                yield from filter(has, sorted(files))

    def group_untaken(self) -> list[list[str]]:
        """Returns the files that may have annotations, and that no reader has taken.

        Those of a folder with one ending are together.
        """
        groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for ending in _TEXTS:
            for file in self._by_ending.get(ending, ()):
                if file not in self.taken:
                    groups[ending, posixpath.dirname(file)].append(file)
        return [*groups.values()][:_MOST_FILES]
