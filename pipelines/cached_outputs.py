"""Whether a node's outputs of an earlier run are still there, files and all.

TFX takes them from its cache when their folders exist. A cleaner of temporary files leaves folders
and takes files, and a pushed model is not in its artifact alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from tfx.types import standard_artifacts
from tfx.types.artifact import Artifact

from darkroom import storage


def check_outputs(outputs: Mapping[str, Sequence[Artifact]]) -> None:
    """Checks outputs that may be used again; in place of TFX's `verify_artifacts`.

    Args:
        outputs: Artifacts by output.

    Raises:
        RuntimeError: One has no files, so the node has to run again.
        OSError: A place cannot be read.
    """
    for artifact in itertools.chain(*outputs.values()):
        for place in _list_places(artifact):
            if not storage.has_files(place):
                raise RuntimeError(f"{place} has no files")


def _list_places(artifact: Artifact) -> Iterator[str]:
    if artifact.type_name != standard_artifacts.PushedModel.TYPE_NAME:
        yield artifact.uri
    elif artifact.get_int_custom_property("pushed"):
        yield artifact.uri
        destination = artifact.get_string_custom_property("pushed_destination")
        yield storage.join(artifact.uri, destination)  # relative when it is in the artifact alone
