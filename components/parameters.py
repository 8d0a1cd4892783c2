"""Run-time parameters: options of a pipeline that may change without compiling it again.

A compiled pipeline carries its options as execution properties, most of them JSON text. A parameter
is one value inside one of them; the field of the option says that it is one. A compiled task gets
its parameters beside its properties, and the entrypoint puts them into the properties before the
executor runs.
"""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from darkroom.dataset.splits import SplitRatios
from darkroom.errors import UsageError
from darkroom.options.conversion import ConversionFields, RecordOptions
from darkroom.options.fields import OptionField, check_value, list_options
from darkroom.options.manifest import ManifestOptions
from darkroom.options.pipeline import PipelineFields
from darkroom.options.source import SourceFields
from darkroom.options.training import CHECKPOINT_DIR_KEY, CONFIG_KEY, TrainingOptions
from darkroom.options.validation import ValidationFields, ValidationOptions
from darkroom.steps.step import Parameter, make_parameter

MODEL_FINGERPRINT_KEY = "model_fingerprint"
Path = tuple[str | int, ...]

# Where the options of a stage go: classes of fields, node, property, and keys inside its JSON.
_PLACES: tuple[tuple[type, str, str, Path], ...] = (
    (SourceFields, "ManifestGen", "options", ()),
    (ConversionFields, "ImageToTFRecord", "options", ()),
    (ValidationFields, "ImageValidator", "options", ()),
    (TrainingOptions, "Trainer", "custom_config", (CONFIG_KEY,)),
)
# As pipelines/evaluation.py makes them: the threshold of the whole split, then that of each class.
_THRESHOLDS = ("metrics_specs", 0, "metrics", 1, "per_slice_thresholds")
_BOUND = ("threshold", "value_threshold", "lower_bound")
# Where those of the pipeline itself go.
_OWN_PLACES: Mapping[str, tuple[str, str, Path]] = {
    "data": ("ManifestGen", "source", ()),
    "source_fingerprint": ("ManifestGen", "source_fingerprint", ()),
    "model_fingerprint": ("Trainer", "custom_config", (MODEL_FINGERPRINT_KEY,)),
    "checkpoint_dir": ("Trainer", "custom_config", (CHECKPOINT_DIR_KEY,)),
    "min_accuracy": ("Evaluator", "eval_config", (*_THRESHOLDS, 0, *_BOUND)),
    "min_recall": ("Evaluator", "eval_config", (*_THRESHOLDS, 1, *_BOUND)),
    "baseline_model": ("Evaluator", "baseline", ()),
    "push_to": ("Pusher", "push_destination", ("filesystem", "base_directory")),
}
# What is checked as a whole, by the class of its options, when a value in it has changed.
_CHECKS: Mapping[tuple[str, str], Callable[[str], object]] = {
    ("ManifestGen", "options"): ManifestOptions.from_json,
    ("ImageToTFRecord", "options"): RecordOptions.from_json,
    ("ImageValidator", "options"): ValidationOptions.from_json,
    ("Trainer", "custom_config"): lambda text: TrainingOptions.from_dict(
        json.loads(text)[CONFIG_KEY]
    ),
}


@dataclass(frozen=True)
class RunParameter:
    """A value that a compiled pipeline takes when it is submitted.

    Attributes:
        field: The option, a field of `PipelineConfig`.
        parameter: How its values are read. 0 or the empty text stands for None.
        component: Id of the node that uses it.
        key: Execution property of that node into which it goes.
        path: Keys and places inside the property's JSON; () when it is the property itself.
    """

    field: OptionField
    parameter: Parameter
    component: str
    key: str
    path: Path

    @property
    def name(self) -> str:
        """Its name."""
        return self.field.name

    @property
    def kind(self) -> type:
        """`str`, `int` or `float`, which services carry unchanged; structures are JSON text."""
        return self.parameter.kind if self.parameter.kind in (int, float) else str

    def parse(self, value: Any) -> Any:
        """Returns a value as it goes into the property.

        Raises:
            UsageError: It is of another kind, or out of its limits.
        """
        if self.parameter.kind in (list, dict):
            try:
                value = json.loads(value) if isinstance(value, str) else value
            except (json.JSONDecodeError, RecursionError) as error:
                raise UsageError(
                    f"The parameter {self.name} is not JSON: {error}.",
                    'Give JSON text, as in {"leakage": "warn"} or [128, 128].',
                ) from error
            if isinstance(value, tuple):
                value = list(value)
        parsed = self.parameter.read(value)
        if parsed is not None:
            check_value(self.field, parsed)
        if self.name == "split_ratios" and parsed is not None:
            return list(SplitRatios.parse(parsed).as_tuple())
        return parsed

    def encode(self, value: Any) -> str | int | float:
        """Returns a field of `PipelineConfig` as the plain value that a pipeline carries."""
        if value is None:
            return self.kind()  # type: ignore[no-any-return]  # '' or 0 stands for None
        if self.parameter.kind in (list, dict) and not isinstance(value, str):
            return json.dumps(value if isinstance(value, Sequence) else dict(value), sort_keys=True)
        return self.kind(value)  # type: ignore[no-any-return]

    def find(self, tree: Any) -> tuple[Any, str | int]:
        """Returns the table in the property's values that has it, and its key there."""
        return functools.reduce(operator.getitem, self.path[:-1], tree), self.path[-1]


def _list_parameters() -> Iterator[RunParameter]:
    places = [
        (field, component, property_, (*path, field.name))
        for fields, component, property_, path in _PLACES
        for field in list_options(fields)
    ]
    own = [(f, *_OWN_PLACES[f.name]) for f in list_options(PipelineFields) if f.option.runtime]
    for field, component, property_, path in (*places, *own):
        if field.option.runtime:
            parameter = make_parameter(field)
            # A property that is the parameter itself, or always a text, has no place for None.
            if not path or component == "Pusher":
                parameter = replace(parameter, optional=False)
            yield RunParameter(field, parameter, component, property_, path)


PARAMETERS: tuple[RunParameter, ...] = tuple(_list_parameters())

PARAMETER_NAMES = frozenset(parameter.name for parameter in PARAMETERS)


def apply_parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the execution properties of a node, with its run-time parameters put into them.

    Args:
        values: What a task is given: properties as compiled, with structures as JSON text or as
            values, and beside them the parameters by name.

    Returns:
        The properties; those that were changed are JSON text.

    Raises:
        UsageError: A name is not a parameter of this node, or a value is wrong.
    """
    result = {name: value for name, value in values.items() if name not in PARAMETER_NAMES}
    changed: dict[tuple[str, str], Any] = {}
    for name in [each for each in values if each in PARAMETER_NAMES]:
        # A property that is a parameter itself may be missing among the properties.
        found = [p for p in PARAMETERS if p.name == name and p.key in (*result, name)]
        if not found:
            known = sorted(p.name for p in PARAMETERS if p.key in result)
            raise UsageError(f"This component takes no parameter {name!r}.", f"It takes {known}.")
        parameter, parsed = found[0], found[0].parse(values[name])
        if not parameter.path:
            result[parameter.key] = parsed
            continue
        place = parameter.component, parameter.key
        if place not in changed:
            text = result[parameter.key]
            changed[place] = json.loads(text if isinstance(text, str) else json.dumps(text))
        table, key = parameter.find(changed[place])
        table[key] = parsed
    for (component, property_), tree in changed.items():
        result[property_] = json.dumps(tree, sort_keys=True)
        if check := _CHECKS.get((component, property_)):
            check(result[property_])
    return result
