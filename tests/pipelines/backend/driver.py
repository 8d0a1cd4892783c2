"""What Kubeflow's driver makes of a task: its inputs and outputs, and the key of its cache.

After `driver.go`, `resolve.go` and `cacheutils/cache.go` of kubeflow/pipelines, backend/src/v2.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .release import Release

LOGS = "executor-logs"
RUN = "run-1"
SALT = "5a17"  # a UUID on a cluster, another one for each task
_RUN_ID = "{{$.pipeline_job_uuid}}"
_LARGEST_WHOLE = 1e21  # from there Go prints a double with an exponent
FindArtifact = Callable[[str, str], dict[str, Any]]
FindParameter = Callable[[str, str], Any]


def _find_no_parameter(task: str, key: str) -> Any:
    raise AssertionError(f"{task} has no output parameter {key}")


@dataclass(frozen=True)
class Task:
    """A task of a compiled pipeline.

    Attributes:
        name: Its name.
        spec: The task in the DAG: where its inputs come from.
        component: Which inputs and outputs it has.
        container: Image, command and arguments; empty for an Importer, which Kubeflow runs itself.
    """

    name: str
    spec: Mapping[str, Any]
    component: Mapping[str, Any]
    container: Mapping[str, Any]

    @property
    def command(self) -> list[str]:
        """The command with its arguments, placeholders not replaced."""
        return [*self.container.get("command", ()), *self.container.get("args", ())]

    @property
    def shown_name(self) -> str:
        """The name that people see."""
        return str(self.spec["taskInfo"]["name"])

    @property
    def is_cached(self) -> bool:
        """Whether the cache is used for it."""
        return bool(self.spec.get("cachingOptions", {}).get("enableCache", False))

    @property
    def needs(self) -> set[str]:
        """The tasks that must succeed before it starts."""
        needed = set(self.spec.get("dependentTasks", ()))
        inputs = self.spec.get("inputs", {})
        sources = [each for kind in inputs.values() for each in kind.values()]
        made = [e.get("taskOutputArtifact", e.get("taskOutputParameter")) for e in sources]
        producers = {each["producerTask"] for each in made if each}
        assert producers <= needed, "an input that no edge shows"
        return needed


def find_task(spec: Mapping[str, Any], name: str) -> Task:
    """Returns a task of a pipeline spec."""
    task = spec["root"]["dag"]["tasks"][name]
    component = spec["components"][task["componentRef"]["name"]]
    executor = spec["deploymentSpec"]["executors"][component["executorLabel"]]
    return Task(name, task, component, executor.get("container", {}))


def list_tasks(spec: Mapping[str, Any]) -> Iterator[Task]:
    """Yields the tasks, each after those that it depends on."""
    waiting = [find_task(spec, name) for name in spec["root"]["dag"]["tasks"]]
    done: set[str] = set()
    while ready := [task for task in waiting if task.needs <= done]:
        yield ready[0]
        done.add(ready[0].name)
        waiting.remove(ready[0])
    assert not waiting, "tasks wait for each other"


def find_parameters(spec: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parameters of a run by name: those that are given, and the defaults."""
    known = spec["root"].get("inputDefinitions", {}).get("parameters", {})
    defaults = {
        name: each["defaultValue"] for name, each in known.items() if "defaultValue" in each
    }
    return as_protojson({**defaults, **given})


def make_input(
    task: Task,
    parameters: Mapping[str, Any],
    find_artifact: FindArtifact,
    root: str,
    release: Release,
    run_id: str = RUN,
    find_parameter: FindParameter = _find_no_parameter,
) -> dict[str, Any]:
    """Returns the ExecutorInput that the driver hands to the launcher, with the paths of a pod.

    Args:
        task: The task.
        parameters: Parameters of the run by name.
        find_artifact: Returns an output of a task, by the task's name and the output's key.
        root: Root of the run: everything that the tasks write is below it.
        release: Release of Kubeflow Pipelines.
        run_id: What takes the place of the placeholder for the run's id.
        find_parameter: Returns an output parameter of a task, as `find_artifact` an artifact.
    """
    sources = task.spec.get("inputs", {})
    artifacts = {
        key: {"artifacts": [find_artifact(**_read_source(each))]}
        for key, each in sorted(sources.get("artifacts", {}).items())
    }
    values = {
        key: _find_value(each, parameters, run_id, find_parameter)
        for key, each in sources.get("parameters", {}).items()
    }
    inputs = {"artifacts": artifacts, "parameterValues": as_protojson(values)}
    outputs = _make_outputs(task, root, release)
    # protojson leaves out what is empty.
    return {"inputs": {key: each for key, each in inputs.items() if each}, "outputs": outputs}


def _make_outputs(task: Task, root: str, release: Release) -> dict[str, Any]:
    folder = f"{root}/{task.shown_name if release.shows_names else task.name}/{SALT}"
    definitions = task.component.get("outputDefinitions", {})
    artifacts = {
        **definitions.get("artifacts", {}),
        LOGS: {"artifactType": {"schemaTitle": "system.Artifact"}},
    }
    made = {
        key: {
            **({"name": key} if release.names_outputs else {}),
            "type": each["artifactType"],
            "uri": f"{folder}/{key}",
            **({"metadata": each["metadata"]} if each.get("metadata") else {}),
        }
        for key, each in sorted(artifacts.items())
    }
    results = {
        key: {"outputFile": f"/tmp/kfp/outputs/{key}"}
        for key in sorted(definitions.get("parameters", {}))
    }
    file = release.output_file or f"{find_local_path(folder)}/output_metadata.json"
    return {
        **({"parameters": results} if results else {}),
        "artifacts": {key: {"artifacts": [each]} for key, each in made.items()},
        "outputFile": file,
    }


def find_local_path(uri: str) -> str:
    """Returns where a pod has the content of a URI; a path is its own."""
    scheme, separator, rest = uri.partition("://")
    if not separator:
        assert uri.startswith("/"), f"failed to generate local path for URI {uri}"
        return uri
    folder = {"minio": "minio", "s3": "s3", "gs": "gcs"}[scheme]
    return f"/{folder}/{rest}"


def _read_source(source: Mapping[str, Any]) -> dict[str, str]:
    made = source["taskOutputArtifact"]
    return {"task": made["producerTask"], "key": made["outputArtifactKey"]}


def _find_value(
    source: Mapping[str, Any],
    parameters: Mapping[str, Any],
    run_id: str,
    find_parameter: FindParameter,
) -> Any:
    if made := source.get("taskOutputParameter"):
        return find_parameter(made["producerTask"], made["outputParameterKey"])
    if parameter := source.get("componentInputParameter"):
        return parameters[parameter]
    # The driver puts the run's id where a constant is this text and no more.
    constant = source["runtimeValue"]["constant"]
    return run_id if constant == _RUN_ID else constant


def as_protojson(value: Any) -> Any:
    """Returns a value as Go prints a Struct: keys in order, whole numbers without a fraction."""
    if isinstance(value, Mapping):
        return {key: as_protojson(each) for key, each in sorted(value.items())}
    if isinstance(value, list):
        return [as_protojson(each) for each in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST_WHOLE:
        return int(value)
    return value


def as_recorded(metadata: Mapping[str, Any]) -> Any:
    """Returns the metadata of an artifact as ML Metadata gives them back.

    It has six digits after the point, no truth values, and lists and tables in a struct.
    """
    given_back: dict[str, Any] = {}
    for key, value in metadata.items():
        assert value is not None, "unknown/unsupported value type NullValue"
        if isinstance(value, Mapping):
            given_back[key] = {"struct": value}
        elif isinstance(value, list):
            given_back[key] = {"list": value}
        else:
            given_back[key] = value if isinstance(value, str) else round(float(value), 6)
    return as_protojson(given_back)


def make_cache_key(task: Task, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the cache compares: a task without its URIs, its inputs by their ids.

    Args:
        task: The task.
        given: Its ExecutorInput, as the driver makes it.
    """
    outputs = given["outputs"]
    types = task.component.get("outputDefinitions", {}).get("parameters", {})
    return {
        "inputArtifactNames": {
            key: {"artifactNames": [artifact["name"] for artifact in each["artifacts"]]}
            for key, each in given["inputs"].get("artifacts", {}).items()
        },
        "inputParameterValues": given["inputs"].get("parameterValues", {}),
        "outputArtifactsSpec": {
            key: {name: value for name, value in each["artifacts"][0].items() if name != "uri"}
            for key, each in outputs["artifacts"].items()
        },
        "outputParametersSpec": {
            key: types[key]["parameterType"] for key in outputs.get("parameters", {})
        },
        "containerSpec": {"image": task.container["image"], "cmdArgs": task.command},
    }


def make_fingerprint(key: Mapping[str, Any]) -> str:
    """Returns the fingerprint of a cache's key, whose empty fields protobuf's JSON leaves out."""
    full = {name: value for name, value in key.items() if value}
    text = json.dumps(full, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&":  # as Go's encoding/json does
        text = text.replace(character, f"\\u{ord(character):04x}")
    return hashlib.sha256(text.encode()).hexdigest()
