"""What names the classes and the images of a dataset of YOLO: data.yaml, or a file of darknet."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from darkroom import storage
from darkroom.dataset.splits import parse_split
from darkroom.errors import DataError
from darkroom.manifest.formats.places import find_place
from darkroom.manifest.formats.yolo.labels import build_pose_error
from darkroom.manifest.sources.evidence import Evidence
from darkroom.manifest.sources.listing import Listing
from darkroom.manifest.sources.roots import check_found
from darkroom.runtime.text import list_first

_CLASS_FILES = ("classes.txt", "_darknet.labels")
_USUAL_NAME = "data.yaml"
_DARKNET_ENDING = ".data"
_ENDINGS = (".yaml", ".yml", _DARKNET_ENDING)
_NUMBER = re.compile(r"\d{1,9}")
# How YAML writes that there is nothing.
_NOTHING = ("", "~", "null", None)
_MAX_BYTES = 1 << 20


class Settings(NamedTuple):
    """What a file says about a dataset.

    Attributes:
        classes: The names of the classes by number.
        entries: The name of a split, and a folder or a list of its images, as they are written.
        path: The folder that these are relative to, as it is written; empty if it is not.
    """

    classes: dict[int, str]
    entries: Sequence[tuple[str, str]] = ()
    path: str = ""


class _Loader(yaml.BaseLoader):
    """Makes no objects, and reads all values as they are written: a class may be `no` or `007`.

    With aliases, a short file may stand for a text of gigabytes.
    """

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Returns the next node, which is not an alias."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError("an alias is not read here", self.peek_event().start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Returns a mapping; of a key that occurs twice, neither value is the right one."""
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        if len(found) != len(node.value):
            raise yaml.MarkedYAMLError("a key occurs twice here", node.start_mark)
        return found


def find_settings(source: str | Listing, roots: Collection[str] = ()) -> tuple[str, Settings]:
    """Returns the file that names the classes of a dataset, and what it says.

    Args:
        source: data.yaml, the .data file of darknet, or what is below a folder that has one of
            them, or a file with the names of the classes, in it or further below.
        roots: The folders in which files that are found may be; see `list_roots`.

    Raises:
        DataError: There is none or several, or it cannot be used; the error says why.
        OSError: It cannot be read.
    """
    if isinstance(source, str):
        return source, read_settings(source, roots)
    path = source.path
    found = list_settings(source)
    if len(found) > 1:
        raise DataError(f"{path} has {list_first(found)}.", "Give the one that is meant.")
    files = found or [*filter(is_class_file, source.others)]
    source.taken.update(files)
    if found:
        file = check_found(source.join(found[0]), roots)
        return file, read_settings(file, roots)
    read = {file: _read_classes(check_found(source.join(file), roots)) for file in files}
    if not read:
        raise DataError(
            f"Nothing in {path} names the classes of YOLO.",
            "Put data.yaml into it, or classes.txt with the name of number 0 in its first line.",
        )
    first, *others = read
    if other := next((file for file in others if read[file] != read[first]), None):
        problem = f"{first} and {other} in {path} name other classes."
        raise DataError(problem, "Convert each folder by itself.")
    return storage.join(path, first), Settings(read[first])


def list_settings(listing: Listing) -> list[str]:
    """Returns the files that name classes and images, in the first folders that have any.

    Raises:
        OSError: One cannot be read.
    """
    found = [*listing.find_by(_ENDINGS, lambda file: _is_settings(listing.read_evidence(file)))]
    depth = min((file.count("/") for file in found), default=0)
    first = [file for file in found if file.count("/") == depth]
    return [file for file in first if posixpath.basename(file) == _USUAL_NAME] or first


def _is_settings(found: Evidence) -> bool:
    lines = found.text.splitlines()
    keys = {line.replace("=", ":").partition(":")[0].strip() for line in lines}
    return not keys.isdisjoint(("names", "nc")) and any(map(parse_split, keys))


def is_class_file(file: str) -> bool:
    """Tells whether a file has the names of classes and nothing else, by its own name."""
    name = posixpath.basename(file)
    return name in _CLASS_FILES or name.endswith(".names")


def read_settings(file: str, roots: Collection[str] = ()) -> Settings:
    """Returns what data.yaml, or the .data file of darknet, says.

    Raises:
        DataError: It is not such a file, or does not name both classes and images.
        OSError: It cannot be read.
    """
    text, is_darknet = _read_text(file), file.endswith(_DARKNET_ENDING)
    found = _parse_darknet(text) if is_darknet else _parse_yaml(text, file)
    if "kpt_shape" in found:
        raise build_pose_error(file, "kpt_shape: poses")
    classes = _find_classes(found, file, roots) if is_darknet else _parse_names(found, file)
    entries = [
        (key, place)
        for key, value in found.items()
        if isinstance(key, str) and parse_split(key)
        for place in (value if isinstance(value, list) else [value])
        if place not in _NOTHING
    ]
    # They are not shown: what is named again and again may be of any length.
    if not entries or not all(isinstance(place, str) for _, place in entries):
        raise DataError(
            f"{file} does not name folders or lists of images.", "Write train: images/train."
        )
    path = found.get("path")
    is_said = isinstance(path, str) and path not in _NOTHING
    return Settings(classes, entries, f"{path}" if is_said else "")


def read_names(file: str) -> dict[int, str]:
    """Returns the names of the classes by number in data.yaml.

    Raises:
        DataError: It is not YAML, or names no class.
        OSError: It cannot be read.
    """
    return _parse_names(_parse_yaml(_read_text(file), file), file)


def _parse_yaml(text: str, file: str) -> Mapping[Any, Any]:
    try:
        found = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError) as error:
        problem = "it is nested too deeply" if isinstance(error, RecursionError) else f"{error}"
        raise DataError(f"{file} is not YAML: {problem}.", "Correct it.") from error
    if not isinstance(found, dict):
        raise DataError(
            f"{file} has no keys as names and train.", "Give data.yaml, or the folder that has it."
        )
    return found


def _parse_darknet(text: str) -> dict[str, str]:
    """Returns the values of lines as `train = data/train.txt`."""
    lines = (line.partition("=") for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in lines}


def _parse_names(found: Mapping[Any, Any], file: str) -> dict[int, str]:
    """Returns the names of the classes by number.

    Raises:
        DataError: There are none, or not as many as it says.
    """
    names: Any = found.get("names")
    if isinstance(names, list):
        names = {f"{number}": name for number, name in enumerate(names)}
    named = names.items() if isinstance(names, dict) else [(None, None)]
    if not all(isinstance(name, str) and _NUMBER.fullmatch(f"{key}") for key, name in named):
        raise DataError(
            f"{file} does not name the classes, in order or by number.",
            "Give the names of the classes, as in names: [cat, dog].",
        )
    if (num_classes := found.get("nc")) not in (*_NOTHING, f"{len(names)}"):
        raise DataError(
            f"{file} has nc: {num_classes!s:.20}, but names {len(names)} classes.",
            "Correct it: nc is the number of the names.",
        )
    return _check_classes({int(key): name for key, name in names.items()}, file)


def _find_classes(found: Mapping[str, str], file: str, roots: Collection[str]) -> dict[int, str]:
    """Returns the names of the classes in the file that a file of darknet names."""
    name, folder = found.get("names", "obj.names"), posixpath.dirname(file)
    folders, what = [folder, posixpath.dirname(folder)], f"The names of the classes of {file}"
    place = find_place(what, lambda: [name], folders)
    return _read_classes(check_found(place.join(name), roots))


def _read_classes(file: str) -> dict[int, str]:
    names = _read_text(file).rstrip().splitlines()
    return _check_classes(dict(enumerate(map(str.strip, names))), file)


def _check_classes(classes: dict[int, str], file: str) -> dict[int, str]:
    """Returns classes if there are any, with a name of its own each."""
    repeated = [name for name, count in Counter(classes.values()).items() if count > 1]
    if not repeated and classes:
        return classes
    problem = f"names {repeated[0]!r:.80} twice" if repeated else "names no class"
    raise DataError(f"{file} {problem}.", "Give each class a name of its own.")


def _read_text(file: str) -> str:
    try:
        return storage.read_bytes(file, _MAX_BYTES).decode("utf-8-sig")
    except (storage.FileTooLargeError, UnicodeDecodeError) as error:
        problem = f"is not text in UTF-8 of at most {_MAX_BYTES:,} bytes: {error}"
        raise DataError(f"{file} {problem}.", "Save it as UTF-8.") from error
