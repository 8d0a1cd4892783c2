"""The page of the command line, from its parser."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from darkroom.cli.parser import build_parser
from options_page import is_described, link_options, name_flag
from tables import escape, format_table

_HEAD = """# Command line

{generated}

{description} Every command has `--help`. Options must be written in full. With `--json`, every
command prints its result as one JSON object. When the exit code is not 0, that object has `error`,
with `code`, `message` and `hint`, beside what there is of a result. A command that a signal ends
prints no object.

## Exit codes

{epilog}
"""
# The top of the page says what these arguments of all commands do.
_OF_ALL = ("help", "json")


def format_page(generated: str) -> str:
    """Returns the text of the page.

    Args:
        generated: The sentence that says how the page is written.
    """
    parser = build_parser()
    epilog = (parser.epilog or "").removeprefix("Exit codes: ")
    head = _HEAD.format(generated=generated, description=parser.description, epilog=epilog)
    return head + "".join(map(_format_command, _list_commands(parser)))


def _list_commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yields the parsers of all commands that are not only the first word of others."""
    # argparse has no public way to list what a parser takes.
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                inner = list(_list_commands(each))
                yield from inner or [each]


def _format_command(parser: argparse.ArgumentParser) -> str:
    text = f"\n## {parser.prog}\n\n{parser.description}\n\n```text\n{_format_usage(parser)}\n```\n"
    described = {each.dest for each in parser._actions if is_described(each.dest, each.help or "")}
    shown = (each for each in parser._actions if _is_shown(each) and each.dest not in described)
    # As in the first line: what has no flag comes first.
    shown = sorted(shown, key=lambda each: bool(each.option_strings))
    if rows := [_format_action(parser, each) for each in shown]:
        text += f"\n{format_table(('argument', 'meaning'), rows)}"
    text += link_options(described, lambda field: field.flag and f"`{name_flag(field)}`")
    return text + _format_epilog(parser.epilog or "")


def _format_epilog(epilog: str) -> str:
    """Returns the end of a command's help: its text, and its examples as a block of code."""
    text, _, examples = epilog.replace("%%", "%").partition("examples:\n")
    # A line may have been broken within a name.
    text = escape(text.replace("-\n", "-").strip())
    text = re.sub(r"More is in (docs/\S+)\.$", r"[Guide](\1)", text)
    text = re.sub(r"(?<!\()docs/guides/([\w-]+)\.md", r"[\1](../guides/\1.md)", text)
    parts = [text.replace("(docs/", "(../")] if text else []
    if examples:
        lines = [line.strip() for line in examples.splitlines()]
        parts += ["\n".join(["```console", *(f"$ {line}" for line in lines), "```"])]
    return "".join(f"\n{part}\n" for part in parts)


def _is_shown(action: argparse.Action) -> bool:
    return action.help is not argparse.SUPPRESS and action.dest not in _OF_ALL


def _format_usage(parser: argparse.ArgumentParser) -> str:
    """Returns the first line of a command's help, with all that it needs."""
    if parser.usage:
        return parser.usage
    needed = [each for each in parser._actions if each.required or not each.option_strings]
    words = [parser.prog]
    for action in sorted(needed, key=lambda each: bool(each.option_strings)):
        name = max(action.option_strings, key=len, default="")
        words += [word for word in (name, _format_value(action)) if word]
    return " ".join([*words, "[options]"])


def _format_value(action: argparse.Action) -> str:
    """Returns what a user writes in place of the value; empty where there is none."""
    if action.nargs == 0:
        return ""
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    metavar = action.metavar or choices or action.dest.upper()
    value = metavar if isinstance(metavar, str) else " ".join(metavar)
    return f"{value} ..." if action.nargs in ("+", "*") else value


def _format_action(parser: argparse.ArgumentParser, action: argparse.Action) -> tuple[str, str]:
    value = _format_value(action)
    names = [f"{name} {value}".strip() for name in action.option_strings] or [value]
    meaning = parser._get_formatter()._expand_help(action) if action.help else ""
    return ", ".join(f"`{name}`" for name in names), escape(meaning)
