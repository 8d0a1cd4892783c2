"""Driver of Trainer: takes the fingerprint of code and files in each run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from tfx.types.standard_component_specs import (
    CUSTOM_CONFIG_KEY,
    MODULE_FILE_KEY,
    MODULE_PATH_KEY,
    RUN_FN_KEY,
)

from darkroom import storage
from darkroom.components.state_driver import StateDriver, hash_states, read_file_states
from darkroom.components.user_code import forget_modules, read_sources
from darkroom.runtime.functions import FUNCTION

FILES_KEY = "files"
_MAX_PATH = 4096


class Driver(StateDriver):
    """Puts the state of code and files into the property `fingerprint`, unless one is given."""

    NODE = "Trainer"
    READS = "files"

    def read_state(self, properties: Mapping[str, Any]) -> str:
        """Returns the state of the code that trains, and of the files that the options name.

        The modules are imported again when the executor runs, so that it trains with this code.
        """
        texts = list(_list_texts(json.loads(properties.get(CUSTOM_CONFIG_KEY) or "null")))
        sources: dict[str, str] = {}
        for module, places in _list_modules(properties, texts):
            sources |= read_sources(module, places)
        forget_modules(list(sources))
        files = json.loads(properties.get(FILES_KEY) or "[]")
        named = [text for text in texts if _is_file(text)]
        return hash_states(sources, read_file_states([*files, *named]))


def _list_modules(
    properties: Mapping[str, Any], texts: list[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yields the modules that train, and where else than on `sys.path` they may be."""
    if path := properties.get(MODULE_PATH_KEY):
        module, _, wheel = path.partition("@")  # as TFX's `udf_utils` writes it
        yield module, [wheel] if wheel else []
    elif path := properties.get(MODULE_FILE_KEY):
        folder, name = os.path.split(storage.absolute(path))
        yield name.removesuffix(".py"), [folder]
    elif function := properties.get(RUN_FN_KEY):
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
