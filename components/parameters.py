"""Run-time parameters: options of a pipeline that may change without compiling it again.

A compiled pipeline carries its options as execution properties, most of them JSON text. A parameter
is one value inside one of them; the field of the option says that it is one. A compiled task gets
its parameters beside its properties, and the entrypoint replaces the values in the properties by
them before the executor runs.
"""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darkroom.dataset.splits import SplitRatios
from darkroom.errors import UsageError
from darkroom.options.conversion import ConversionFields, RecordOptions
from darkroom.options.fields import OptionField, list_options
from darkroom.options.manifest import ManifestOptions
from darkroom.options.pipeline import PipelineFields
from darkroom.options.source import SourceFields
from darkroom.options.training import CHECKPOINT_DIR_KEY, CONFIG_KEY, TrainingOptions
from darkroom.options.validation import ValidationFields, ValidationOptions

MODEL_FINGERPRINT_KEY = "model_fingerprint"
_ACCURACY = ("metrics_specs", 0, "metrics", 1, "per_slice_thresholds")
_BOUND = ("threshold", "value_threshold", "lower_bound")
# As pipelines/evaluation.py makes them: of the whole split, then of each class.
_LOWER_BOUNDS = {
    "min_accuracy": (*_ACCURACY, 0, *_BOUND),
    "min_recall": (*_ACCURACY, 1, *_BOUND),
}


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
        choices: The only texts that it may be; () for any.
    """

    name: str
    kind: type
    component: str
    property: str
    path: tuple[str | int, ...] = ()
    parse: Callable[[str], Any] | None = None
    optional: bool = False
    choices: tuple[str, ...] = ()


# Where the options of a stage go: classes of fields, node, property, and keys inside its JSON.
_PLACES: tuple[tuple[type, str, str, tuple[str, ...]], ...] = (
    (SourceFields, "ManifestGen", "options", ()),
    (ConversionFields, "ImageToTFRecord", "options", ()),
    (ValidationFields, "ImageValidator", "options", ()),
    (TrainingOptions, "Trainer", "custom_config", (CONFIG_KEY,)),
)
# Where those of the pipeline itself go.
_OWN_PLACES: Mapping[str, tuple[str, str, tuple[str | int, ...]]] = {
    "data": ("ManifestGen", "source", ()),
    "source_fingerprint": ("ManifestGen", "source_fingerprint", ()),
    "model_fingerprint": ("Trainer", "custom_config", (MODEL_FINGERPRINT_KEY,)),
    "checkpoint_dir": ("Trainer", "custom_config", (CHECKPOINT_DIR_KEY,)),
    **{name: ("Evaluator", "eval_config", path) for name, path in _LOWER_BOUNDS.items()},
    "baseline_model": ("Evaluator", "baseline", ()),
    "push_to": ("Pusher", "push_destination", ("filesystem", "base_directory")),
}
_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "split_ratios": lambda text: list(SplitRatios.parse(text).as_tuple())
}


def _list_parameters() -> Iterator[Parameter]:
    seen: set[tuple[str, str]] = set()
    for fields, component, property_, path in _PLACES:
        for each in list_options(fields):
            if each.option.runtime and (component, each.name) not in seen:
                seen.add((component, each.name))
                yield _make_parameter(each, component, property_, (*path, each.name))
    for each in list_options(PipelineFields):
        if each.option.runtime:
            yield _make_parameter(each, *_OWN_PLACES[each.name])


def _make_parameter(
    field: OptionField, component: str, property_: str, path: tuple[str | int, ...]
) -> Parameter:
    kind, parse = {"str": str, "int": int, "float": float}.get(field.kind), _PARSERS.get(field.name)
    if kind is None:
        kind, parse = str, json.loads  # a structure travels as JSON text
    # A property that is the parameter itself, or always a text, has no place for None.
    optional = field.type != field.kind and bool(path) and component != "Pusher"
    choices = field.option.choices
    return Parameter(field.name, kind, component, property_, path, parse, optional, choices)


PARAMETERS: tuple[Parameter, ...] = tuple(_list_parameters())

NAMES = frozenset(parameter.name for parameter in PARAMETERS)


def apply_parameters(properties: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Replaces values in the execution properties of a node by run-time parameters.

    Args:
        properties: Execution properties as compiled; structures as JSON text, or as values.
        values: Parameters of the same node by name.

    Returns:
        The properties with the parameters in them; changed structures are JSON text.

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
            functools.reduce(operator.getitem, parameter.path[:-1], tree)[parameter.path[-1]] = (
                parsed
            )
            result[parameter.property] = json.dumps(tree, sort_keys=True)
        else:
            result[parameter.property] = parsed
        changed.add((parameter.component, parameter.property))
    for component, property_ in sorted(changed):
        if check := _CHECKS.get((component, property_)):
            check(result[property_])
    return result


def parse_properties(
    values: Mapping[str, Any], kinds: Mapping[str, str], *, has_parameters: bool = True
) -> dict[str, Any]:
    """Returns execution properties, after the run-time parameters among the values changed them.

    Args:
        values: From JSON: numbers are floats, structures are values or text.
        kinds: Types of the parameters by name, as ParameterSpec calls them.
        has_parameters: Whether run-time parameters are among the values. In a pipeline of a user's
            own, a property that has the name of one is a property.

    Raises:
        UsageError: A value does not have its parameter's type.
    """
    plain = {
        name: _parse_plain(name, value, kinds.get(name, ""))
        for name, value in values.items()
        if value is not None
    }
    return merge_parameters(plain) if has_parameters else plain


def merge_parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the execution properties among values, after the parameters among them changed them.

    Raises:
        UsageError: A parameter is not one of this node, or its value is wrong.
    """
    parameters = {name: value for name, value in values.items() if name in NAMES}
    properties = {name: value for name, value in values.items() if name not in NAMES}
    return apply_parameters(properties, parameters)


def _parse_plain(name: str, value: Any, kind: str) -> Any:
    if kind.startswith("NUMBER"):
        try:
            number = float(value)
            whole = int(number)
        except (TypeError, ValueError, OverflowError) as error:
            raise UsageError(
                f"The parameter {name} is {value!r:.80}, expected a number.",
                "Give the pipeline a number.",
            ) from error
        if kind == "NUMBER_DOUBLE":
            return number
        if whole != number:
            raise UsageError(f"The parameter {name} is {value!r}, expected a whole number.")
        return whole
    return json.dumps(value) if isinstance(value, dict | list) else value


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
            f"The parameter {parameter.name} is not JSON: {error}.",
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
        # A property that is a parameter itself may be missing among the properties.
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


def _check_bounds(text: str) -> None:
    config = json.loads(text)
    for name, path in _LOWER_BOUNDS.items():
        value = functools.reduce(operator.getitem, path, config)
        if not 0 <= value <= 1:
            raise UsageError(f"{name} is {value!r}, expected a number from 0 to 1.")


# Each property is validated by the options class it belongs to.
_CHECKS: Mapping[tuple[str, str], Callable[[str], Any]] = {
    ("ManifestGen", "options"): ManifestOptions.from_json,
    ("ImageToTFRecord", "options"): RecordOptions.from_json,
    ("ImageValidator", "options"): ValidationOptions.from_json,
    ("Trainer", "custom_config"): lambda text: TrainingOptions.from_dict(
        json.loads(text)[CONFIG_KEY]
    ),
    ("Evaluator", "eval_config"): _check_bounds,
}
