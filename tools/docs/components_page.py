"""The page of the components: what each takes, gives and can be told. Needs TFX."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from tfx.dsl.components.base.base_component import BaseComponent

import darkroom.components
from darkroom.options.fields import list_options
from darkroom.options.validation import ValidationFields
from options_page import link_options, trim_text
from tables import escape, format_table

_HEAD = """# Components

{generated}

All are in `darkroom.components`. A component takes artifacts from the `outputs` of others.
Execution properties are text or numbers; structures are JSON text. Of an argument that is one of
the [options](options.md), only what differs is here.
"""
_VALIDATION_HEAD = """
## ValidationOptions

What ImageValidator judges, and how strictly; `darkroom run` has the same options.
[The gate](../guides/pipeline.md#the-gate) explains the checks. A policy is
`fail`, which makes ValidationGate stop the run, `warn`, or `off`:
`ValidationOptions(policies={"duplicates": "fail", "small_classes": "off"}, min_class_images=50)`.
"""
# The parameters of a component's constructor, as its docstring explains them.
_ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.M)


def format_page(generated: str) -> str:
    """Returns the text of the page.

    Args:
        generated: The sentence that says how the page is written.
    """
    found = (getattr(darkroom.components, name) for name in sorted(darkroom.components.__all__))
    classes = [each for each in found if issubclass(each, BaseComponent)]
    text = _HEAD.format(generated=generated) + "".join(map(_format_component, classes))
    return text + _VALIDATION_HEAD + _link([each.name for each in list_options(ValidationFields)])


def _format_component(component: Any) -> str:
    spec = component.SPEC_CLASS
    is_ours = "__init__" in vars(component)
    # The docstrings of ours say what they take and give.
    inputs = "" if is_ours else _format_inputs(spec.INPUTS)
    names = ", ".join(f"`{name}`" for name in spec.PARAMETERS)
    properties = f"\nExecution properties: {names}.\n" if names else ""
    arguments = (
        _format_constructor(component)
        if is_ours
        else "\nIts arguments are those of TFX's component of the same name.\n"
    )
    head = f"\n## {component.__name__}\n\n{inspect.getdoc(component)}\n"
    return head + inputs + properties + arguments


def _format_inputs(slots: Mapping[str, Any]) -> str:
    rows = []
    for key, slot in slots.items():
        name = getattr(slot.type, "__name__", str(slot.type))
        rows.append((f"`{key}`", f"`{name}`, optional" if slot.optional else f"`{name}`"))
    return "\n" + format_table(("input", "artifact"), rows)


def _format_constructor(component: Any) -> str:
    described = dict(_ARGUMENT.findall(inspect.getdoc(component.__init__) or ""))
    rows, options = [], []
    for name, parameter in inspect.signature(component.__init__).parameters.items():
        if name == "self" or parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if meaning := trim_text(name, " ".join(described[name].split())):
            empty = parameter.default is inspect.Parameter.empty
            default = "" if empty else f"`{_show(parameter.default)}`"
            rows.append((f"`{name}`", default, escape(meaning)))
        else:
            options.append(name)
    return "\n" + format_table(("argument", "default", "meaning"), rows) + _link(options)


def _link(names: Collection[str]) -> str:
    return link_options(names, lambda field: f"`{field.name}`")


def _show(default: Any) -> str:
    return json.dumps(default) if isinstance(default, str) else repr(default)
