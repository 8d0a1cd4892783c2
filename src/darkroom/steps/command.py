"""The command of a step: its flags, and what `--help` says. Imports nothing that takes time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Flag(NamedTuple):
    """A flag or a positional argument of a command that is not an option of a class.

    Attributes:
        names: Its names. `dest` is the input, the output or the option that it gives.
        help: Its effect.
        group: One of `darkroom.options.fields.GROUPS`; empty for none.
        details: Further arguments of argparse.
    """

    names: tuple[str, ...]
    help: str
    group: str
    details: Mapping[str, Any]


class Options(NamedTuple):
    """The flags of options classes; of those named, when any are."""

    classes: tuple[type, ...]
    names: tuple[str, ...] = ()


class Command(NamedTuple):
    """A command.

    Attributes:
        name: Its name.
        summary: Its work, as a sentence.
        flags: Its flags, in the order of `--help`.
        usage: The first line of its help; made by argparse when None.
        examples: Command lines, for the end of its help.
        epilog: More for the end, as its exit codes.
        page: Page of the documentation, below `docs` and without its ending.
        is_quiet: Whether warnings and errors that TensorFlow logs are hidden.
    """

    name: str
    summary: str
    flags: tuple[Flag | Options, ...]
    usage: str | None = None
    examples: tuple[str, ...] = ()
    epilog: str = ""
    page: str = ""
    is_quiet: bool = False


def flag(*names: str, help: str, group: str = "", **details: Any) -> Flag:
    """Makes a flag; see `Flag`."""
    return Flag(names, help, group, details)
