"""KFP's ExecutorInput and ExecutorOutput, as TFX's executors need and write them.

KFP's launcher copies artifacts between the store and folders named after their URIs, but passes
only the URIs, of which TensorFlow can open gs:// alone. So the entrypoint replaces the URIs in the
input by places that TFX's executors can open, and restores the URIs in the output.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import yaml
from tfx.components.example_gen.utils import FINGERPRINT_PROPERTY_NAME
from tfx.orchestration.kubeflow.v2 import compiler_utils
from tfx.types.artifact import Artifact
from tfx.utils import import_utils, name_utils

from darkroom import storage
from darkroom.components.parameters import apply_parameters
from darkroom.components.system_artifacts import SYSTEM_ARTIFACTS
from darkroom.errors import UsageError
from darkroom.kfp.executor_input import list_artifacts, parse_executor_input
from darkroom.options.runners import LOCAL_RUNNER, parse_runner
from darkroom.steps.places import MOUNTS, check_inputs, find_mount, name_uris
from darkroom.storage.uris import find_remote

# An ExecutorInput, as `parse_executor_input` describes it.
Task = dict[str, Any]
Locate = Callable[[str], str]
_SHOWN = {str(name_utils.get_full_name(each)) for each in SYSTEM_ARTIFACTS.values()}


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
    parameters are put into the properties that they change.

    Args:
        text: ExecutorInput as JSON.
        spec_text: ComponentInputsSpec as JSON; empty without one.
        locate: Turns a URI into the place.
        has_parameters: Whether run-time parameters of darkroom's pipeline are among the properties.
            In a pipeline of a user's own, a property that has the name of one is a property.

    Raises:
        UsageError: The text is not an ExecutorInput, a parameter has a wrong value, or an output is
            in a place that must not be emptied.
    """
    task = parse_executor_input(text)
    inputs, outputs = task["inputs"], task["outputs"]
    try:
        spec = json.loads(spec_text or "{}")
        kinds = {k: each.get("parameterType") for k, each in spec.get("parameters", {}).items()}
        types = {k: each.get("artifactType") for k, each in spec.get("artifacts", {}).items()}
    except (ValueError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"This is not a ComponentInputsSpec: {error!r}.", "Compile the pipeline again."
        ) from error
    outputs["artifacts"] = {
        key: found
        for key, found in outputs["artifacts"].items()
        if all(find_class_path(artifact["type"]) for artifact in found.get("artifacts", ()))
    }
    _check_outputs(task)  # before URIs are replaced
    for key, each in inputs["artifacts"].items():
        for artifact in each.get("artifacts", ()):
            # For an output of another task, Kubeflow passes `{"instanceSchema": ""}` and no more.
            artifact["type"] = types.get(key) or artifact.get("type", {})
    for artifact in (*list_artifacts(inputs), *list_artifacts(outputs)):
        artifact["uri"] = locate(artifact["uri"])
        if path := find_class_path(artifact["type"]):
            artifact["type"] = {"schemaTitle": path}
    values = {
        name: _parse_property(name, value, kinds.get(name))
        for name, value in inputs["parameterValues"].items()
        if value is not None
    }
    inputs["parameterValues"] = apply_parameters(values) if has_parameters else values
    return task


def _parse_property(name: str, value: Any, kind: str | None) -> Any:
    """Returns a property as its ParameterSpec has it: all numbers come as floats."""
    if kind not in ("NUMBER_INTEGER", "NUMBER_DOUBLE"):
        return json.dumps(value) if isinstance(value, dict | list) else value
    try:
        number = float(value)
        whole = int(number)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(
            f"The parameter {name} is {value!r:.80}, expected a number.",
            "Give the pipeline a number.",
        ) from error
    if kind == "NUMBER_DOUBLE":
        return number
    if whole != number:
        raise UsageError(f"The parameter {name} is {value!r}, expected a whole number.")
    return whole


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


def prepare_files(given: Task, task: Task) -> None:
    """Checks that each input has files, and empties the outputs: a retry gets those of a failure.

    It makes local folders, as TFX does, and leaves files to the executor. A file that the driver of
    an ExampleGen wrote stays, because TFX takes properties of the task from it.

    Args:
        given: The ExecutorInput as the backend passed it, with the backend's URIs.
        task: The same, as `parse_input` returned it.

    Raises:
        StorageError: An input has no files.
        OSError: A store does not answer.
    """
    uris, places = (
        [artifact["uri"] for artifact in list_artifacts(each["inputs"])] for each in (given, task)
    )
    check_inputs(zip(uris, places, strict=True), " (--set cache=false)")
    path = task["outputs"]["outputFile"]
    try:
        written = json.loads(storage.read_bytes(path))
        is_of_driver = FINGERPRINT_PROPERTY_NAME in written.get("parameterValues", {})
    except (*storage.UNUSABLE, ValueError, AttributeError, TypeError):
        is_of_driver = False  # an unreadable file is reported when it is deleted
    if not is_of_driver:
        storage.delete_file(path)
    for artifact in list_artifacts(task["outputs"]):
        storage.delete(artifact["uri"])
        storage.make_folder(artifact["uri"])


def restore_output(text: str, given: Task, task: Task) -> str:
    """Returns an ExecutorOutput with the URIs that the backend knows.

    Args:
        text: ExecutorOutput as JSON, from the executor.
        given: The ExecutorInput as the backend passed it.
        task: The same, as `parse_input` returned it.
    """
    output: dict[str, Any] = {"artifacts": {}, **json.loads(text)}
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
