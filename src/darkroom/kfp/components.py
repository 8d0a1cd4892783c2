"""The components for pipelines of Kubeflow and Vertex: KFP's container components, made by kfp."""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Optional

from kfp import dsl
from kfp.dsl.container_component_class import ContainerComponent

from darkroom.errors import UsageError
from darkroom.options.compiled.containers import (
    SCHEMES,
    STORES,
    check_place,
    check_replaced,
    explain_idle_accelerator,
    explain_moving_image,
)
from darkroom.options.compiled.credentials import check_credentials, check_environment
from darkroom.options.targets import KUBEFLOW
from darkroom.options.training import IMAGENET
from darkroom.steps import register
from darkroom.steps.known import find_step
from darkroom.steps.step import REQUIRED, Artifact, Parameter, Step
from darkroom.version import __version__

# Of the images that the components run in.
IMAGE_VARIABLE, CORE_IMAGE_VARIABLE = "DARKROOM_IMAGE", "DARKROOM_CORE_IMAGE"
DEFAULT_IMAGE = f"darkroom:{__version__}"
_URIS = ("dataset_uri", "old_uri", "new_uri")
_READ_DIRECTLY = (*_URIS, "base", "baseline", "images")
# Files that may change under their name.
_NAMED = (*_URIS, "data", "baseline", "images")
_PLACES = {
    **SCHEMES,
    **dict.fromkeys(("label_map", "output_dir"), STORES),
    **dict.fromkeys(_READ_DIRECTLY, (*STORES, "minio")),
}
# Any absolute path may be one of a volume: those are mounted by functions of kfp-kubernetes.
_VOLUMES = ("/",)
SECRETS_HINT = (
    "Many people see compiled pipelines and logs. Give it by a Secret, as in "
    "kfp.kubernetes.use_secret_as_env, or on Vertex by the service account."
)
# The placeholder of kfp in a text for a value that only a run knows.
_PLACEHOLDER = "{{"


def make_component(name: str, image: str | None = None) -> Any:
    """Returns a component.

    Args:
        name: Its name, as in "convert_images".
        image: The container image with darkroom; from the environment if None: DARKROOM_CORE_IMAGE
            for a component that needs no TensorFlow, DARKROOM_IMAGE for all, else the one that
            `make image` builds.

    Raises:
        UsageError: There is no such component, or the name of the image is empty.
    """
    chosen = find_container_image(find_step(name)) if image is None else image
    made = make_quietly(name, chosen)
    warn_of_moving_images([chosen])
    return made


def make_quietly(name: str, image: str) -> Any:
    """Returns a component, as `make_component` does, without a warning of its image."""
    step = find_step(name)
    if not image or any(map(str.isspace, image)):
        raise UsageError(f"image is {image!r}, expected the name of a container image.")
    made = dsl.container_component(_make_function(step, image))
    return _Component(made.component_spec, made.pipeline_func, step)


def warn_of_moving_images(images: Iterable[str]) -> None:
    """Warns once of each image whose name the next one may get, at the line of the caller's."""
    _warn(filter(None, map(explain_moving_image, dict.fromkeys(images))))


def _warn(texts: Iterable[str]) -> None:
    level, frame = 1, sys._getframe(0)
    # From here to the first line that is not of this package.
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("darkroom.kfp"):
        level, frame = level + 1, frame.f_back
    for text in texts:
        warnings.warn(text, stacklevel=level)


class _Component(ContainerComponent):
    """A component that checks its known parameters when a pipeline is made."""

    def __init__(self, component_spec: Any, pipeline_func: Any, step: Step) -> None:
        super().__init__(component_spec, pipeline_func)
        self._step = step

    def __call__(self, *args: Any, **kwargs: Any) -> dsl.PipelineTask:
        check_constants(self._step, kwargs)
        task = super().__call__(*args, **kwargs)
        if not _is_known_by_values(self._step, kwargs):
            task.set_caching_options(False)
        return task


def _is_known_by_values(step: Step, given: Mapping[str, Any]) -> bool:
    """Tells whether the values of a task say what it reads: KFP's cache compares nothing else.

    What a task before says of a dataset ends with its fingerprint. An update also depends on what
    is in its place, and a registry may have been down.
    """
    if given.get("update") or step is register.STEP:
        return False
    named = {name: given[name] for name in _NAMED if given.get(name)}
    return bool(given.get("source_fingerprint")) or all(
        "#" in value if isinstance(value, str) else name in _URIS and getattr(value, "task_name", 0)
        for name, value in named.items()
    )


def check_constants(step: Step, given: Mapping[str, Any]) -> None:
    """Checks those parameters of a component whose value is known when a pipeline is made.

    Args:
        step: The component.
        given: The arguments of a pipeline, by name; kfp checks the names.

    Raises:
        UsageError: A value is wrong, contains a credential or a text Kubernetes replaces, or is a
            path that no container sees.
    """
    check_credentials(given, SECRETS_HINT)  # before a message shows a value
    known = {each.name: each for each in step.parameters}
    constants = {k: v for k, v in given.items() if k in known and _is_constant(v)}
    # Values go through the arguments of two containers: KFP's driver and the task.
    check_replaced(constants, KUBEFLOW)
    values = {name: known[name].parse(value) for name, value in constants.items()}
    step.check_values(values, given.keys() - values.keys())
    for name, value in values.items():
        if name in _PLACES and value and (name, value) != ("weights", IMAGENET):
            for path in value if isinstance(value, list) else [value]:
                check_place(name, path, _PLACES[name], KUBEFLOW, _VOLUMES)


def check_task(task: dsl.PipelineTask) -> None:
    """Checks that no environment variable of a task is a credential, or arrives changed.

    It warns of a GPU that the image of the task may not be able to use.

    Raises:
        UsageError: One is or has the name of one, or has a text that Kubernetes replaces.
    """
    variables = dict(task.container_spec.env or {})
    check_credentials({f"env of {task.name}": variables}, SECRETS_HINT)
    check_environment(f"env of {task.name}", variables, SECRETS_HINT)
    check_replaced({f"env of {task.name}": variables}, KUBEFLOW)
    wanted = getattr(task.container_spec.resources, "accelerator_type", "") or ""
    if idle := explain_idle_accelerator(task.name, wanted, wanted, task.container_spec.image):
        _warn([idle])


def _is_constant(value: Any) -> bool:
    """Tells whether a value is known now: kfp has objects or placeholders for those of a run."""
    if isinstance(value, Mapping):
        return all(map(_is_constant, [*value, *value.values()]))
    if isinstance(value, list | tuple):
        return all(map(_is_constant, value))
    if isinstance(value, str):
        return _PLACEHOLDER not in value
    return value is None or isinstance(value, bool | int | float)


def find_container_image(step: Step) -> str:
    """Returns the image of a component from the environment, or that of `make image`."""
    variables = [] if step.needs_tensorflow else [CORE_IMAGE_VARIABLE]
    found = (os.environ.get(each) for each in (*variables, IMAGE_VARIABLE))
    return next(filter(None, found), DEFAULT_IMAGE)


def _make_function(step: Step, image: str) -> Callable[..., dsl.ContainerSpec]:
    """Returns a function with the signature from which KFP reads a component."""

    def component(*_: Any) -> dsl.ContainerSpec:
        return dsl.ContainerSpec(
            image=image,
            command=["python3", "-m", "darkroom.kfp.task", step.name],
            args=["--executor_input", dsl.PIPELINE_TASK_EXECUTOR_INPUT_PLACEHOLDER],
        )

    component.__name__ = component.__qualname__ = step.name
    component.__doc__ = _format_docstring(step)
    component.__signature__ = _make_signature(step)  # type: ignore[attr-defined]
    return component


def _make_signature(step: Step) -> inspect.Signature:
    """Returns inputs, parameters, outputs and output parameters, with the annotations of kfp.

    All are keyword-only, so that an input with a default may be before those without one.
    """

    def take(each: Artifact | Parameter, kind: Any, default: Any = REQUIRED) -> inspect.Parameter:
        given = inspect.Parameter.empty if default is REQUIRED else default
        by_name = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(each.name, by_name, annotation=kind, default=given)

    parts = []
    for each in step.inputs:
        kind: Any = dsl.Input[getattr(dsl, each.kind)]
        # kfp looks for this form of a type with None.
        parts.append(take(each, Optional[kind], None) if each.optional else take(each, kind))  # noqa: UP045
    parts += [
        take(each, dsl.PipelineTaskFinalStatus)
        if each.is_status
        else take(each, each.kind, each.default)
        for each in step.parameters
    ]
    parts += [take(each, dsl.Output[getattr(dsl, each.kind)]) for each in step.outputs]
    parts += [take(each, dsl.OutputPath(each.kind)) for each in step.results]
    return inspect.Signature(parts)


def _format_docstring(step: Step) -> str:
    """Returns a docstring from which KFP takes the descriptions."""
    taken: list[Artifact | Parameter] = [*step.inputs, *step.parameters]
    made: list[Artifact | Parameter] = [*step.outputs, *step.results]
    lines = [step.help, "", "Args:"]
    lines += [f"    {each.name}: {each.help}" for each in taken]
    lines += ["", "Returns:"]
    lines += [f"    {each.name}: {each.help}" for each in made]
    return "\n".join(lines)
