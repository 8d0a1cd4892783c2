"""Runs a step of `darkroom.steps` on the artifacts of a component."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from darkroom import storage
from darkroom.steps.pages import encode_outputs
from darkroom.steps.step import Step


class StepExecutor(base_executor.BaseExecutor):
    """Runs a step.

    Attributes:
        STEP: The step.
        NAMES: The names of inputs and outputs in the step, where the component has others.
    """

    STEP: ClassVar[Step]
    NAMES: ClassVar[Mapping[str, str]] = {}

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Runs the step, and marks its outputs with the verdict and the numbers.

        TFX deletes the outputs of a component that raises. So one that has some never fails because
        of what it found.

        Args:
            input_dict: The inputs of the component.
            output_dict: Its outputs. A page is written into its folder, and its URI becomes that of
                the file.
            exec_properties: `options`: those of the step, as JSON.

        Raises:
            DarkroomError: The step failed; or the data did not pass, and there is no output.
        """
        named = self.NAMES
        outputs = {
            named.get(name, name): artifact_utils.get_single_instance(found)
            for name, found in output_dict.items()
        }
        inputs = {named.get(name, name): found[0] for name, found in input_dict.items() if found}
        paths = {name: artifact.uri for name, artifact in inputs.items()}
        made_outputs = [each for each in self.STEP.outputs if each.name in outputs]
        paths |= {each.name: each.find_path(outputs[each.name].uri) for each in made_outputs}
        made = self.STEP.run(paths, json.loads(exec_properties["options"]))
        files = encode_outputs(self.STEP, made)
        for each in made_outputs:
            artifact = outputs[each.name]
            if each.name in files:
                artifact.uri = storage.join(artifact.uri, each.file)
                storage.write_bytes(artifact.uri, files[each.name])
                continue
            artifact.set_int_custom_property("blessed", int(made.error is None))
            for name, number in made.numbers.items():
                artifact.set_int_custom_property(name, number)
        if made.error and not outputs:
            raise made.error
