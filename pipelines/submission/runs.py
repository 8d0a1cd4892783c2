"""Runs of a compiled pipeline: one that is prepared, and one that a service has accepted."""

from __future__ import annotations

import contextlib
import copy
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from darkroom import storage
from darkroom.components.parameters import PARAMETERS, apply_parameters
from darkroom.errors import TransientStorageError, UsageError
from darkroom.options.checks import encode_json
from darkroom.options.pipeline import OWN_PIPELINE

Scalar = str | int | float

SUCCEEDED = "SUCCEEDED"
_FINAL = {SUCCEEDED, "FAILED", "SKIPPED", "CANCELED", "CANCELLED", "ERROR"}
_POLL_SECONDS = 10.0
_MAX_FAILED_POLLS = 30
_HINT = "Give the file that `darkroom compile -o FILE` wrote."


@dataclass(frozen=True)
class PreparedRun:
    """A compiled pipeline with the parameters of one run, to submit.

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
        if not _is_compiled(self.documents):
            raise UsageError("This is not a compiled pipeline.", _HINT)
        if unknown := sorted(set(self.parameters) - set(self.definitions)):
            named = ",".join([unknown[0], *self.choices])
            raise UsageError(
                f"{unknown[0]} is not a run-time parameter of the file.",
                f"Compile it again with another value, or with --set parameters={named}: then each "
                "run may change it.",
            )

    @property
    def spec(self) -> Mapping[str, Any]:
        """The pipeline spec."""
        found: Mapping[str, Any] = self.documents[0].get("pipelineSpec", self.documents[0])
        return found

    @property
    def name(self) -> str:
        """Name of the pipeline."""
        return str(self.spec["pipelineInfo"]["name"])

    @property
    def tasks(self) -> Mapping[str, Any]:
        """Tasks by name."""
        found: Mapping[str, Any] = self.spec["root"]["dag"]["tasks"]
        return found

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

    def list_cached(self) -> set[str]:
        """Returns the tasks that were compiled to use the cache."""
        return {n for n, t in self.tasks.items() if t.get("cachingOptions", {}).get("enableCache")}

    def cache_tasks(self, switches: Mapping[str, bool]) -> list[dict[str, Any]]:
        """Returns the documents with the cache of tasks switched on or off."""
        documents = copy.deepcopy(list(map(dict, self.documents)))
        spec = documents[0].get("pipelineSpec", documents[0])
        for name, on in switches.items():
            spec["root"]["dag"]["tasks"][name]["cachingOptions"] = {"enableCache": on}
        return documents

    def set_properties(self, values: Mapping[str, Scalar]) -> list[dict[str, Any]]:
        """Returns the documents with values of parameters that are not inputs of the pipeline."""
        documents = copy.deepcopy(list(map(dict, self.documents)))
        tasks = documents[0].get("pipelineSpec", documents[0])["root"]["dag"]["tasks"]
        for parameter in (each for each in PARAMETERS if each.name in values):
            inputs = tasks[parameter.component]["inputs"]["parameters"]
            given, value = inputs[parameter.key]["runtimeValue"], values[parameter.name]
            if parameter.path:
                tree = json.loads(given["constant"])
                table, key = parameter.find(tree)
                table[key] = value
                value = encode_json(tree)
            given["constant"] = value
        return documents

    def read_properties(self, task: str) -> dict[str, Any]:
        """Returns the execution properties of a task, as its entrypoint will compute them.

        Raises:
            UsageError: A parameter is wrong.
        """
        values = {name: each.get("defaultValue") for name, each in self.definitions.items()}
        values.update(self.parameters)
        given = self.tasks[task].get("inputs", {}).get("parameters", {})
        return apply_parameters(
            {
                name: values[source["componentInputParameter"]]
                if "componentInputParameter" in source
                else source["runtimeValue"]["constant"]
                for name, source in given.items()
            }
        )

    def write(self, path: str) -> None:
        """Writes the documents for a client that reads a file, as YAML in ASCII."""
        import yaml

        # Not JSON: both clients read YAML, where a number like JSON's 1e-05 is text.
        with open(path, "w", encoding="ascii") as file:
            dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
            yaml.dump_all(self.documents, file, dumper)


def _is_compiled(documents: Sequence[Any]) -> bool:
    """Tells whether documents have the parts of a pipeline that a submission reads."""
    try:
        spec = documents[0].get("pipelineSpec", documents[0])
        tasks, executors = spec["root"]["dag"]["tasks"], spec["deploymentSpec"]["executors"]
        parts = (*tasks.values(), *executors.values())
        is_named = isinstance(spec["pipelineInfo"]["name"], str)
    except (AttributeError, IndexError, KeyError, TypeError):
        return False
    return is_named and all(isinstance(part, Mapping) for part in parts)


def read_documents(path: str) -> list[dict[str, Any]]:
    """Reads the documents of a compiled file, YAML or JSON.

    Raises:
        UsageError: The file is not a compiled pipeline.
        OSError: The file cannot be read.
    """
    import yaml

    documents: list[dict[str, Any]] = []
    with contextlib.suppress(ValueError, yaml.YAMLError, RecursionError):
        text = storage.read_bytes(path).decode()
        try:
            documents = [json.loads(text)]
        except ValueError:
            loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
            documents = list(yaml.load_all(text, loader))
    if not _is_compiled(documents):
        raise UsageError(f"{path} is not a compiled pipeline.", _HINT)
    return documents


@dataclass(frozen=True)
class RunStatus:
    """The state of a run.

    Attributes:
        state: `PENDING`, `RUNNING`, `SUCCEEDED`, `FAILED`, ... as the service calls it.
        errors: The service's message about each failed task, by name.
    """

    state: str
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_final(self) -> bool:
        """Whether the run has ended."""
        return self.state in _FINAL


class SubmittedRun(Protocol):
    """A run that a service accepted."""

    @property
    def id(self) -> str:
        """The service's name for the run."""

    @property
    def url(self) -> str:
        """Page that shows the run."""

    def read_status(self) -> RunStatus:
        """Asks the service for the state of the run.

        Raises:
            TransientStorageError: The service does not answer at the moment.
            DarkroomError: The service refuses to answer.
        """


def wait_for_end(run: SubmittedRun, poll_seconds: float = _POLL_SECONDS) -> RunStatus:
    """Waits until a run has ended.

    Raises:
        TransientStorageError: The service did not answer 30 times in a row.
        DarkroomError: The service refuses to answer.
    """
    num_failed = 0
    while True:
        try:
            status = run.read_status()
            num_failed = 0
            if status.is_final:
                return status
        except TransientStorageError:
            num_failed += 1
            if num_failed == _MAX_FAILED_POLLS:
                raise
        time.sleep(poll_seconds)
