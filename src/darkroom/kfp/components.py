"""The components for pipelines of Kubeflow and Vertex: KFP's container components, made by kfp."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any, Optional

from kfp import dsl

from darkroom.errors import UsageError
from darkroom.kfp.interface import Artifact, Interface, Parameter
from darkroom.kfp.interfaces import find_interface
from darkroom.version import __version__

# Of the images that the components run in.
IMAGE_VARIABLE, CORE_IMAGE_VARIABLE = "DARKROOM_IMAGE", "DARKROOM_CORE_IMAGE"
DEFAULT_IMAGE = f"darkroom:{__version__}"


def make_component(name: str, image: str | None = None) -> Any:
    """Returns a component.

    Args:
        name: Its name, as in "convert_images".
        image: The container image with darkroom; from the environment if None: DARKROOM_CORE_IMAGE
            for a component that needs no TensorFlow, DARKROOM_IMAGE for all, else what `make image`
            builds.

    Raises:
        UsageError: There is no such component, or the name of the image is empty.
    """
    interface = find_interface(name)
    chosen = find_image(interface) if image is None else image
    if not chosen or any(map(str.isspace, chosen)):
        raise UsageError(f"image is {chosen!r}, expected the name of a container image.")
    return dsl.container_component(_make_function(interface, chosen))


def find_image(interface: Interface) -> str:
    """Returns the image of a component from the environment, or what `make image` builds."""
    variables = [] if interface.needs_tensorflow else [CORE_IMAGE_VARIABLE]
    found = (os.environ.get(each) for each in (*variables, IMAGE_VARIABLE))
    return next(filter(None, found), DEFAULT_IMAGE)


def _make_function(interface: Interface, image: str) -> Callable[..., dsl.ContainerSpec]:
    """Returns a function with the signature from which KFP reads a component."""

    def component(*_: Any) -> dsl.ContainerSpec:
        return dsl.ContainerSpec(
            image=image,
            command=["python3", "-m", "darkroom.kfp.task", interface.name],
            args=["--executor_input", dsl.PIPELINE_TASK_EXECUTOR_INPUT_PLACEHOLDER],
        )

    component.__name__ = component.__qualname__ = interface.name
    component.__doc__ = _format_docstring(interface)
    component.__signature__ = _make_signature(interface)  # type: ignore[attr-defined]
    return component


def _make_signature(interface: Interface) -> inspect.Signature:
    taken = [_make_input(each) for each in interface.inputs]
    taken += [_make_parameter(each) for each in interface.parameters]
    made = [_make_output(each) for each in interface.outputs]
    results = [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, annotation=dsl.OutputPath(each.kind)
        )
        for each in interface.results
    ]
    return inspect.Signature([*taken, *made, *results])


def _make_input(artifact: Artifact) -> inspect.Parameter:
    kind: Any = dsl.Input[getattr(dsl, artifact.kind)]
    default: Any = inspect.Parameter.empty
    if artifact.optional:
        kind, default = Optional[kind], None  # noqa: UP045  kfp looks for this form
    return inspect.Parameter(
        artifact.name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default
    )


def _make_parameter(parameter: Parameter) -> inspect.Parameter:
    default = inspect.Parameter.empty if parameter.is_required else parameter.default
    return inspect.Parameter(
        parameter.name, inspect.Parameter.KEYWORD_ONLY, annotation=parameter.kind, default=default
    )


def _make_output(artifact: Artifact) -> inspect.Parameter:
    kind = dsl.Output[getattr(dsl, artifact.kind)]
    return inspect.Parameter(artifact.name, inspect.Parameter.KEYWORD_ONLY, annotation=kind)


def _format_docstring(interface: Interface) -> str:
    """Returns a docstring from which KFP takes the descriptions."""
    taken: list[Artifact | Parameter] = [*interface.inputs, *interface.parameters]
    made: list[Artifact | Parameter] = [*interface.outputs, *interface.results]
    lines = [interface.help, "", "Args:"]
    lines += [f"    {each.name}: {each.help}" for each in taken]
    lines += ["", "Returns:"]
    lines += [f"    {each.name}: {each.help}" for each in made]
    return "\n".join(lines)
