"""One run of a component: KFP's ExecutorInput as values, and its ExecutorOutput."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from darkroom import storage
from darkroom.dataset.named import find_named
from darkroom.errors import UsageError
from darkroom.kfp.executor_input import parse_executor_input
from darkroom.steps.pages import encode_outputs
from darkroom.steps.places import (
    FINGERPRINT_KEY,
    LOCATION_KEY,
    check_inputs,
    find_artifact_place,
)
from darkroom.steps.step import Made, Step
from darkroom.storage.uris import find_remote

# Of a parameter that the SDK puts into a text, a list or a table: the task gets it twice.
_SDK_PREFIX = "pipelinechannel--"


@dataclass
class ArtifactPlace:
    """An artifact of a run.

    Attributes:
        uri: Its URI as KFP knows it.
        metadata: Numbers and texts by name, and the matrix of a classifier.
    """

    uri: str
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Where its files are: a folder of KFP's launcher, or on Vertex the URI."""
        return find_artifact_place(self.uri)

    @property
    def remote(self) -> str:
        """Its URI for our own clients."""
        return find_remote(self.uri)

    def write(self, data: bytes) -> None:
        """Makes the artifact a file with this content."""
        storage.make_folder(os.path.dirname(self.path))
        storage.write_bytes(self.path, data)

    def describe(self, values: Mapping[str, Any]) -> None:
        """Adds metadata. Values that KFP cannot store are left out: None and not finite ones."""
        self.metadata |= {
            name: value
            for name, value in values.items()
            if value is not None and not (isinstance(value, float) and not math.isfinite(value))
        }

    def write_facts(self, values: Mapping[str, Any]) -> None:
        """Adds metadata, which a UI shows, and writes it into the file of the artifact."""
        self.describe(values)
        self.write((json.dumps(self.metadata, indent=2) + "\n").encode())


@dataclass
class Execution:
    """One run of a component.

    Attributes:
        parameters: All its parameters by name.
        inputs: The artifacts that it was given.
        outputs: The artifacts that it makes.
        result_files: The file of each output parameter.
        output_file: The file for its ExecutorOutput.
    """

    parameters: dict[str, Any]
    inputs: dict[str, ArtifactPlace]
    outputs: dict[str, ArtifactPlace]
    result_files: dict[str, str]
    output_file: str

    def check_inputs(self) -> None:
        """Checks that each input has files.

        Raises:
            StorageError: One has none.
        """
        check_inputs((each.uri, each.path) for each in self.inputs.values())

    def find_dataset(self, name: str = "dataset") -> str:
        """Returns the place of a dataset that a task reads, and removes the parameter for it.

        Args:
            name: The name of its artifact; that of the parameter ends with `_uri`.

        Raises:
            UsageError: The task was given neither the artifact nor its place, or both.
            StorageError: Another dataset is there than the one that was named.
        """
        given, uri = self.inputs.get(name), self.parameters.pop(f"{name}_uri")
        if bool(given) == bool(uri):
            both = f"both {name} and" if uri else f"neither {name} nor"
            raise UsageError(f"The task was given {both} {name}_uri.", "Give one of them.")
        if given is None:
            return find_named(uri)
        place = str(given.metadata.get(LOCATION_KEY) or given.path)
        return find_named(place, str(given.metadata.get(FINGERPRINT_KEY, "")))

    def find_places(self, step: Step) -> dict[str, str]:
        """Returns where the inputs and outputs of a step are, and makes folders for its files."""
        places = {}
        for each in step.inputs:
            if f"{each.name}_uri" in self.parameters:
                places[each.name] = self.find_dataset(each.name)
            elif each.name in self.inputs:
                places[each.name] = self.inputs[each.name].path
        for each in step.outputs:
            path = self.outputs[each.name].path
            places[each.name] = each.find_path(path)
            if places[each.name] != path:
                storage.make_folder(path)
        return places

    def write_output(self, step: Step, made: Made) -> None:
        """Writes the outputs that are one file, the output parameters, and what KFP records."""
        files = encode_outputs(step, made)
        for each in step.outputs:
            output = self.outputs[each.name]
            if each.kind.endswith("Metrics"):
                output.write_facts(made.facts.get(each.name, made.numbers))
            else:
                output.describe(made.facts.get(each.name, {}))
            if each.name in files:
                output.write(files[each.name])
        known = {**made.numbers, "passed": made.error is None, **made.results}
        for result in step.results:
            value = known[result.name]
            text = value if isinstance(value, str) else json.dumps(value)
            _write_file(self.result_files[result.name], text)
        artifacts = {
            name: {"artifacts": [{"name": name, "uri": each.uri, "metadata": each.metadata}]}
            for name, each in self.outputs.items()
        }
        _write_file(self.output_file, json.dumps({"artifacts": artifacts}))


def _write_file(path: str, text: str) -> None:
    storage.make_folder(os.path.dirname(path))
    storage.write_bytes(path, text.encode())


def parse_execution(text: str, step: Step) -> Execution:
    """Reads an ExecutorInput.

    Args:
        text: It as JSON.
        step: The component.

    Raises:
        UsageError: It is not one, or not one of this component, or a parameter has a wrong value.
    """
    task = parse_executor_input(text)
    inputs, outputs = task["inputs"], task["outputs"]
    files = {name: each["outputFile"] for name, each in outputs.get("parameters", {}).items()}
    execution = Execution(
        parse_parameters(inputs["parameterValues"], step),
        _read_artifacts(inputs),
        _read_artifacts(outputs),
        files,
        outputs["outputFile"],
    )
    # A file of another version may have other inputs.
    needed = {each.name for each in step.inputs if not each.optional}
    needed |= {each.name for each in step.outputs}
    needed |= {each.name for each in step.results}
    found = {*execution.inputs, *execution.outputs, *execution.result_files}
    if missing := sorted(needed - found):
        raise UsageError(
            f"{step.name} of this version has {', '.join(missing)}, which the task lacks.",
            "Use the image of the version of darkroom that the component is from.",
        )
    step.check_values(execution.parameters)
    return execution


def _read_artifacts(part: Mapping[str, Any]) -> dict[str, ArtifactPlace]:
    return {
        name: ArtifactPlace(first["uri"], dict(first.get("metadata", {})))
        for name, each in part["artifacts"].items()
        for first in each.get("artifacts", ())[:1]
    }


def parse_parameters(values: Mapping[str, Any], step: Step) -> dict[str, Any]:
    """Returns all parameters of a component, with the defaults of those that are not given.

    Raises:
        UsageError: One is unknown, missing, or of another kind.
    """
    known = {each.name: each for each in step.parameters}
    if unknown := sorted(n for n in set(values) - set(known) if not n.startswith(_SDK_PREFIX)):
        raise UsageError(
            f"{step.name} of this version has no parameter {unknown[0]!r}.",
            "Use the image of the version of darkroom that the component is from.",
        )
    put_in = [value for name, value in values.items() if name.startswith(_SDK_PREFIX)]
    return {name: each.read(values.get(name), put_in) for name, each in known.items()}
