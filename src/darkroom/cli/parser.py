"""The parser of the command line; imports nothing that takes time."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Sequence
from typing import NoReturn

from darkroom.cli.data_flags import (
    add_attempts,
    add_convert,
    add_duplicates,
    add_inspect,
    add_validate,
    add_verify,
)
from darkroom.cli.pipeline_flags import (
    add_artifacts,
    add_compile,
    add_demo,
    add_run,
    add_submit,
)
from darkroom.cli.training_flags import (
    add_benchmark,
    add_dataservice,
    add_evaluate,
    add_export,
    add_predict,
    add_train,
)
from darkroom.errors import UsageError
from darkroom.version import __version__


class _Parser(argparse.ArgumentParser):
    """Raises an error of ours for wrong arguments, so that it is reported like all others."""

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
        """Rejects what is not a choice here, where the choices are known."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            hint = self._suggest(str(value), map(str, action.choices or ()))
            raise UsageError(_format_message(str(error)), hint) from None

    def error(self, message: str) -> NoReturn:
        """Raises the error; where an argument is missing, it may be among the misspelt ones."""
        hint = self._hint(self._given if "are required" in message else ())
        raise UsageError(_format_message(message), hint)

    def _hint(self, given: Sequence[str]) -> str:
        """Returns what to do about wrong arguments: the option that the first may stand for."""
        known = self._option_string_actions
        names = (each.partition("=")[0] for each in given if each.startswith("--"))
        return self._suggest(next((name for name in names if name not in known), ""), known)

    def _suggest(self, name: str, known: Iterable[str]) -> str:
        near = difflib.get_close_matches(name, [*known], n=1)
        guess = f"Did you mean {near[0]}? " if near else ""
        return f"{guess}See {self.prog} --help."


def _format_message(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser of the whole command line; it raises UsageError for wrong arguments."""
    parser = _Parser(
        prog="darkroom",
        allow_abbrev=False,
        description="Turns image datasets into verified TFRecords and trained models.",
        epilog="Exit codes: 0 done, 1 the data failed a check, 2 wrong usage, 3 environment, "
        "4 another process uses the output, or it contains other data, 70 a defect, "
        "128+n ended by signal n. A standard stream that is closed, full or not read changes "
        "neither the work nor the exit code.",
    )
    parser.add_argument("--version", action="version", version=f"darkroom {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_convert(commands)
    add_attempts(commands)
    add_verify(commands)
    add_validate(commands)
    add_duplicates(commands)
    add_inspect(commands)
    add_train(commands)
    add_evaluate(commands)
    add_export(commands)
    add_predict(commands)
    add_run(commands)
    add_compile(commands)
    add_submit(commands)
    add_artifacts(commands)
    add_demo(commands)
    add_dataservice(commands)
    add_benchmark(commands)
    return parser
