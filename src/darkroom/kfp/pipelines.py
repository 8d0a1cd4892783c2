"""The pipeline from a list of images to an evaluated model, of components without TFX."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kfp import dsl

from darkroom.errors import UsageError
from darkroom.kfp.components import (
    SECRETS_HINT,
    check_constants,
    check_task,
    find_container_image,
    make_quietly,
    warn_of_moving_images,
)
from darkroom.options.checks import check_known
from darkroom.options.compiled.credentials import check_credentials
from darkroom.options.pipeline import RUN_PARAMETERS
from darkroom.steps.known import STEPS
from darkroom.steps.step import REQUIRED, Parameter

PIPELINE_NAME = "darkroom-images"
# Options that the pipeline decides itself.
_OWN = frozenset({"dataset_uri", "fail", "overwrite", "run"})
# The order of the steps that take options of the pipeline; the last needs a registry.
_STAGES = ("convert_images", "validate_dataset", "train_classifier", "evaluate_classifier")
_REGISTER = "register_model"
_NO_REGISTRY = {"registry": "", "model_name": PIPELINE_NAME}
# What a webhook is told of a run.
_NAMES = {
    "pipeline": PIPELINE_NAME,
    "run": dsl.PIPELINE_JOB_NAME_PLACEHOLDER,
    "run_id": dsl.PIPELINE_JOB_ID_PLACEHOLDER,
}
# Options that people change between runs. Nothing is pushed here.
_INPUTS = tuple(name for name in RUN_PARAMETERS if name != "push_to")


def make_pipeline(
    image: str | None = None,
    *,
    core_image: str | None = None,
    cached: bool = False,
    configure: Callable[[dsl.PipelineTask], object] | None = None,
    notify: str | None = None,
    parameters: Sequence[str] = _INPUTS,
    **options: Any,
) -> Any:
    """Returns a pipeline: conversion, checks, a gate, training, evaluation.

    When the dataset does not pass its checks, the report is kept, the gate fails, and nothing is
    trained. With a `registry`, a model that passes its evaluation is registered, as `model_name`.

    Args:
        image: Container image of the components; see `make_component`.
        core_image: Image of those that need no TensorFlow; `image` if None.
        cached: Whether the conversion is taken from the cache; an update never is. KFP compares
            parameters and not files, so each run then needs a `source_fingerprint`.
        configure: Called with each task, which it may change: resources, environment, Secrets.
        notify: URL of a webhook that is told how each run ends, and why the gate stops one. The
            empty text takes the environment variable DARKROOM_WEBHOOK of `notify` and
            `validation-gate`, which `configure` gives them from a Secret.
        parameters: Which options are inputs of the pipeline, so that each run can change them.
            `data` is one, too, where it is not given here, and `source_fingerprint` with `cached`.
        **options: Parameters of the components, by name. Of an input, this is the default.

    Raises:
        UsageError: An option is unknown, has a wrong value or a credential, or is a path that no
            container sees; or `parameters` has one that a run cannot change.
    """
    known = _list_parameters()
    check_credentials(options, SECRETS_HINT)  # before a message shows a value
    # Lists of options are tuples, which KFP does not know.
    options = {k: list(v) if isinstance(v, tuple) else v for k, v in options.items()}
    options = _NO_REGISTRY | options
    check_known(options, sorted(known), "The pipeline has no option")
    for name, value in options.items():
        known[name].parse(value)
    stages = (*_STAGES, _REGISTER) if options["registry"] else _STAGES
    for stage in stages:
        check_constants(STEPS[stage], _pick(options, stage))
    if cached:
        parameters = (*parameters, "source_fingerprint")
    elif "source_fingerprint" in parameters:
        raise UsageError(
            "parameters has 'source_fingerprint', and no cache would look at it.",
            "Give cached=True, or leave it out.",
        )
    inputs = _choose_inputs(parameters, known, options)
    names = {each.name for each in inputs}
    constants = {k: v for k, v in options.items() if k not in names and v is not None}
    components = _make_components(image, core_image, ("validation_gate", "notify", *stages))
    told = {} if notify is None else {"url": notify, **_NAMES}

    def pipeline(*values: Any) -> None:
        given = dict(zip((each.name for each in inputs), values, strict=True))
        handler, tasks = contextlib.nullcontext(), []
        if told:
            tasks = [components["notify"](**told).set_caching_options(False)]
            handler = dsl.ExitHandler(tasks[0], name="all")
        with handler:
            tasks += _connect(components, {**constants, **given}, cached, told)
        for task in tasks:
            if configure is not None:
                configure(task)
            check_task(task)

    pipeline.__name__ = "pipeline"
    signature = [_make_input(each, options) for each in inputs]
    pipeline.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    described = "From a list of images to verified TFRecords and an evaluated model."
    return dsl.pipeline(name=PIPELINE_NAME, description=described)(pipeline)


def _make_components(
    image: str | None, core_image: str | None, names: Sequence[str]
) -> dict[str, Any]:
    """Returns the components with their images, by name; a warning of an image comes once."""
    images = {}
    for each in map(STEPS.__getitem__, names):
        named = image if each.needs_tensorflow else core_image or image
        images[each.name] = find_container_image(each) if named is None else named
    made = {name: make_quietly(name, found) for name, found in images.items()}
    warn_of_moving_images(images.values())
    return made


def _list_parameters() -> dict[str, Parameter]:
    """Returns the options of the pipeline by name; two stages share the seed, and judge rejects."""
    found: dict[str, Parameter] = {}
    for stage in (*_STAGES, _REGISTER):
        for each in STEPS[stage].parameters:
            if each.name not in _OWN:
                found.setdefault(each.name, each)
    return found


def _choose_inputs(
    names: Sequence[str], known: Mapping[str, Parameter], options: Mapping[str, Any]
) -> list[Parameter]:
    """Returns the inputs of the pipeline, in the order of its stages.

    Args:
        names: Options that each run may change.
        known: All options by name.
        options: Values that are given now. What must be given and is not, is an input as well.

    Raises:
        UsageError: A run cannot change one of the options.
    """
    possible = [name for name, each in known.items() if each.runtime]
    if wrong := [name for name in names if name not in possible]:
        raise UsageError(
            f"parameters has {wrong[0]!r}, which a run cannot change.",
            f"Name some of {', '.join(sorted(possible))}.",
        )
    needed = {name for name, each in known.items() if each.default is REQUIRED} - options.keys()
    return [known[name] for name in possible if name in {*names, *needed}]


def _make_input(parameter: Parameter, options: Mapping[str, Any]) -> inspect.Parameter:
    """Returns an input, as kfp reads it from the signature; its default is the value given now.

    It is keyword-only, so that one with a default may be before one without. kfp itself passes the
    values by their order.
    """
    default = options.get(parameter.name, parameter.default)
    if default is REQUIRED:
        default = inspect.Parameter.empty
    elif default is None:
        default = parameter.blank
    return inspect.Parameter(
        parameter.name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=parameter.kind,
        default=default,
    )


def _connect(
    components: Mapping[str, Any], values: Mapping[str, Any], cached: bool, told: Mapping[str, str]
) -> list[dsl.PipelineTask]:
    """Makes the tasks, and returns them."""

    def add(name: str, **given: Any) -> dsl.PipelineTask:
        return components[name](**{**_pick(values, name), **given})

    # The checks judge the rejects, and keep a report of them.
    converted = add("convert_images", max_rejects=1.0)
    if not cached:
        converted.set_caching_options(False)
    dataset = converted.outputs["dataset"]
    judged = add("validate_dataset", dataset=dataset, fail=False)
    # KFP keeps nothing of a task that fails, so the gate is another one than the judge.
    gate = add("validation_gate", report=judged.outputs["validation_report"], **told)
    trained = add("train_classifier", dataset=dataset).after(gate)
    model = trained.outputs["trained_model"]
    evaluated = add("evaluate_classifier", model=model, dataset=dataset)
    tasks = [converted, judged, gate, trained, evaluated]
    if _REGISTER in components:
        # Its page is there when the model is good enough.
        page, run = evaluated.outputs["evaluation_page"], dsl.PIPELINE_JOB_ID_PLACEHOLDER
        tasks.append(add(_REGISTER, model=model, page=page, run=run))
    return tasks


def _pick(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns the values of the options of a step."""
    known = STEPS[name].parameters
    return {each.name: values[each.name] for each in known if each.name in values}
