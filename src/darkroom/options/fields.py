"""The description of an option, in the field of its class.

Its metadata holds the help text, the limits, the group and the flag of the option, and whether a
compiled pipeline takes it as a run-time parameter. Command-line flags, TOML keys, run-time
parameters, docstrings and docs/reference/options.md are made from these fields.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

from darkroom.errors import UsageError
from darkroom.options.checks import (
    as_python,
    check_choice,
    check_count,
    check_number,
    is_table_of_texts,
)

# The order in which `--help` and the reference page show them.
GROUPS = ("run", "data", "conversion", "checks", "model", "training", "cluster")
# Whether an option may change when a training resumes: never; between two epochs, because it
# decides the order of the batches; or at any batch. The run names those that changed, but no free
# one, which changes nothing that is learned.
FIXED, ORDER, LEARNED, FREE = "fixed", "order", "learned", "free"
SEED_HELP = "Seed for everything random: splits, order, weights, augmentation."

_KEY = "option"
_NONE = " | None"

_Class = TypeVar("_Class")
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Default = TypeVar("_Default")


@dataclass(frozen=True)
class Option:
    """The description of an option, apart from its name, type and default.

    Attributes:
        help: One sentence; `--help`, docstrings and the reference page show it.
        group: One of `GROUPS`.
        choices: The only texts that it may be; () for any.
        least: The smallest number that it may be; None for any.
        most: The largest one.
        metavar: The value in `--help`, as in FILE; made from the type when empty. A flag with `A,B`
            or `KEY=VALUE` is parsed so (`cli/shared/flags.choose_form`).
        shown: The default in words, where its value does not say it.
        flag: Its flag, where that is not the name with dashes; None for no flag.
        runtime: Whether it may change without compiling the pipeline again.
        more: More sentences, for docstrings and the reference page.
        resume: Whether a training that resumes may change it: FIXED, ORDER, LEARNED or FREE.
    """

    help: str
    group: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    metavar: str = ""
    shown: str = ""
    flag: str | None = ""
    runtime: bool = False
    more: str = ""
    resume: str = FIXED


class OptionField(NamedTuple):
    """A field of an options class.

    Attributes:
        name: Its name: the keyword in Python, the key in TOML.
        type: Its annotation, as text.
        default: Its default; `dataclasses.MISSING` when it must be given.
        option: Its description.
    """

    name: str
    type: str
    default: Any
    option: Option

    @property
    def kind(self) -> str:
        """The annotation without None."""
        return self.type.removesuffix(_NONE)

    @property
    def flag(self) -> str | None:
        """The flag on the command line; None if it has none."""
        return f"--{self.name.replace('_', '-')}" if self.option.flag == "" else self.option.flag


def describe_option(help: str, *, group: str, **details: Any) -> dict[str, Option]:
    """Returns the metadata of a field that is an option.

    Args:
        help: One sentence about the effect of the option.
        group: One of `GROUPS`.
        details: More attributes of `Option`.
    """
    return {_KEY: Option(help, group, **details)}


def option(default: _Default, help: str, *, group: str, **details: Any) -> _Default:
    """Makes a field of an options class that has a default.

    As in `epochs: int = option(10, "Passes over the training data.", group="training")`. An option
    that must be given is a `field(metadata=describe(...))`.

    Args:
        default: Its default; each instance gets a copy of a table.
        help: One sentence about the effect of the option.
        group: One of `GROUPS`.
        details: More attributes of `Option`.
    """
    metadata = describe_option(help, group=group, **details)
    # For type checkers a field is its default.
    if isinstance(default, dict):
        return cast(_Default, dataclasses.field(default_factory=default.copy, metadata=metadata))
    return dataclasses.field(default=default, metadata=metadata)


def list_options(*classes: type) -> list[OptionField]:
    """Returns the options of dataclasses by group, each once; the first class that has it wins."""
    found: dict[str, OptionField] = {}
    for each in classes:
        for field in dataclasses.fields(each):
            if _KEY in field.metadata and field.name not in found:
                default = field.default
                if field.default_factory is not dataclasses.MISSING:
                    default = field.default_factory()
                known = field.metadata[_KEY]
                found[field.name] = OptionField(field.name, str(field.type), default, known)
    return sorted(found.values(), key=lambda field: GROUPS.index(field.option.group))


def document(options: type[_Class]) -> type[_Class]:
    """Adds the options to the docstring of their class; a decorator."""
    # Without the indent of the source, which Python 3.13 takes out of docstrings itself.
    before = inspect.cleandoc(f"{options.__doc__}")
    options.__doc__ = "\n".join([before, "", "Attributes:", *_describe_all(options)])
    return options


def spell_out(options: type) -> Callable[[_Function], _Function]:
    """Puts the options into signature and docstring of a function with `**options`; a decorator.

    So `help`, notebooks and the reference show them, and each is said in its class alone. In
    the docstring of the function, `Args:` is last, or right before `Raises:`: they are added there.
    """

    def add(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        known = {each.name: each.default for each in list_options(options)}
        # The signature of a dataclass has no value for a table, but a mark.
        fields = [
            each.replace(default=known.get(each.name, each.default))
            for each in inspect.signature(options).parameters.values()
        ]
        function.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*own, *fields]
        )
        before, end, after = inspect.cleandoc(f"{function.__doc__}").partition("\n\nRaises:")
        function.__doc__ = "\n".join([before, *_describe_all(options)]) + end + after
        return function

    return add


def _describe_all(options: type) -> list[str]:
    return [
        f"    {each.name}: {each.option.help} {each.option.more}".rstrip()
        for each in list_options(options)
    ]


def merge_options(kind: type[_Class], options: _Class | None, given: Mapping[str, Any]) -> _Class:
    """Returns options in which the arguments that a caller gave by name replace the fields.

    Args:
        kind: The class of the options.
        options: The other options; the defaults if None.
        given: The arguments by name; None is an argument that was not given.

    Raises:
        UsageError: `options` are not of the class, or a value is wrong.
    """
    values = {name: as_python(value) for name, value in given.items() if value is not None}
    if options is None:
        return kind(**values)
    if not isinstance(options, kind):
        raise UsageError(
            f"options is {options!r:.80}, expected {kind.__name__}.",
            f"Import the class from darkroom.options, as in options={kind.__name__}(seed=1).",
        )
    return cast(_Class, dataclasses.replace(cast(Any, options), **values))


class _Kind(NamedTuple):
    name: str
    is_one: Callable[[Any], bool]
    hint: str


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(each, str) for each in value)


_KINDS: Mapping[str, _Kind] = {
    "str": _Kind("text", lambda value: isinstance(value, str), "Write it in quotes."),
    "bool": _Kind(
        "true or false", lambda value: isinstance(value, bool), "Write it without quotes."
    ),
    "tuple[str, ...]": _Kind("a list of texts", _is_list_of_texts, 'Write it as in ["a", "b"].'),
    "Mapping[str, str]": _Kind(
        "a table of texts", is_table_of_texts, "Write each value in quotes."
    ),
}


def check_fields(options: Any) -> None:
    """Checks each option of a dataclass against its type, choices and limits.

    Lists become tuples, and numbers of NumPy those of Python.

    Raises:
        UsageError: A value is wrong. Text of the wrong kind is not shown: it may be a credential.
    """
    for field in list_options(type(options)):
        given = getattr(options, field.name)
        value = as_python(given)
        if isinstance(value, list) and field.type.startswith("tuple"):
            value = tuple(value)
        if value is not given:
            object.__setattr__(options, field.name, value)
        if value is not None or not field.type.endswith(_NONE):
            check_value(field, value)


def check_value(field: OptionField, value: Any) -> None:
    """Checks a value of an option, but None, against its type, choices and limits.

    Raises:
        UsageError: It is wrong.
    """
    known = field.option
    if known.choices:
        check_choice(field.name, value, known.choices)
    elif field.kind == "int":
        check_count(field.name, value, known.least, known.most)
    elif field.kind == "float":
        check_number(field.name, value, known.least, known.most)
    elif (kind := _KINDS.get(field.kind)) and not kind.is_one(value):
        raise UsageError(f"{field.name} is not {kind.name}.", kind.hint)
