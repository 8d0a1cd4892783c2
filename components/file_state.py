"""What nodes read besides artifacts: the state of those files, as a text that caches compare.

Caches compare properties and artifacts. A path stays the same when the file behind it changes, so
the state of that file becomes a property, or a part of one. TFX's drivers put it there in a run on
this machine, and `darkroom submit` in a run elsewhere. Imports no TFX, which takes seconds.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from darkroom import storage
from darkroom.components.user_code import forget_modules, read_sources
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.named import find_base
from darkroom.manifest.fingerprint import read_source_state
from darkroom.manifest.rows import Chunk
from darkroom.options.manifest import ManifestOptions
from darkroom.runtime.functions import FUNCTION

_MAX_PATH = 4096

# Is called with a path before it is read, and may raise any error.
Check = Callable[[str], None]


class FileState(NamedTuple):
    """What a node reads, and the text that changes when that does.

    Attributes:
        node: Name of the node.
        reads: What it reads, for a message.
        key: The property that has the text.
        read: Reads the text, by the properties of the node. It may raise DarkroomError and OSError.
    """

    node: str
    reads: str
    key: str
    read: Callable[[Mapping[str, Any], Check], str]


def accept(path: str) -> None:
    """Accepts any path; a `Check`."""


def _read_source(properties: Mapping[str, Any], check: Check) -> str:
    """Returns the state of the source, its images and lists, and of the dataset to update."""
    options = ManifestOptions.from_json(properties["options"])
    lists = options.exclude, options.decisions, options.groups, options.label_map
    for path in (properties["source"], *lists, *options.allowed_roots):
        if path is not None:
            check(path)

    def check_images(chunk: Chunk) -> None:
        for uri in filter(None, chunk.columns["uri"]):
            check(uri)

    place = properties.get("base")
    base = find_base(place) if place else None
    shown = [base] if base else ()
    state = read_source_state(
        properties["source"], options, None if check is accept else check_images, shown
    )
    if not place:
        return state
    return f"{state}-{read_dataset(base.examples).fingerprint if base else 'new'}"


def _read_schema(properties: Mapping[str, Any], check: Check) -> str:
    check(properties["schema_file"])
    return storage.hash_file(properties["schema_file"])


def _read_training(properties: Mapping[str, Any], check: Check) -> str:
    """Returns the state of the code that trains, and of the files that the options name.

    The modules are imported again when the executor runs, so that it trains with this code.
    """
    texts = list(_list_texts(json.loads(properties.get("custom_config") or "null")))
    sources: dict[str, str] = {}
    for module, places in _list_modules(properties, texts):
        sources |= read_sources(module, places)
    forget_modules(list(sources))
    files = json.loads(properties.get("files") or "[]")
    versions = _read_versions([*files, *filter(_is_file, texts)], check)
    return hashlib.sha256(json.dumps([sources, versions], sort_keys=True).encode()).hexdigest()


SOURCE_STATE = FileState("ManifestGen", "source", "source_fingerprint", _read_source)
SCHEMA_STATE = FileState("ImportSchemaGen", "schema", "fingerprint", _read_schema)
TRAINING_STATE = FileState("Trainer", "files", "fingerprint", _read_training)


def _list_modules(
    properties: Mapping[str, Any], texts: Iterable[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yields the modules that train, and where else than on `sys.path` they may be."""
    if path := properties.get("module_path"):
        module, _, wheel = path.partition("@")  # as TFX's `udf_utils` writes it
        yield module, [wheel] if wheel else []
    elif path := properties.get("module_file"):
        folder, name = os.path.split(storage.absolute(path))
        yield name.removesuffix(".py"), [folder]
    elif function := properties.get("run_fn"):
        yield function.rpartition(".")[0], []
    # As `model` of darkroom's own run_fn: package.module:function.
    yield from ((found[1], []) for text in texts if (found := FUNCTION.fullmatch(text)))


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _list_texts(each)


def _is_file(text: str) -> bool:
    """Tells whether a text of the options is the path of a file, and not that of a folder."""
    if storage.is_remote(text):
        return not storage.is_folder(text)
    return 0 < len(text) < _MAX_PATH and "\0" not in text and os.path.isfile(text)


def _read_versions(paths: Iterable[str], check: Check) -> dict[str, Any]:
    """Returns size and version of files, and of all files in folders, by path; None for missing."""
    found: dict[str, Any] = {}
    for path in sorted({*paths}):
        check(path)
        try:
            is_folder = storage.is_folder(path)
            found[path] = (
                sorted(storage.look_up_files(path).items())
                if is_folder
                else storage.stat_file(path)
            )
        except (FileNotFoundError, NotADirectoryError):
            found[path] = None
    return found
