"""The parser of the command line; imports nothing that takes time."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import NoReturn

from darkroom.cli.commands import COMMANDS, STEP_COMMANDS
from darkroom.cli.shared.steps import add_step
from darkroom.errors import UsageError
from darkroom.runtime.text import suggest
from darkroom.version import __version__
from darkroom.withdrawn import WITHDRAWN_COMMANDS as WITHDRAWN
from darkroom.withdrawn import WITHDRAWN_FLAGS, explain_option


class _Parser(argparse.ArgumentParser):
    """Raises a darkroom error for wrong arguments, so that it is reported like all others."""

    _given: Sequence[str] = ()

    def parse_known_args(  # type: ignore[override]  # the namespace is always argparse's
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Rejects unknown arguments here, where the options are known, not in a parser above."""
        self._given = args or ()
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            raise UsageError(f"Unrecognized arguments: {' '.join(unknown)}.", self._hint(unknown))
        return found, unknown

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Rejects a value that is not a choice here, where the choices are known."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            instead = action.dest == "command" and WITHDRAWN.get(str(value))
            hint = instead or self._suggest(str(value), map(str, action.choices or ()))
            raise UsageError(_format_message(str(error)), hint) from None

    def error(self, message: str) -> NoReturn:
        """Raises the error; where an argument is missing, it may be among the misspelt ones."""
        hint = self._hint(self._given if "are required" in message else ())
        raise UsageError(_format_message(message), hint)

    def _hint(self, given: Sequence[str]) -> str:
        """Returns what to do about wrong arguments: the option that the first may stand for."""
        known = self._option_string_actions
        names = (each.partition("=")[0] for each in given if each.startswith("--"))
        wrong = next((name for name in names if name not in known), "")
        instead = explain_option(wrong) or WITHDRAWN_FLAGS.get(f"{self.prog} {wrong}")
        return instead or self._suggest(wrong, known)

    def _suggest(self, name: str, known: Iterable[str]) -> str:
        return f"{suggest(name, known)} See {self.prog} --help.".lstrip()


def _format_message(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def build_parser(given: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Returns the parser of the command line; it raises UsageError for wrong arguments.

    Args:
        given: The arguments. Where they begin with a command, the parser has no other one.
    """
    parser = _Parser(
        prog="darkroom",
        allow_abbrev=False,
        description="Turns image datasets into verified TFRecords and trained models.",
        epilog="Exit codes: 0 done, 1 the data failed a check, 2 wrong usage, 3 the environment "
        "(files, stores, permissions, a missing extra), 4 another process uses the output, or it "
        "contains unrelated files, 70 a defect, 128+n ended by signal n. A standard stream that is "
        "closed, full or not read changes neither the work nor the exit code.",
    )
    parser.add_argument("--version", action="version", version=f"darkroom {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    is_chosen = bool(given) and given[0] in COMMANDS
    for name in given[:1] if is_chosen else COMMANDS:
        if name in STEP_COMMANDS:
            add_step(commands, import_module(f"darkroom.steps.{name}").STEP)
            continue
        module = import_module(f"darkroom.cli.commands.{name}")
        module.add(commands)
        is_quiet = getattr(module, "QUIET", False)
        commands.choices[name].set_defaults(run=module.run, is_quiet=is_quiet)
    return parser
