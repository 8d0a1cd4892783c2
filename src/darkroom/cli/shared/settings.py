"""`--set NAME=VALUE`: an option of a pipeline by its name, read as its flag reads it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from darkroom.cli.shared.flags import PIPELINE_CLASSES, FlagGroups, choose_form
from darkroom.errors import UsageError
from darkroom.options.fields import OptionField, list_options
from darkroom.options.targets import TARGETS, CompiledFields
from darkroom.runtime.text import suggest
from darkroom.withdrawn import explain_option

_SWITCHES = {"true": True, "false": False}


def add_target_flags(parser: argparse.ArgumentParser) -> FlagGroups:
    """Adds `--target`, and `--config` and `--set` for all options of a pipeline."""
    flags = FlagGroups(parser)
    flags.add(
        "run",
        "--config",
        metavar="FILE",
        help="TOML file with options of the pipeline (docs/reference/options.md)",
    )
    flags.add(
        "run",
        "--set",
        metavar="NAME=VALUE",
        action=_Settings,
        help="Option of the pipeline, as epochs=20 or policies.leakage=warn; wins over the file; "
        "may be repeated, also for each text of a list",
    )
    flags.add(
        "run", "--target", choices=TARGETS, required=True, help="Service that runs the pipeline"
    )
    flags.add_options(CompiledFields)
    return flags


class _Settings(argparse.Action):
    """Collects options by name."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        name, equals, text = values.partition("=")
        if not equals:
            parser.error(f"argument --set: expected NAME=VALUE, got {values!r}")
        name, dot, key = name.partition(".")
        field = _find_field(name)
        try:
            value = _parse_text(field, text)
        except argparse.ArgumentTypeError as error:
            parser.error(f"argument --set {name}: {error}")
        found = getattr(namespace, self.dest, {})
        if bool(dot) != field.kind.startswith("Mapping[") and field.option.metavar != "JSON":
            form = f"{name}=VALUE" if dot else f"{name}.KEY=VALUE"
            parser.error(f"argument --set {name}: expected {form}")
        if dot:
            value = {**found.get(name, {}), key: value}
        elif (action := choose_form(field).get("action")) in ("append", "extend"):
            value = (*found.get(name, ()), *(value if action == "extend" else [value]))
        setattr(namespace, self.dest, {**found, name: value})

    def completer(self, **_: Any) -> Iterator[str]:
        """Returns the suggestions for a shell: the names."""
        return (f"{each.name}=" for each in list_options(*PIPELINE_CLASSES))


def _find_field(name: str) -> OptionField:
    """Returns the option of a name; one that is a table of tables has no form on a command line.

    Raises:
        UsageError: No option of a pipeline that `--set` can give has this name.
    """
    fields = {each.name: each for each in list_options(*PIPELINE_CLASSES)}
    if name in fields and fields[name].kind != "Mapping[str, Any]":
        return fields[name]
    guess = "" if name in fields else explain_option(name) or suggest(name, fields)
    raise UsageError(
        f"--set has no option {name!r}. {guess}".rstrip(),
        "docs/reference/options.md lists them. Tables of tables, as [resources.Trainer], "
        "belong in the file of --config.",
    )


def _parse_text(field: OptionField, text: str) -> Any:
    if field.kind != "bool":
        parse = str if field.kind.startswith("Mapping[") else choose_form(field).get("type", str)
        return parse(text)
    if text not in _SWITCHES:
        raise argparse.ArgumentTypeError(f"expected true or false, got {text!r}")
    return _SWITCHES[text]
