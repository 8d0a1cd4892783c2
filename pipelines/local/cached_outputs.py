"""Whether a node's outputs of an earlier run are still there, files and all.

TFX takes them from its cache when their folders exist. A cleaner of temporary files leaves folders
and takes files, and a pushed model is not in its artifact alone. Where a list says which files
belong together, as a model's graph and a dataset's commit do, one that is missing is found.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from tfx.types import standard_artifacts
from tfx.types.artifact import Artifact
from tfx.utils import path_utils

from darkroom import storage
from darkroom.components.pusher.saved_model import check_model
from darkroom.dataset import commit as datasets
from darkroom.errors import DataError, StorageError


def check_outputs(outputs: Mapping[str, Sequence[Artifact]]) -> None:
    """Checks outputs that may be used again; in place of TFX's `verify_artifacts`.

    Args:
        outputs: Artifacts by output.

    Raises:
        RuntimeError: One lacks files, so the node has to run again.
        OSError: A place cannot be read.
    """
    for artifact in itertools.chain(*outputs.values()):
        for place in _list_places(artifact):
            if not storage.has_files(place):
                raise RuntimeError(f"{place} has no files")
            try:
                _check_files(artifact.type_name, place)
            except (DataError, StorageError) as error:
                raise RuntimeError(str(error)) from error


def _check_files(kind: str, place: str) -> None:
    """Checks what is there against what says which files there must be."""
    if kind == standard_artifacts.PushedModel.TYPE_NAME:
        check_model(place)
    elif kind == standard_artifacts.Model.TYPE_NAME:
        check_model(path_utils.serving_model_dir(place))
    elif kind == standard_artifacts.Examples.TYPE_NAME and (found := datasets.find_dataset(place)):
        datasets.check_files(place, found)


def _list_places(artifact: Artifact) -> Iterator[str]:
    if artifact.type_name != standard_artifacts.PushedModel.TYPE_NAME:
        yield artifact.uri
    elif artifact.get_int_custom_property("pushed"):
        # Relative when it is in the artifact alone; else the artifact has a copy of its own.
        destination = artifact.get_string_custom_property("pushed_destination")
        place = storage.join(artifact.uri, destination)
        yield place
        if destination == place:
            yield artifact.uri
