"""A step: its inputs, options, outputs and results, its function, and its command.

KFP's components, their YAML files, the page of the reference and the tasks are made from it. Its
options are fields of the options classes.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from typing import Any, Literal, NamedTuple

from darkroom.errors import DarkroomError, UsageError
from darkroom.options.fields import OptionField, list_options
from darkroom.runtime.json_values import parse_object
from darkroom.runtime.text import make_visible
from darkroom.steps.command import Command

# In the place of the default of a parameter that must be given.
REQUIRED: Any = ...

# KFP's type of a parameter, by the annotation of an option without None.
_KINDS: Mapping[str, type] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "tuple[str, ...]": list,
    "tuple[int, int]": list,
    "Mapping[str, str]": dict,
    "int | Mapping[str, int]": int,
}
_KIND_NAMES = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a component.

    Attributes:
        name: Its name.
        kind: str, int, float, bool, list or dict.
        help: Its meaning, in sentences.
        default: Its default; REQUIRED if it must be given.
        optional: Whether the core takes None for it. Not every backend carries None, so another
            value stands for it: `blank`.
        zero_counts: Whether 0 has a meaning, so that -1 stands for None.
        runtime: Whether a pipeline takes it for each run.
        has_numbers: Whether a list is one of numbers, and not of texts.
        is_status: Whether the service gives it to the task that runs at the end.
    """

    name: str
    kind: type
    help: str
    default: Any = REQUIRED
    optional: bool = False
    zero_counts: bool = False
    runtime: bool = False
    has_numbers: bool = False
    is_status: bool = False

    @property
    def is_required(self) -> bool:
        """Whether it must be given."""
        return self.default is REQUIRED

    @property
    def blank(self) -> Any:
        """The value that stands for None: an empty text, list or table, 0, or -1."""
        return -1 if self.zero_counts else self.kind()

    def read(self, value: Any, put_in: Collection[Any] = ()) -> Any:
        """Returns the value that a task is given as `parse` does: the SDK puts together text.

        Args:
            value: The value.
            put_in: The parameters of the pipeline that the SDK put into the values of the task.

        Raises:
            UsageError: See `parse`.
        """
        if self.kind in (int, float):
            value = _read_number(value)
        elif self.has_numbers and isinstance(value, list):
            value = list(map(_read_number, value))
        elif self.kind is dict:
            if self.is_status and isinstance(value, str):  # Vertex may give the text
                value = parse_object(value) or {"error": make_visible(value)}
            value = _restore(value, [_restore(each) for each in put_in])
        return self.parse(value)

    def parse(self, value: Any) -> Any:
        """Returns a value as the core takes it; None for what stands for None.

        Raises:
            UsageError: It has another kind, or is missing.
        """
        kind = self.kind
        if self.optional and (value is None or value == self.blank):
            return None
        if value is None:
            if self.is_required:
                raise UsageError(f"The task needs the parameter {self.name}.")
            value = self.default
        # Kubeflow carries whole numbers as floats.
        if kind is int:
            value = _as_whole(value)
        if kind is list and isinstance(value, list):
            value = list(map(_as_whole, value))
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not kind:
            raise UsageError(
                f"The parameter {self.name} is {value!r:.80}, expected {_KIND_NAMES[kind]}."
            )
        return value


def _read_number(value: Any) -> Any:
    """Returns the number that a text is; any other value as it is."""
    if not isinstance(value, str):
        return value
    try:
        # As a float, a large whole number would be another one.
        number = int(value) if value.strip().lstrip("+-").isdecimal() else float(value)
        return number if math.isfinite(number) else value
    except (ValueError, OverflowError):
        return value


def _restore(value: Any, put_in: Collection[Any] = ()) -> Any:
    """Returns a table with numbers as they were: some come as floats, others as text.

    A text like one of the pipeline's parameters in the same task cannot be told from it.
    """
    if isinstance(value, Mapping):
        return {name: _restore(each, put_in) for name, each in value.items()}
    if isinstance(value, list):
        return [_restore(each, put_in) for each in value]
    if not isinstance(value, str) or not put_in:
        return _as_whole(value)
    try:
        read = _restore(json.loads(value))
    except ValueError:
        return value
    return read if any(type(read) is type(each) and read == each for each in put_in) else value


def _as_whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


ArtifactKind = Literal[
    "Artifact", "ClassificationMetrics", "Dataset", "HTML", "Markdown", "Metrics", "Model"
]


@dataclass(frozen=True)
class Artifact:
    """An artifact that a step takes or makes.

    Attributes:
        name: Its name.
        kind: Its type among KFP's `system.*`.
        help: Its meaning, in sentences.
        optional: Whether an input may be left out.
        file: The name of its file; empty if it is a folder with several.
        title: Of a page that shows the result of the step as a notebook does.
    """

    name: str
    kind: ArtifactKind
    help: str
    optional: bool = False
    file: str = ""
    title: str = ""

    def find_path(self, folder: str) -> str:
        """Returns where a step writes it, if the artifact is in a folder; not so for a page."""
        from darkroom import storage

        return storage.join(folder, self.file) if self.file and self.kind != "HTML" else folder


class Made(NamedTuple):
    """What a step made, beside what it wrote into its places.

    Attributes:
        result: What its command prints.
        numbers: Numbers by name, which UIs show.
        facts: What is known of outputs: metadata by name, by the name of the output.
        files: The content of outputs that are a file, by name.
        results: Its output parameters that are neither among the numbers nor `passed`.
        error: Why the data or the model did not pass; None if it did.
        verdict: The error in one line, for whoever has seen the result.
    """

    result: Any = None
    numbers: Mapping[str, float] = {}
    facts: Mapping[str, Mapping[str, Any]] = {}
    files: Mapping[str, bytes] = {}
    results: Mapping[str, Any] = {}
    error: DarkroomError | None = None
    verdict: str = ""


# Of the inputs and outputs of a step, by name; and its options.
Paths = Mapping[str, str]
Given = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A step of a pipeline.

    Attributes:
        name: Its name, also as the argument of `python -m darkroom.kfp.task`.
        help: Its work, in sentences.
        run: Its function, of the paths of its inputs and outputs and of its options, both by name.
            Outputs that nobody wants have no path.
        parameters: Its options.
        inputs: The artifacts that it takes.
        outputs: The artifacts that it makes.
        results: Its output parameters.
        command: Its command, if it has one.
        needs_tensorflow: Whether its image needs TensorFlow.
        own_image: Whether its image has code of the user's, beside darkroom.
        checks: The checks of the values: each is called with the parameters that it takes, and
            raises UsageError.
        partial_checks: The same, where the values of some parameters are not known yet; () if
            `checks` can do that.
    """

    name: str
    help: str
    run: Callable[[Paths, Given], Made]
    parameters: tuple[Parameter, ...] = ()
    inputs: tuple[Artifact, ...] = ()
    outputs: tuple[Artifact, ...] = ()
    results: tuple[Parameter, ...] = ()
    command: Command | None = None
    needs_tensorflow: bool = False
    own_image: bool = False
    checks: tuple[Callable[..., object], ...] = ()
    partial_checks: tuple[Callable[..., object], ...] = ()

    def check_values(self, values: Mapping[str, Any], unknown: Collection[str] = ()) -> None:
        """Checks the values of parameters.

        Args:
            values: Values by name, as the core takes them; for others their default counts.
            unknown: Names of parameters whose value only a run knows.

        Raises:
            UsageError: A value is wrong, or two do not go together.
        """
        is_partial = any(not _list_taken(each).isdisjoint(unknown) for each in self.checks)
        for check in self.partial_checks or self.checks if is_partial else self.checks:
            check(**{name: values[name] for name in _list_taken(check) & values.keys()})


def _list_taken(check: Callable[..., object]) -> set[str]:
    return set(inspect.signature(check).parameters)


def take_options(*classes: type, only: Sequence[str] = ()) -> tuple[Parameter, ...]:
    """Returns the options of classes as parameters, or those named."""
    fields = list_options(*classes)
    return tuple(map(make_parameter, (f for f in fields if not only or f.name in only)))


def make_parameter(field: OptionField) -> Parameter:
    """Returns an option as a parameter of a component."""
    kind, known = _KINDS[field.kind], field.option
    # Its type does not say that an image size may be left out.
    optional = field.type != field.kind or field.default is None
    zero_counts = known.least == 0 and optional
    numbers = field.kind == "tuple[int, int]"
    made = Parameter(field.name, kind, "", None, optional, zero_counts, known.runtime, numbers)
    default = REQUIRED
    if field.default is not MISSING:
        default = made.blank if field.default is None else kind(field.default)
    return replace(made, default=default, help=_describe(field, made))


def _describe(field: OptionField, made: Parameter) -> str:
    """Returns the help of an option, with the choices, and the meaning of what stands for None."""
    known = field.option
    sentences = [known.help, known.more]
    if known.choices:
        sentences.append(f"One of {', '.join(known.choices)}.")
    if made.optional and known.shown:
        blank = made.blank if made.kind in (int, float) else "empty"
        sentences.append(f"If {blank}: {known.shown}.")
    return " ".join(filter(None, sentences))
