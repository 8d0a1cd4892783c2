"""The page of the components without TFX: what each takes and makes. Needs neither kfp nor TFX."""

from __future__ import annotations

import json

from darkroom.kfp.interface import Interface, Parameter
from darkroom.kfp.interfaces import INTERFACES
from tables import escape, format_table

_HEAD = """# Components without TFX

{generated}

All are in `darkroom.kfp`, and as YAML files in `darkroom/kfp/yaml`.
[The guide](../guides/kfp-components.md) shows how they are used. Artifacts have the `system.*`
type of the same name. What is marked *run-time* is an input of `darkroom.kfp.make_pipeline` where
its argument `parameters` names it; other options are constants of a compiled pipeline.
"""


def format_page(generated: str) -> str:
    """Returns the text of the page.

    Args:
        generated: The sentence that says how the page is written.
    """
    parts = [_HEAD.format(generated=generated), *map(_format_component, INTERFACES.values())]
    return "".join(parts)


def _format_component(interface: Interface) -> str:
    image = "an image with TensorFlow" if interface.needs_tensorflow else "the small image, too"
    text = f"\n## {interface.name}\n\n{interface.help} It runs in {image}.\n"
    inputs = [
        (f"`{each.name}`", f"{each.kind}{', optional' if each.optional else ''}", escape(each.help))
        for each in interface.inputs
    ]
    outputs = [(f"`{each.name}`", each.kind, escape(each.help)) for each in interface.outputs]
    results = [
        (f"`{each.name}`", each.kind.__name__, escape(each.help)) for each in interface.results
    ]
    for head, rows in (
        (("input", "artifact", "meaning"), inputs),
        (("parameter", "default", "meaning"), map(_format_parameter, interface.parameters)),
        (("output", "type", "meaning"), [*outputs, *results]),
    ):
        table = list(rows)
        text += "\n" + format_table(head, table) if table else ""
    return text


def _format_parameter(each: Parameter) -> tuple[str, str, str]:
    default = "" if each.is_required else f"`{json.dumps(each.default)}`"
    mark = " *run-time*" if each.runtime else ""
    return f"`{each.name}`: {each.kind.__name__}", default, escape(each.help) + mark
