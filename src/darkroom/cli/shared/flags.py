"""Commands and their flags, most of them made from the fields of options classes."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from typing import Any

from darkroom.errors import DarkroomError, UsageError
from darkroom.options.conversion import ConversionFields, EmbedFields
from darkroom.options.fields import GROUPS, OptionField, list_options
from darkroom.options.pipeline import PipelineFields
from darkroom.options.source import SourceFields
from darkroom.options.targets import KubeflowFields, VertexOptions
from darkroom.options.training import TrainingFields
from darkroom.options.validation import ValidationFields

# All options of darkroom's own pipeline.
PIPELINE_CLASSES = (
    PipelineFields,
    SourceFields,
    ConversionFields,
    EmbedFields,
    ValidationFields,
    TrainingFields,
)
# Arguments that `build_parser` and `add_command` add to every command.
_NOT_OPTIONS = ("command", "run", "is_quiet", "is_process", "json")


class FlagGroups:
    """The flags of a command in the groups in which `--help` shows them."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._groups: dict[str, Any] = {name: parser.add_argument_group(name) for name in GROUPS}
        self._groups[""] = parser

    def add(self, group: str, *names: str, help: str, **details: Any) -> None:
        """Adds a flag that is not an option of a class.

        Args:
            group: One of `GROUPS`; empty for none.
            names: Its names, or the name of a positional argument.
            help: Its effect, as a sentence.
            details: Further arguments of argparse.
        """
        self._groups[group].add_argument(*names, help=escape(help), **details)

    def add_options(self, *classes: type, names: Sequence[str] = ()) -> None:
        """Adds the flags of options classes; of those named, when any are."""
        for field in list_options(*classes):
            if field.flag is not None and (not names or field.name in names):
                self.add(
                    field.option.group,
                    field.flag,
                    dest=field.name,
                    help=f"{field.option.help.rstrip('.')}{_describe_default(field)}",
                    **choose_form(field),
                )

    def add_runners(self) -> None:
        """Adds the flags of the place where Beam runs, as `convert` takes them."""
        for flag, metavar, help in (
            ("--runner", "NAME", "Beam runner (default: in this process)"),
            ("--project", "NAME", "Google Cloud project, for Dataflow"),
            ("--region", "NAME", "Google Cloud region, for Dataflow"),
        ):
            self.add("cluster", flag, metavar=metavar, help=help)
        self.add(
            "cluster",
            "--beam-option",
            dest="beam_options",
            metavar="NAME=VALUE",
            type=parse_pair,
            action=_Pairs,
            help="Another option of Beam; may be repeated",
        )


def add_command(
    commands: Any,
    name: str,
    summary: str,
    usage: str | None = None,
    examples: Sequence[str] = (),
    epilog: str = "",
    page: str = "",
) -> argparse.ArgumentParser:
    """Adds a command that prints its result for people, or with `--json` for programs.

    An option that is not given stays absent: a configuration file or a default can fill it in.

    Args:
        commands: The result of `add_subparsers`.
        name: Its name.
        summary: Its work, as a sentence.
        usage: The first line of its help; made by argparse when None.
        examples: Command lines, for the end of its help.
        epilog: More for the end, as its exit codes.
        page: Page of the documentation, below `docs` and without its ending.
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary,
        usage=usage,
        epilog=format_epilog(examples, epilog, page),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    parser.register("action", "once", _Once)
    parser.add_argument(
        "--json", action="store_true", default=False, help="Print the result as one JSON object"
    )
    return parser


def read_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of a command that were given, by name."""
    values = {name: v for name, v in vars(arguments).items() if name not in _NOT_OPTIONS}
    return {**values.pop("set", {}), **values}


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """Adds the argument that names a dataset."""
    parser.add_argument("directory", metavar="DIR", help="A dataset; gs:// and s3:// work")


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Adds `--overwrite` of a command that writes the file that `--output` names."""
    parser.add_argument(
        "--overwrite", action="store_true", default=False, help="Replace a file that exists"
    )


def choose_form(field: OptionField) -> dict[str, Any]:
    """Returns argparse's arguments for the type of a field; without a value it stays absent.

    For texts the metavar decides: `A,B` takes a list, and `KEY=VALUE` a pair.
    """
    known, kind = field.option, field.kind
    form: dict[str, Any] = {"default": argparse.SUPPRESS}
    if kind == "bool":
        action = argparse.BooleanOptionalAction if field.default else "store_true"
        return {**form, "action": action}
    if known.metavar:
        form["metavar"] = known.metavar
    if known.choices:
        form["choices"] = known.choices
    elif kind.startswith("int"):
        form.update(type=parse_int, metavar=known.metavar or "N")
    elif kind == "float":
        form.update(type=parse_number, metavar=known.metavar or "NUMBER")
    elif kind == "tuple[int, int]":
        form["type"] = parse_size
    elif "," in known.metavar:
        form.update(type=parse_names, action="extend")
    elif kind == "tuple[str, ...]":
        form["action"] = "append"
    elif kind == "Mapping[str, str]" and "=" in known.metavar:
        form.update(type=parse_pair, action=_Pairs)
    return form


def _describe_default(field: OptionField) -> str:
    """Returns words about the default, and about a flag that may be given several times."""
    shown, default = field.option.shown, field.default
    repeated = "; may be repeated" if field.kind.startswith(("tuple[str", "Mapping")) else ""
    if field.option.metavar in ("JSON", "NAME,..."):
        repeated = ""
    if not shown and isinstance(default, str | int | float) and not isinstance(default, bool):
        shown = str(default)
    elif not shown and isinstance(default, tuple):
        shown = ("x" if field.kind == "tuple[int, int]" else " ").join(map(str, default))
    return f"{repeated} (default: {shown})" if shown else repeated


class _Once(argparse.Action):
    """Takes a value that must not be given twice, where the last one would count silently."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest, None) is not None:
            raise UsageError(f"{option_string} is given twice.", "Give one file.")
        setattr(namespace, self.dest, values)


class _Pairs(argparse.Action):
    """Collects NAME=VALUE into a table."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        name, value = values
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest, None) or {}), name: value})


def escape(text: str) -> str:
    """Returns a text as argparse shows it unchanged."""
    return text.replace("%", "%%")


def format_epilog(examples: Sequence[str], text: str = "", page: str = "") -> str:
    """Returns the end of a command's help: a text, where to read on, and examples, one per line."""
    parts = [textwrap.fill(text, 79)] if text else []
    if page:
        parts.append(f"More is in docs/{page}.md.")
    if examples:
        parts.append("\n".join(["examples:", *(f"  {each}" for each in examples)]))
    return escape("\n\n".join(parts))


def parse_pair(text: str) -> tuple[str, str]:
    """Parses NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    return name, value


def parse_size(text: str) -> tuple[int, int]:
    """Parses HEIGHTxWIDTH, or one number for both."""
    parts = text.lower().split("x")
    if len(parts) not in (1, 2) or not all(part.isdigit() for part in parts):
        raise argparse.ArgumentTypeError(f"expected HEIGHTxWIDTH like 128x128, got {text!r}")
    return int(parts[0]), int(parts[-1])


def parse_names(text: str) -> tuple[str, ...]:
    """Parses NAME,NAME."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def parse_int(text: str) -> int:
    """Parses a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}") from None


def parse_number(text: str) -> float:
    """Parses a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}") from None


def name_flag(error: DarkroomError, arguments: argparse.Namespace) -> DarkroomError:
    """Returns the error with the flag of an option that was given by one, for its name."""
    name = error.message.split(" ")[0].rstrip(":")
    if not isinstance(error, UsageError) or name not in vars(arguments):
        return error
    fields = list_options(*PIPELINE_CLASSES, KubeflowFields, VertexOptions)
    flags = {each.name: each.flag for each in fields if each.flag}
    # No argument without a flag has a name of two words.
    flag = f"--{name.replace('_', '-')}" if "_" in name else name
    return UsageError(f"{flags.get(name, flag)}{error.message[len(name) :]}", error.hint)
