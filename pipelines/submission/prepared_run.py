"""A compiled pipeline with the parameters of one run, to submit."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from darkroom.errors import UsageError
from darkroom.options.pipeline import OWN_PIPELINE

_HINT = "Give the file that `darkroom compile -o FILE` wrote."

Scalar = str | int | float


@dataclass(frozen=True)
class PreparedRun:
    """A compiled pipeline with the parameters of one run.

    Attributes:
        documents: As in the compiled file: the pipeline spec, and the platform spec if there is
            one, for Kubeflow; the job spec for Vertex.
        root: Folder of the artifacts; the one in the file when None.
        parameters: Run-time parameters by name; the others keep the values of the file.
        notes: Tasks that cannot use the cache, and why.
    """

    documents: Sequence[Mapping[str, Any]]
    root: str | None = None
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Checks that the pipeline takes the parameters.

        Raises:
            UsageError: The documents are not a pipeline, or it does not take one of the parameters.
        """
        if unknown := sorted(set(self.parameters) - set(self.definitions)):
            named = ",".join([unknown[0], *self.choices])
            raise UsageError(
                f"{unknown[0]} is not a run-time parameter of the file.",
                f"Compile it again with another value, or with --set parameters={named}: then each "
                "run may change it.",
            )

    @property
    def spec(self) -> Mapping[str, Any]:
        """The pipeline spec.

        Raises:
            UsageError: The documents are not a pipeline.
        """
        spec = _find_spec(self.documents)
        if spec is None:
            raise UsageError("This is not a compiled pipeline.", _HINT)
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
    def choices(self) -> list[str]:
        """Names of the run-time parameters but the fingerprints, which each file has."""
        return sorted(name for name in self.definitions if not name.endswith("_fingerprint"))

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
        """Returns the input parameters of a task by the name that they have there."""
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
        """Folders where volumes are mounted in the containers."""
        kubernetes = self.documents[1]["platforms"]["kubernetes"] if self.documents[1:] else {}
        executors = kubernetes.get("deploymentSpec", {}).get("executors", {})
        mounts = [mount for each in executors.values() for mount in each.get("pvcMount", ())]
        return {mount["mountPath"] for mount in mounts}

    @property
    def is_own(self) -> bool:
        """Whether it is a user's own pipeline, without darkroom's parameters."""
        executors = self.spec["deploymentSpec"]["executors"].values()
        return any(
            OWN_PIPELINE in each.get("container", {}).get("command", ()) for each in executors
        )

    @property
    def is_cached(self) -> bool:
        """Whether any task was compiled to use the cache."""
        return any(t.get("cachingOptions", {}).get("enableCache") for t in self.tasks.values())

    def cache_tasks(self, switches: Mapping[str, bool]) -> list[dict[str, Any]]:
        """Returns the documents with the cache of tasks switched on or off."""
        documents = copy.deepcopy(list(map(dict, self.documents)))
        spec = documents[0].get("pipelineSpec", documents[0])
        for name, on in switches.items():
            spec["root"]["dag"]["tasks"][name]["cachingOptions"] = {"enableCache": on}
        return documents

    def write(self, path: str) -> None:
        """Writes the documents for a client that reads a file, as YAML in ASCII."""
        import yaml

        # Not JSON: both clients read YAML, where a number like JSON's 1e-05 is text.
        with open(path, "w", encoding="ascii") as file:
            dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
            yaml.dump_all(self.documents, file, dumper)


def _find_spec(documents: Sequence[Any]) -> Mapping[str, Any] | None:
    """Returns the pipeline spec, if it has the parts that a submission reads."""
    first = documents[0] if documents else None
    try:
        spec: Mapping[str, Any] = first.get("pipelineSpec", first)  # type: ignore[union-attr]
        tasks, executors = spec["root"]["dag"]["tasks"], spec["deploymentSpec"]["executors"]
        parts = (*tasks.values(), *executors.values())
        is_named = isinstance(spec["pipelineInfo"]["name"], str)
    except (AttributeError, KeyError, TypeError):
        return None
    return spec if is_named and all(isinstance(part, Mapping) for part in parts) else None


def read_documents(path: str) -> list[dict[str, Any]]:
    """Reads the documents of a compiled file, YAML or JSON.

    Raises:
        UsageError: The file is not a compiled pipeline.
        OSError: The file cannot be read.
    """
    import yaml

    from darkroom import storage

    documents: list[dict[str, Any]] = []
    with contextlib.suppress(ValueError, yaml.YAMLError, RecursionError):
        text = storage.read_bytes(path).decode()
        try:
            documents = [json.loads(text)]
        except ValueError:
            loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
            documents = list(yaml.load_all(text, loader))
    if _find_spec(documents) is None:
        raise UsageError(f"{path} is not a compiled pipeline.", _HINT)
    return documents
