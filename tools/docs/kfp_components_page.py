"""The page of the components without TFX: what each takes and makes. Needs neither kfp nor TFX."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import chain

from darkroom.steps.known import STEPS
from darkroom.steps.step import Parameter, Step
from options_page import is_described, link_options
from tables import escape, format_table

_HEAD = """# Components without TFX

{generated}

All are in `darkroom.kfp`, and as YAML files in `darkroom/kfp/yaml`.
[The guide](../guides/kfp-components.md) shows how they are used. Artifacts have the `system.*`
type of the same name. What is marked *run-time* is an input of `darkroom.kfp.make_pipeline` where
its argument `parameters` names it; other options are constants of a compiled pipeline.

[Options](options.md) have the defaults of their page. Where a default is not a value, an empty
text, list or table, or 0 stands for it, and -1 for that of `fine_tune_epochs`.
Of several values are {kinds}.

## In several components
"""
_HEADS = (
    ("input", "artifact", "meaning"),
    ("parameter", "default", "meaning"),
    ("output", "type", "meaning"),
)
_Row = tuple[str, str, str]


def format_page(generated: str) -> str:
    """Returns the text of the page.

    Args:
        generated: The sentence that says how the page is written.
    """
    steps = list(STEPS.values())
    tables = [_list_rows(each) for each in steps]
    times = Counter(row for rows in chain(*tables) for row in rows)
    shared = [
        [row for row in dict.fromkeys(chain(*rows)) if times[row] > 1]
        for rows in zip(*tables, strict=True)
    ]
    text = _HEAD.format(generated=generated, kinds=_list_kinds(steps)) + _format_tables(shared)
    return text + "".join(_format_component(each, list(chain(*shared))) for each in steps)


def _format_component(step: Step, shared: Collection[_Row]) -> str:
    image = "an image with TensorFlow" if step.needs_tensorflow else "the small image, too"
    image = "an image of yours, with darkroom" if step.own_image else image
    text = f"\n## {step.name}\n\n{step.help} It runs in {image}.\n"
    tables = _list_rows(step)
    text += _format_tables([[row for row in rows if row not in shared] for rows in tables])
    if names := [row[0] for rows in tables for row in rows if row in shared]:
        text += f"\nAs [in several](#in-several-components): {', '.join(names)}.\n"
    options = [each.name for each in step.parameters if _is_option(each)]
    return text + link_options(options, lambda field: f"`{field.name}`")


def _list_kinds(steps: Iterable[Step]) -> str:
    """Returns the names of options with several values, by their kind."""
    options = [each for one in steps for each in one.parameters if _is_option(each)]
    parts = []
    for kind in (list, dict):
        names = dict.fromkeys(f"`{each.name}`" for each in options if each.kind is kind)
        parts.append(f"{', '.join(names)} ({kind.__name__})")
    return "; ".join(parts)


def _list_rows(step: Step) -> tuple[list[_Row], ...]:
    """Returns the rows of each table, without the options that have their own page."""
    inputs = [
        (f"`{each.name}`", f"{each.kind}{', optional' if each.optional else ''}", escape(each.help))
        for each in step.inputs
    ]
    parameters = [_format_parameter(each) for each in step.parameters if not _is_option(each)]
    outputs = [(f"`{each.name}`", each.kind, escape(each.help)) for each in step.outputs]
    results = [(f"`{each.name}`", each.kind.__name__, escape(each.help)) for each in step.results]
    return inputs, parameters, outputs + results


def _is_option(parameter: Parameter) -> bool:
    return is_described(parameter.name, parameter.help)


def _format_tables(tables: Iterable[list[_Row]]) -> str:
    return "".join(
        "\n" + format_table(head, rows) for head, rows in zip(_HEADS, tables, strict=True) if rows
    )


def _format_parameter(each: Parameter) -> tuple[str, str, str]:
    default = "" if each.is_required else f"`{json.dumps(each.default)}`"
    mark = " *run-time*" if each.runtime else ""
    return f"`{each.name}`: {each.kind.__name__}", default, escape(each.help) + mark
