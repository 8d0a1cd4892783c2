"""The page of the options, from the fields of the options classes; other pages link to it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterator, Mapping

from darkroom.options.fields import GROUPS, OptionField, list_options
from darkroom.options.input import InputOptions, ReadingFields
from darkroom.options.targets import KubeflowFields, VertexOptions
from darkroom.pipelines.config import PipelineConfig
from tables import format_table

_HEAD = """\
# Options

{generated}

Every option of `darkroom run`, `darkroom compile` and `darkroom submit`. The name is the key in a
TOML file and the keyword of `PipelineConfig`. The flags are those of `darkroom run`; `compile` and
`submit` take `--set NAME=VALUE` instead. A flag with one value of a list or table may be repeated.
Tables of tables are set in a TOML file. Those of [the submission](#submission) are flags alone.
Keywords of `darkroom.convert`, of the components and of the options classes have the same names.

[The command line](command-line.md) says which of them other commands take.
An option marked *run-time* is an input of the compiled pipeline: a run may change it without
compiling again.
"""
_INPUT = """
`darkroom.load` and `InputOptions` take these by name; they have no flag. Both also take some
options of the tables above: {shared}.
`load` takes one number for a square `image_size`.
A call of `input_fn` with the number of an epoch makes that epoch alone: `repeat` is then 1.
"""
_SUBMISSION = """
Options of `darkroom submit` alone. Each is a flag: a TOML file does not take them.
"""
_INPUT_TITLE, _SUBMISSION_TITLE = "Input", "Submission"
_TITLES = {"run": "The run"}


def format_page(generated: str) -> str:
    """Returns the text of the page.

    Args:
        generated: The sentence that says how the page is written.
    """
    shared = ", ".join(f"`{name}`" for name in _list_shared())
    heads = {_INPUT_TITLE: _INPUT.format(shared=shared), _SUBMISSION_TITLE: _SUBMISSION}
    text = _HEAD.format(generated=generated)
    for title, fields in list_sections().items():
        rows = [_format_row(each, has_flag=title != _INPUT_TITLE) for each in fields]
        table = format_table(("option", "default", "what it does"), rows)
        text += f"\n## {title}\n{heads.get(title, '')}\n{table}"
    return text


def list_sections() -> Mapping[str, list[OptionField]]:
    """Returns the options by the titles of their sections."""
    # The bases first, for the order of `--help`.
    fields = list_options(*PipelineConfig.__bases__, PipelineConfig)
    shared = _list_shared()
    return {
        **{
            _TITLES.get(group, group.capitalize()): [f for f in fields if f.option.group == group]
            for group in GROUPS
        },
        _INPUT_TITLE: [each for each in list_options(InputOptions) if each.name not in shared],
        _SUBMISSION_TITLE: list_options(KubeflowFields, VertexOptions),
    }


def is_described(name: str, text: str) -> bool:
    """Tells whether a text begins as the description of the option of this name."""
    return trim_text(name, text) != text


def trim_text(name: str, text: str) -> str:
    """Returns what a text adds to the description of the option of this name."""
    fields = (each for fields in list_sections().values() for each in fields)
    for option in (each.option for each in fields if each.name == name):
        # A flag has no full stop, but perhaps its default in brackets.
        begin = rf"{re.escape(option.help.rstrip('.'))}(\.|(?=;| \(|$))( {re.escape(option.more)})?"
        return re.sub(f"^{begin}", "", text).strip()
    return text


def link_options(names: Collection[str], show: Callable[[OptionField], str | None]) -> str:
    """Returns a list of options by section, with links in place of their meaning.

    Args:
        names: Names of options of the page.
        show: Returns how an option is called there, as Markdown; nothing if it never is there.
    """
    whole, lines = [], ""
    for title, fields in list_sections().items():
        known = {each.name: name for each in fields if (name := show(each))}
        found = [name for key, name in known.items() if key in names]
        others = [name for key, name in known.items() if key not in names]
        link = f"[{title}](options.md#{title.lower().replace(' ', '-')})"
        if found and not others:
            whole.append(link)
        elif found and len(others) < len(found) / 4:
            lines += f"- {link} but {', '.join(others)}\n"
        elif found:
            lines += f"- {link}: {', '.join(found)}\n"
    if whole:
        lines = f"- all of {', '.join(whole)}\n{lines}"
    return f"\nIt takes these [options](options.md):\n\n{lines}" if lines else ""


def name_flag(field: OptionField) -> str:
    """Returns the flag that changes the default."""
    flag = field.flag or ""
    return flag.replace("--", "--no-") if field.default is True else flag


def _list_shared() -> list[str]:
    return ["image_size", *(each.name for each in list_options(ReadingFields))]


def _format_row(field: OptionField, *, has_flag: bool) -> tuple[str, str, str]:
    name = f"`{field.name}`"
    if field.flag and has_flag:
        value = f" {field.option.metavar}" if field.option.metavar else ""
        name += f"<br>`{name_flag(field)}{value}`"
    return name, _format_default(field), " ".join(_describe(field))


def _describe(field: OptionField) -> Iterator[str]:
    known = field.option
    yield known.help
    if known.choices:
        yield f"One of {', '.join(f'`{each}`' for each in known.choices)}."
    elif known.least is not None and known.most is not None:
        yield f"From {known.least:,} to {known.most:,}."
    elif known.least is not None:
        yield f"At least {known.least:,}."
    if known.more:
        yield known.more
    if known.runtime:
        yield "*Run-time.*"


def _format_default(field: OptionField) -> str:
    default = field.default
    if field.option.shown:
        return field.option.shown
    if default is dataclasses.MISSING:
        return "required"
    if field.type == "tuple[int, int]" and field.option.metavar:
        return f"`{'x'.join(map(str, default))}`"
    if isinstance(default, bool):
        return "on" if default else "off"
    if isinstance(default, tuple):
        return f"`{default}`" if "int" in field.type else " ".join(f"`{each}`" for each in default)
    return "" if default in (None, "", {}) else f"`{default}`"
