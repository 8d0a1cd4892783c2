"""Whether a task's inputs are there: backends know artifacts, and hand over what has no files."""

from __future__ import annotations

from darkroom import storage
from darkroom.components.executor_io import Task, list_artifacts
from darkroom.errors import StorageError


def check_inputs(given: Task, task: Task) -> None:
    """Checks that each input of a task has files; all artifacts of TFX's and our components do.

    A store may delete files by its own rules, while the metadata store and the cache still know the
    artifact. KFP's launcher downloads what begins with the URI, and takes nothing for success.

    Args:
        given: ExecutorInput as it came, with the URIs that the backend knows.
        task: The same as `parse_input` returned it, with the places of the files.

    Raises:
        StorageError: An input has no files.
        OSError: A store cannot be asked.
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
            f"The store no longer holds any file of the input {', '.join(sorted(missing))}.",
            "Run again with caching off (--no-cache), which makes it again, or restore its files.",
        )
