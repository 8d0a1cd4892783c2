"""KFP's ExecutorInput and ExecutorOutput: the JSON that a container gets and returns.

KFP's launcher copies artifacts between the store and folders named after their URIs, but passes
only the URIs, of which TensorFlow can open gs:// alone. So the entrypoint replaces the URIs in the
input by places that TFX's executors can open, and restores the URIs in the output.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypedDict

import yaml
from tfx.components.example_gen.utils import FINGERPRINT_PROPERTY_NAME
from tfx.orchestration.kubeflow.v2 import compiler_utils
from tfx.types.artifact import Artifact
from tfx.utils import import_utils, name_utils

from darkroom import storage
from darkroom.components.parameters import parse_properties
from darkroom.components.system_artifacts import SYSTEM_ARTIFACTS
from darkroom.conversion.beam.runners import LOCAL_RUNNER, parse_runner
from darkroom.errors import UsageError
from darkroom.kfp.places import MOUNTS, find_mount, name_uris
from darkroom.storage.uris import find_remote

Locate = Callable[[str], str]
_SHOWN = {str(name_utils.get_full_name(each)) for each in SYSTEM_ARTIFACTS.values()}


class ArtifactEntry(TypedDict, total=False):
    """RuntimeArtifact: where an artifact is, and its ArtifactTypeSchema."""

    name: str
    uri: str
    type: dict[str, str]
    metadata: dict[str, Any]


class ArtifactList(TypedDict):
    """ArtifactList: the artifacts of one input or output."""

    artifacts: list[ArtifactEntry]


class TaskInputs(TypedDict, total=False):
    """ExecutorInput.Inputs; values are numbers, texts, or structures."""

    artifacts: dict[str, ArtifactList]
    parameterValues: dict[str, Any]


class TaskOutputs(TypedDict, total=False):
    """ExecutorInput.Outputs; the ExecutorOutput goes to `outputFile`."""

    artifacts: dict[str, ArtifactList]
    outputFile: str


class Task(TypedDict):
    """ExecutorInput: the inputs and outputs of a task."""

    inputs: TaskInputs
    outputs: TaskOutputs


def choose_places(target: str, runner: str, *, uses_beam: bool) -> Locate:
    """Returns the function that turns a task's URI into a place that its executor can open.

    Args:
        target: `kubeflow` or `vertex`; URIs on Vertex are gs://, which every executor can open.
        runner: Name of Beam's runner; workers elsewhere do not see this container's folders.
        uses_beam: Whether the executor uses Beam.

    Raises:
        UsageError: The runner does not exist.
    """
    if target != "kubeflow":
        return str
    is_remote = parse_runner(runner.rpartition(".")[2]) != LOCAL_RUNNER
    return find_remote if uses_beam and is_remote else find_mount


def parse_input(text: str, spec_text: str, locate: Locate, *, has_parameters: bool = True) -> Task:
    """Returns an ExecutorInput as TFX's executors need it.

    Outputs whose type is not a TFX artifact are left out, URIs become places that can be opened,
    numbers get the types of the component's interface, structures become JSON text, and run-time
    parameters are merged into the properties that they change.

    Args:
        text: ExecutorInput as JSON.
        spec_text: ComponentInputsSpec as JSON; empty without one.
        locate: Turns a URI into the place.
        has_parameters: Whether run-time parameters of darkroom's pipeline are among the properties.

    Raises:
        UsageError: The text is not an ExecutorInput, a parameter has a wrong value, or an output is
            in a place that must not be emptied.
    """
    task = _load(text)
    inputs, outputs = task["inputs"], task["outputs"]
    kinds, types = _parse_spec(spec_text)
    outputs["artifacts"] = {
        key: found
        for key, found in outputs.get("artifacts", {}).items()
        if all(find_class_path(artifact["type"]) for artifact in found.get("artifacts", ()))
    }
    _check_outputs(task)  # before URIs are replaced
    for key, each in inputs.get("artifacts", {}).items():
        for artifact in each.get("artifacts", ()):
            # For an output of another task, Kubeflow passes `{"instanceSchema": ""}` and no more.
            artifact["type"] = types.get(key) or artifact.get("type", {})
            _adapt_artifact(artifact, locate)
    for artifact in list_artifacts(outputs):
        _adapt_artifact(artifact, locate)
    inputs["parameterValues"] = parse_properties(
        inputs.get("parameterValues", {}), kinds, has_parameters=has_parameters
    )
    return task


def _check_outputs(task: Task) -> None:
    """Checks that emptying the outputs of a task deletes nothing else.

    The URI proves that their contents are the failed attempt's: a backend makes it for one
    task of one run, in a store. A path of this machine is not such a URI, so it must be empty.

    Raises:
        UsageError: An output is too high up, not in a store, or overlaps an input or another
            output.
    """
    artifacts = [artifact["uri"] for artifact in list_artifacts(task["outputs"])]
    outputs = [*artifacts, task["outputs"]["outputFile"]]
    inputs = [artifact["uri"] for artifact in list_artifacts(task["inputs"])]
    for number, uri in enumerate(outputs):
        _, scheme_end, path = uri.rpartition("://")
        names = [name for name in path.split("/") if name]
        has_bucket = not (scheme_end and path.startswith("/"))
        others = (*inputs, *outputs[:number], *outputs[number + 1 :])
        overlaps = any(_is_below(uri, other) or _is_below(other, uri) for other in others)
        # Backends put folders of run and task between the root's bucket and the output.
        is_deep = has_bucket and len(names) >= 3 and {".", ".."}.isdisjoint(names)
        is_in_store = number == len(artifacts) or uri.startswith(tuple(MOUNTS))
        if overlaps or not is_deep or not (is_in_store or not storage.list_everything(uri)):
            raise UsageError(
                f"The output {uri!r} cannot be emptied before the task starts: it is too high up, "
                "has files but is not in a store, or overlaps an input or another output.",
                "Let the compiled pipeline pass the URI that Kubeflow or Vertex made.",
            )


def _is_below(uri: str, folder: str) -> bool:
    return f"{uri.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


def _parse_spec(text: str) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Returns the types in a ComponentInputsSpec by name: of parameters, and of artifacts."""
    try:
        spec = json.loads(text or "{}")
        parameters, artifacts = (spec.get(part, {}).items() for part in ("parameters", "artifacts"))
        kinds = {name: str(each.get("parameterType", "")) for name, each in parameters}
        return kinds, {name: each.get("artifactType") for name, each in artifacts}
    except (ValueError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"This is not a ComponentInputsSpec: {error!r}.", "Compile the pipeline again."
        ) from error


def is_in_gcs(text: str) -> bool:
    """Tells whether all artifacts of an ExecutorInput are in gs://."""
    task = _load(text)
    both = (*list_artifacts(task["inputs"]), *list_artifacts(task["outputs"]))
    return all(artifact["uri"].startswith("gs://") for artifact in both)


def _load(text: str) -> Task:
    try:
        task: Task = json.loads(text)
        task.setdefault("inputs", {})
        _ = task["outputs"]["outputFile"]
        _ = [artifact["uri"] for artifact in list_artifacts(task["inputs"])]
        _ = [(artifact["uri"], artifact["type"]) for artifact in list_artifacts(task["outputs"])]
        _ = task["inputs"].get("parameterValues", {}).items()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"This is not an ExecutorInput of Kubeflow Pipelines: {error!r}.",
            "Let the compiled pipeline pass it: its argument is {{$}}.",
        ) from error
    return task


def list_artifacts(part: TaskInputs | TaskOutputs) -> Iterator[ArtifactEntry]:
    """Yields the artifacts among the inputs or the outputs of a task."""
    for found in part.get("artifacts", {}).values():
        yield from found.get("artifacts", ())


def find_class_path(kind: Mapping[str, str]) -> str | None:
    """Returns the path of an artifact type's class; None when it is not a TFX artifact.

    Args:
        kind: ArtifactTypeSchema: `schemaTitle`, or `instanceSchema` with a title in YAML.
    """
    title = kind.get("schemaTitle") or ""
    if "instanceSchema" in kind:
        title = (yaml.safe_load(kind["instanceSchema"]) or {}).get("title", "")
    if title in SYSTEM_ARTIFACTS:
        return str(name_utils.get_full_name(SYSTEM_ARTIFACTS[title]))
    path = compiler_utils.TITLE_TO_CLASS_PATH.get(title, title)
    try:
        found = import_utils.import_class_by_path(path)
    except (ImportError, ValueError):
        return None
    return path if isinstance(found, type) and issubclass(found, Artifact) else None


def _adapt_artifact(artifact: ArtifactEntry, locate: Locate) -> None:
    artifact["uri"] = locate(artifact["uri"])
    if path := find_class_path(artifact["type"]):
        artifact["type"] = {"schemaTitle": path}


def clear_outputs(task: Task) -> None:
    """Empties the places of a task's outputs: a retry gets those of the failed attempt.

    It makes local folders, as TFX does, and leaves files to the executor. A file that the driver of
    an ExampleGen wrote stays, because TFX takes properties of the task from it.
    """
    path = task["outputs"]["outputFile"]
    if not _is_of_driver(path):
        storage.delete_file(path)
    for artifact in list_artifacts(task["outputs"]):
        storage.delete(artifact["uri"])
        storage.make_folder(artifact["uri"])


def _is_of_driver(path: str) -> bool:
    """Tells whether TFX's driver of file-based ExampleGens on Vertex writes such a file."""
    try:
        written = json.loads(storage.read_bytes(path))
        return FINGERPRINT_PROPERTY_NAME in written.get("parameterValues", {})
    except (*storage.UNUSABLE, ValueError, AttributeError, TypeError):
        return False  # an unreadable file is reported when it is deleted


def restore_output(text: str, given: Task, task: Task) -> str:
    """Returns an ExecutorOutput with the URIs that the backend knows.

    Args:
        text: ExecutorOutput as JSON, from the executor.
        given: The ExecutorInput as the backend passed it.
        task: The same, as `parse_input` returned it.
    """
    output: TaskOutputs = json.loads(text)
    uris = {
        here["uri"]: there["uri"]
        for key in task["outputs"]["artifacts"]
        for here, there in zip(
            task["outputs"]["artifacts"][key]["artifacts"],
            given["outputs"]["artifacts"][key]["artifacts"],
            strict=True,
        )
    }
    # The UI shows their metadata among the numbers, so the version of TFX is left out.
    shown = {
        each["uri"]
        for each in list_artifacts(task["outputs"])
        if each["type"].get("schemaTitle") in _SHOWN
    }
    for artifact in list_artifacts(output):
        place = next((uri for uri in uris if _is_below(artifact["uri"], uri)), None)
        if place in shown:
            artifact.get("metadata", {}).pop("tfx_version", None)
        if place is not None:
            artifact["uri"] = uris[place] + artifact["uri"].removeprefix(place)
        for name, value in artifact.get("metadata", {}).items():
            if isinstance(value, str):
                artifact["metadata"][name] = name_uris(value)
    return json.dumps(output)
