"""What is below a folder: images, annotations, and what else was put there. All readers ask it."""

from __future__ import annotations

import posixpath
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property

from darkroom import storage
from darkroom.dataset.journal import find_outputs
from darkroom.dataset.schema import Schema
from darkroom.dataset.splits import SPLITS, UNASSIGNED, find_split
from darkroom.images.endings import find_ending, is_image_name
from darkroom.manifest.sources.evidence import Evidence, read_evidence
from darkroom.storage.uris import relative_identity

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


def are_of_one_split(first: str, second: str) -> bool:
    """Tells whether the folders of two files, below that of the user, name no two splits."""
    return len({_find_split(first), _find_split(second)} - {UNASSIGNED}) < 2


def name_listed(path: str) -> str:
    """Returns the path of a file without its ending and usual folders, as lists of splits do."""
    folders = path.split("/")[:-1]
    return "/".join([*(each for each in folders if each.lower() not in _USUAL), find_stem(path)])


def find_group(path: str) -> str:
    """Returns the folder of a file without usual folders, which images and labels have alike."""
    return posixpath.dirname(name_listed(path))


def pair_names(
    missing: Mapping[str, str],
    spare: Iterable[str],
    homes: Collection[str],
    name: Callable[[str], str] = find_name,
) -> dict[str, str]:
    """Pairs files that are named, and not where they should be, with files that nobody names.

    Names say less than paths, as numbers are names, too. So a pair is the only one of its name, and
    of no two splits, and what is missing in one of the folders that are there is in no other.

    Args:
        missing: Paths below the folder of the user, with the folder that the name says; empty where
            it says none.
        spare: The same without folders.
        homes: Folders with files that are where they should be.
        name: Returns the name in a path.
    """
    groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for path in spare:
        groups[name(path), _find_split(path)].append(path)
    found = {}
    for path, own in missing.items():
        split = _find_split(path)
        splits = (split, UNASSIGNED) if split else (UNASSIGNED, *SPLITS)
        likely = [each for one in splits for each in groups.get((name(path), one), ())[:2]]
        is_moved = posixpath.dirname(path) != posixpath.dirname(likely[0]) if likely else True
        if len(likely) == 1 and not (is_moved and own and own in homes):
            found[path] = likely[0]
    uses = Counter(found.values())
    return {path: each for path, each in found.items() if uses[each] == 1}


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
        claims: Each returns the paths of all images of a list, where they should be, with the
            folders that their names say; see `pair_names`.
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
        self.claims: list[Callable[[], Iterable[tuple[str, str]]]] = []
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
            inside: folder
            for claim in self.claims
            for path, folder in claim()
            if (inside := relative_identity(path, self.path)) != path
        }
        missing = {path: folder for path, folder in named.items() if path not in self.names}
        homes = {folder for path, folder in named.items() if path in self.names}
        found = pair_names(missing, [each for each in self.images if each not in named], homes)
        return {self.join(path): self.join(image) for path, image in found.items()}

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
