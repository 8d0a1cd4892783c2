"""Writes docs/reference/options.md from the fields of the options classes.

python tools/write_options_page.py [FILE]
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

from darkroom.options.fields import GROUPS, OptionField, list_options
from darkroom.options.input import InputOptions, ReadingFields
from darkroom.options.targets import KubeflowFields, VertexOptions
from darkroom.pipelines.config import PipelineConfig

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "options.md"

_HEAD = """\
# Options

<!-- Written by tools/write_options_page.py from the fields of the options classes. -->

Every option of `darkroom run`, `darkroom compile` and `darkroom submit`. The name is the key in a
TOML file and the keyword of `PipelineConfig`. The flags are those of `darkroom run`; `compile` and
`submit` take `--set NAME=VALUE` instead. Tables of tables are set in a TOML file.
Those of [the submission](#submission) are flags alone.
Keywords of `darkroom.convert`, of the components and of the options classes have the same names.

`darkroom convert` takes the groups *data* and *conversion*, `--max-rejects`, and the options of the
engine. `darkroom train` takes *training* and *model*, without what concerns pushing.

An option marked *run-time* is an input of the compiled pipeline: a run may change it without
compiling again.
"""
_INPUT = """
## Input

`darkroom.load` and `InputOptions` take these by name; they have no flag. Both also take some
options of the tables above: {shared}.
`load` takes one number for a square `image_size`.
A call of `input_fn` with the number of an epoch makes that epoch alone: `repeat` is then 1.
"""
_SUBMISSION = """
## Submission

Options of `darkroom submit` alone. Each is a flag: a TOML file does not take them.
"""
_TABLE = ["| option | default | what it does |", "| --- | --- | --- |"]
_TITLES = {"run": "The run"}


def format_page() -> str:
    """Returns the page."""
    # The bases first, for the order of `--help`.
    fields = list_options(*PipelineConfig.__bases__, PipelineConfig)
    parts = [_HEAD]
    for group in GROUPS:
        own = [each for each in fields if each.option.group == group]
        title = _TITLES.get(group, group.capitalize())
        parts.append("\n".join([f"\n## {title}\n", *_TABLE, *map(_format_row, own), ""]))
    shared = ["image_size", *(each.name for each in list_options(ReadingFields))]
    more = [each for each in list_options(InputOptions) if each.name not in shared]
    parts.append(_INPUT.format(shared=", ".join(f"`{name}`" for name in shared)))
    parts.append("\n".join(["", *_TABLE, *map(_format_row_without_flag, more), ""]))
    service = list_options(KubeflowFields, VertexOptions)
    parts += [_SUBMISSION, "\n".join(["", *_TABLE, *map(_format_row, service), ""])]
    return "".join(parts)


def _format_row(field: OptionField) -> str:
    flag = field.flag and (
        field.flag.replace("--", "--no-") if field.default is True else field.flag
    )
    return _format_row_without_flag(field, f"<br>`{flag}`" if flag else "")


def _format_row_without_flag(field: OptionField, flag: str = "") -> str:
    return f"| `{field.name}`{flag} | {_format_default(field)} | {' '.join(_describe(field))} |"


def _describe(field: OptionField) -> Iterator[str]:
    known = field.option
    yield known.help.replace("|", "\\|")
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


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else PAGE).write_text(format_page())
