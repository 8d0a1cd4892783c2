"""Run-time parameters: fields of `PipelineConfig` that may change without compiling anew.

A compiled pipeline carries its options as execution properties, most of them JSON text. A parameter
is one value inside one of them. A compiled task gets the parameters that concern it beside its
properties, and the entrypoint lays them over those before the executor runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darkroom.dataset.splits import SplitRatios
from darkroom.errors import UsageError
from darkroom.options.conversion import ConversionOptions
from darkroom.options.manifest import ManifestOptions
from darkroom.options.training import CHECKPOINT_DIR_KEY, CONFIG_KEY, TrainingOptions
from darkroom.options.validation import ValidationOptions

MODEL_FINGERPRINT_KEY = "model_fingerprint"
_LOWER_BOUND = ("metrics_specs", 0, "metrics", 1, "threshold", "value_threshold", "lower_bound")


@dataclass(frozen=True)
class Parameter:
    """A value that a compiled pipeline takes when it is submitted.

    Attributes:
        name: Field of `PipelineConfig`.
        kind: `str`, `int` or `float`: what Kubeflow and Vertex carry unchanged.
        component: Id of the node that uses it.
        property: Execution property of that node into which it goes.
        path: Keys and places inside the property's JSON; () when it is the property itself.
        parse: From the text of a structure to values that JSON knows; None for a plain value.
        optional: Whether 0 or the empty text stands for none.
    """

    name: str
    kind: type
    component: str
    property: str
    path: tuple[str | int, ...] = ()
    parse: Callable[[str], Any] | None = None
    optional: bool = False


def _of(component: str, property_: str, *parameters: tuple[Any, ...]) -> list[Parameter]:
    return [Parameter(name, kind, component, property_, *rest) for name, kind, *rest in parameters]


def _parse_ratios(text: str) -> list[float]:
    return list(SplitRatios.parse(text).as_tuple())


def _of_training(name: str, kind: type, key: str = "", **options: Any) -> Parameter:
    path = (CONFIG_KEY, key or name)
    return Parameter(name, kind, "Trainer", "custom_config", path, **options)


PARAMETERS: tuple[Parameter, ...] = (
    *_of("ManifestGen", "source", ("data", str)),
    *_of("ManifestGen", "source_fingerprint", ("source_fingerprint", str)),
    *_of(
        "ManifestGen",
        "options",
        ("split_ratios", str, ("split_ratios",), _parse_ratios),
        ("seed", int, ("seed",)),
    ),
    *_of(
        "ImageToTFRecord",
        "options",
        ("checks", str, ("image", "checks")),
        ("resize_short_side", int, ("image", "resize_short_side"), None, True),
        ("encoding", str, ("image", "encoding")),
        ("jpeg_quality", int, ("image", "jpeg_quality")),
        ("compression", str, ("compression",)),
    ),
    *_of(
        "ImageValidator",
        "options",
        ("policies", str, ("policies",), json.loads),
        ("max_rejects", float, ("max_reject_fraction",)),
        ("min_class_images", int, ("min_class_images",)),
    ),
    _of_training("model", str),
    _of_training("weights", str, optional=True),
    _of_training("image_size", str, parse=json.loads),
    _of_training("resize", str),
    _of_training("batch_size", int),
    _of_training("epochs", int),
    _of_training("learning_rate", float),
    _of_training("augment", str),
    _of_training("early_stopping_patience", int),
    _of_training("checkpoint_steps", int),
    _of_training("strategy", str),
    _of_training("loop", str),
    _of_training("precision", str),
    _of_training("steps_per_execution", int),
    _of_training("record_cache", str, "cache"),
    _of_training("ram_budget_bytes", int),
    _of_training("seed", int),
    *_of(
        "Trainer",
        "custom_config",
        ("model_fingerprint", str, (MODEL_FINGERPRINT_KEY,)),
        ("checkpoint_dir", str, (CHECKPOINT_DIR_KEY,), None, True),
    ),
    *_of("Evaluator", "eval_config", ("min_accuracy", float, _LOWER_BOUND)),
    *_of("Pusher", "push_destination", ("push_to", str, ("filesystem", "base_directory"))),
)

NAMES = frozenset(parameter.name for parameter in PARAMETERS)


def apply_parameters(properties: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Lays run-time parameters over the execution properties of a node.

    Args:
        properties: Execution properties as compiled; structures as JSON text, or as values.
        values: Parameters of the same node by name.

    Returns:
        The properties with the parameters in them; structures that were touched as JSON text.

    Raises:
        UsageError: A name is not a parameter of this node, or a value is wrong.
    """
    result = dict(properties)
    changed = set()
    for name, value in values.items():
        parameter = _find_parameter(name, properties)
        parsed = parse_value(parameter, value)
        if parameter.path:
            tree = _load(result[parameter.property])
            _place(tree, parameter.path, parsed)
            result[parameter.property] = json.dumps(tree, sort_keys=True)
        else:
            result[parameter.property] = parsed
        changed.add((parameter.component, parameter.property))
    for component, property_ in sorted(changed):
        if check := _CHECKS.get((component, property_)):
            check(result[property_])
    return result


def parse_value(parameter: Parameter, value: Any) -> Any:
    """Returns the value as it goes into the property.

    Raises:
        UsageError: It is not of the parameter's kind, or its text cannot be parsed.
    """
    plain = _convert(parameter, value)
    if parameter.optional and not plain:
        return None
    if parameter.parse is None:
        return plain
    try:
        return parameter.parse(plain)
    except (json.JSONDecodeError, RecursionError) as error:
        raise UsageError(
            f"The parameter {parameter.name} is no JSON: {error}.",
            'Give JSON text, as in {"leakage": "warn"} or [128, 128].',
        ) from error


def encode_value(parameter: Parameter, value: Any) -> str | int | float:
    """Returns a field of `PipelineConfig` as the plain value that a pipeline carries.

    Raises:
        UsageError: It is not of the parameter's kind.
    """
    if value is None:
        return parameter.kind()  # type: ignore[no-any-return]  # '' or 0 stands for none
    try:
        if parameter.parse is json.loads and not isinstance(value, str):
            return json.dumps(value if isinstance(value, Sequence) else dict(value), sort_keys=True)
        return parameter.kind(value)  # type: ignore[no-any-return]
    except (TypeError, ValueError, OverflowError) as error:
        raise _make_error(parameter, value) from error


def _find_parameter(name: str, properties: Mapping[str, Any]) -> Parameter:
    for parameter in PARAMETERS:
        # A property that is a parameter itself need not be there a second time.
        if parameter.name == name and parameter.property in (*properties, name):
            return parameter
    known = sorted(p.name for p in PARAMETERS if p.property in properties)
    raise UsageError(f"This component takes no parameter {name!r}.", f"It takes {known}.")


def _convert(parameter: Parameter, value: Any) -> Any:
    """Returns a value as the parameter's kind; pipelines carry whole numbers as floats."""
    kind, wrong = parameter.kind, _make_error(parameter, value)
    if kind is str:
        if isinstance(value, str):
            return value
        if parameter.parse is json.loads and isinstance(value, Mapping | Sequence):
            return json.dumps(value if isinstance(value, Sequence) else dict(value))
        raise wrong
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise wrong from error
    if isinstance(value, bool) or (kind is int and not number.is_integer()):
        raise wrong
    return int(value) if isinstance(value, int) else kind(number)


def _make_error(parameter: Parameter, value: Any) -> UsageError:
    return UsageError(
        f"The parameter {parameter.name} is {value!r:.80}, expected {_KINDS[parameter.kind]}.",
        "Give the pipeline a value of this kind.",
    )


_KINDS = {str: "text", int: "a whole number", float: "a number"}


def _load(value: Any) -> Any:
    return json.loads(value if isinstance(value, str) else json.dumps(value))


def _place(tree: Any, path: tuple[str | int, ...], value: Any) -> None:
    for key in path[:-1]:
        tree = tree[key]
    tree[path[-1]] = value


def _check_accuracy(text: str) -> None:
    tree = json.loads(text)
    for key in _LOWER_BOUND:
        tree = tree[key]
    if not 0 <= tree <= 1:
        raise UsageError(f"min_accuracy is {tree!r}, expected 0 to 1.")


# What a property goes into checks its values.
_CHECKS: Mapping[tuple[str, str], Callable[[str], Any]] = {
    ("ManifestGen", "options"): ManifestOptions.from_json,
    ("ImageToTFRecord", "options"): ConversionOptions.from_json,
    ("ImageValidator", "options"): ValidationOptions.from_json,
    ("Trainer", "custom_config"): lambda text: TrainingOptions.from_dict(
        json.loads(text)[CONFIG_KEY]
    ),
    ("Evaluator", "eval_config"): _check_accuracy,
}
