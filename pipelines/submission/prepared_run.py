"""A compiled pipeline and what one run of it is told: what a client of a service submits."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from darkroom.errors import UsageError

_HINT = "Give what `darkroom compile -o FILE` wrote."

Scalar = str | int | float


@dataclass(frozen=True)
class PreparedRun:
    """A compiled pipeline and what one run of it is told.

    Attributes:
        documents: As in the compiled file: the pipeline spec or Vertex's job spec, and what
            Kubernetes is to know beside it.
        root: Folder of the artifacts; the one in the file when None.
        parameters: Run-time parameters by name; the others keep the values of the file.
        notes: What will not come from the cache, and why.
    """

    documents: Sequence[Mapping[str, Any]]
    root: str | None = None
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Checks that the pipeline takes the parameters.

        Raises:
            UsageError: It is no pipeline, or does not take one of them.
        """
        if unknown := sorted(set(self.parameters) - set(self.definitions)):
            raise UsageError(
                f"The compiled pipeline takes no {unknown[0]!r} when it is submitted.",
                f"It takes {', '.join(sorted(self.definitions))}; for the rest, compile anew.",
            )

    @property
    def spec(self) -> Mapping[str, Any]:
        """The pipeline spec.

        Raises:
            UsageError: There is none.
        """
        spec = _find_spec(self.documents)
        if spec is None:
            raise UsageError("This is no compiled pipeline.", _HINT)
        return spec

    @property
    def name(self) -> str:
        """Name of the pipeline."""
        return str(self.spec["pipelineInfo"]["name"])

    @property
    def definitions(self) -> Mapping[str, Any]:
        """Definitions of the run-time parameters by name."""
        found: Mapping[str, Any] = self.spec["root"].get("inputDefinitions", {}).get("parameters")
        return found or {}

    @property
    def values(self) -> dict[str, Scalar]:
        """Values of the run-time parameters by name, those of the file included."""
        defaults = {
            name: definition["defaultValue"]
            for name, definition in self.definitions.items()
            if "defaultValue" in definition
        }
        return {**defaults, **self.parameters}

    def read_inputs(self, task: str) -> dict[str, Scalar]:
        """Returns what a task will be given besides artifacts, by the name that it has there."""
        found = {}
        for name, source in self.tasks[task].get("inputs", {}).get("parameters", {}).items():
            if parameter := source.get("componentInputParameter"):
                found[name] = self.values[parameter]
            else:
                found[name] = source["runtimeValue"]["constant"]
        return found

    @property
    def tasks(self) -> Mapping[str, Any]:
        """Tasks by name."""
        found: Mapping[str, Any] = self.spec["root"]["dag"]["tasks"]
        return found

    @property
    def volumes(self) -> set[str]:
        """Folders where volumes are mounted in its containers."""
        kubernetes = self.documents[1]["platforms"]["kubernetes"] if self.documents[1:] else {}
        executors = kubernetes.get("deploymentSpec", {}).get("executors", {})
        mounts = [mount for each in executors.values() for mount in each.get("pvcMount", ())]
        return {mount["mountPath"] for mount in mounts}

    @property
    def is_cached(self) -> bool:
        """Whether it was compiled to take anything from earlier runs."""
        return any(t.get("cachingOptions", {}).get("enableCache") for t in self.tasks.values())

    def cache_tasks(self, switches: Mapping[str, bool]) -> list[dict[str, Any]]:
        """Returns the documents with the cache of tasks switched on or off."""
        documents = copy.deepcopy(list(map(dict, self.documents)))
        spec = documents[0].get("pipelineSpec", documents[0])
        for name, on in switches.items():
            spec["root"]["dag"]["tasks"][name]["cachingOptions"] = {"enableCache": on}
        return documents

    def write(self, path: str) -> None:
        """Writes the documents for a client that reads a file."""
        with open(path, "w", encoding="utf-8") as file:
            # JSON is YAML, too.
            file.write("\n---\n".join(json.dumps(document) for document in self.documents))


def _find_spec(documents: Sequence[Any]) -> Mapping[str, Any] | None:
    first = documents[0] if documents else None
    spec = first.get("pipelineSpec", first) if isinstance(first, Mapping) else None
    return spec if _is_pipeline(spec) else None


def _is_pipeline(spec: Any) -> TypeGuard[Mapping[str, Any]]:
    """Tells whether the parts of a pipeline spec are there that a submission reads."""
    try:
        tasks, executors = spec["root"]["dag"]["tasks"], spec["deploymentSpec"]["executors"]
        parts = (spec["pipelineInfo"]["name"], *tasks.values(), *executors.values())
    except (AttributeError, KeyError, TypeError):
        return False
    return isinstance(parts[0], str) and all(isinstance(part, Mapping) for part in parts[1:])


def read_documents(path: str) -> list[Any]:
    """Reads the documents of a compiled file.

    Raises:
        UsageError: It is none.
        OSError: It cannot be read.
    """
    from darkroom import storage

    try:
        documents = parse_documents(storage.read_bytes(path).decode())
    except ValueError:
        documents = []
    if _find_spec(documents) is None:
        raise UsageError(f"{path} is no compiled pipeline.", _HINT)
    return documents


def parse_documents(text: str) -> list[Any]:
    """Returns the documents of a compiled file's text, YAML or JSON.

    Raises:
        ValueError: It is neither.
    """
    import yaml

    try:
        return list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as error:
        raise ValueError("this is neither YAML nor JSON") from error
