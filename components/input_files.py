"""Checks that a task's inputs have files: a backend also passes artifacts without any."""

from __future__ import annotations

from darkroom.components.executor_io import Task, list_artifacts
from darkroom.kfp.places import check_files


def check_inputs(given: Task, task: Task) -> None:
    """Checks that each input of a task has files.

    Args:
        given: The ExecutorInput as the backend passed it, with the backend's URIs.
        task: The same, as `parse_input` returned it, with the places of the files.

    Raises:
        StorageError: An input has no files.
        OSError: A store does not answer.
    """
    uris = [artifact["uri"] for artifact in list_artifacts(given["inputs"])]
    places = [artifact["uri"] for artifact in list_artifacts(task["inputs"])]
    check_files(zip(uris, places, strict=True), " (--set cache=false)")
