"""Checks that a task's inputs have files: a backend also passes artifacts without any."""

from __future__ import annotations

from darkroom import storage
from darkroom.components.executor_io import Task, list_artifacts
from darkroom.errors import StorageError


def check_inputs(given: Task, task: Task) -> None:
    """Checks that each input of a task has files: all artifacts of TFX's and our components have.

    A store may delete files by its own rules, while the metadata store and the cache still list the
    artifact. KFP's launcher downloads all files below the URI, and succeeds when there are none.

    Args:
        given: The ExecutorInput as the backend passed it, with the backend's URIs.
        task: The same, as `parse_input` returned it, with the places of the files.

    Raises:
        StorageError: An input has no files.
        OSError: A store does not answer.
    """
    inputs = list_artifacts(task["inputs"])
    uris = [artifact["uri"] for artifact in list_artifacts(given["inputs"])]
    missing = [
        uri
        for uri, artifact in zip(uris, inputs, strict=True)
        if not storage.has_files(artifact["uri"])
    ]
    if missing:
        raise StorageError(
            f"The store no longer has any file of the input {', '.join(sorted(missing))}.",
            "Run again with caching off (--no-cache) to make it again, or restore its files.",
        )
