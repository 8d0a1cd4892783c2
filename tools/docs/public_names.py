"""Sphinx extension: the Python API of a module, read from its source without importing it.

On a page,

    ```{public-names} darkroom.input
    ```

shows each name of the module's `__all__`, with signature and docstring. It warns about what is not
documented, and the strict build fails on that.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import griffe
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

_log = logging.getLogger(__name__)
# TFX calls these of a component, and reads its tables; users of a component do neither.
_OF_TFX = {"DRIVER_CLASS", "EXECUTOR_SPEC", "SPEC_CLASS", "TYPE_ANNOTATION", "TYPE_NAME"}


class PublicNames(SphinxDirective):
    """Shows the public names of one module."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Returns the documentation as nodes."""
        folder = Path(self.env.app.confdir).parent / self.config.public_names_path
        module = _find_module(load_package(folder), self.arguments[0])
        lines = [f"```{{py:module}} {module.path}", "```", ""]
        names = list_public_names(module)
        for path in find_undocumented(module, names):
            _log.warning("%s is not documented", path, location=self.get_location())
        # A name that several modules of a page have is shown once.
        shown = self.env.current_document.setdefault("public_names", {})
        for name in filter(module.members.get, names):
            item, path = _resolve(module[name]), f"{module.path}.{name}"
            if item.path in shown:
                lines += [f"- {{py:obj}}`{shown[item.path]}`", ""]
            else:
                shown[item.path] = path
                lines += _format_object(item, path)
        container = nodes.container()
        self.state.nested_parse(StringList(lines, module.path), self.content_offset, container)
        return container.children


@functools.cache
def load_package(folder: Path) -> Any:
    """Reads the package `darkroom` below a folder, without importing it."""
    package = griffe.load("darkroom", search_paths=[str(folder)], resolve_aliases=True)
    modules = [package]
    for module in modules:
        modules += [each for each in module.modules.values() if not each.is_alias]
        for each in module.classes.values():
            if each.is_alias:
                continue
            for member in each.attributes.values():
                _document_option(module, member)
            if "__init__" in each.members:
                for parameter in each["__init__"].parameters:
                    parameter.default = _find_default(parameter.default)
    return package


def _find_default(value: Any) -> Any:
    """Returns the default of an option, or None if it must be given; others as they are."""
    text = str(value)
    if text.startswith("option("):
        call = ast.parse(text, mode="eval").body
        return ast.unparse(call.args[0]) if isinstance(call, ast.Call) else value
    return None if text.startswith("field(metadata=") else value


def _document_option(module: griffe.Module, member: griffe.Attribute) -> None:
    """Gives a field that is an option the words of its `option(...)` or `describe_option(...)`."""
    calls = re.findall(
        r"\b(?:option|describe_option)\(|metadata=([A-Z_]+)", text := str(member.value)
    )
    for name in filter(None, calls):
        text = str(_resolve(module[name]).value) if name in module.members else ""
    if not calls or not text:
        return
    for call in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("option", "describe_option"):
            words = [*call.args, *(each.value for each in call.keywords if each.arg == "more")]
            said = [each.value for each in words if isinstance(each, ast.Constant)]
            sentences = [each for each in said if isinstance(each, str) and each.endswith(".")]
            if sentences:
                member.docstring = griffe.Docstring(" ".join(sentences), parent=member)


def list_public_names(module: griffe.Module) -> list[str]:
    """Lists the names of a module's `__all__`."""
    return sorted(name for name in map(str, module.exports or ()) if not name.startswith("__"))


def find_undocumented(module: griffe.Module, names: Iterable[str]) -> Iterator[str]:
    """Yields what is not documented of some names: functions, classes, parameters, fields."""
    for name in names:
        if name not in module.members:
            yield f"{module.path}.{name} (it does not exist)"
            continue
        yield from _find_gaps(_resolve(module[name]), f"{module.path}.{name}")


def _find_gaps(item: Any, path: str) -> Iterator[str]:
    if item.is_attribute:
        return
    if item.docstring is None:
        yield path
        return
    if item.is_function:
        yield from (f"{path}({name})" for name in _find_missing_parameters(item))
    if item.is_class:
        described = _list_described(item, griffe.DocstringSectionKind.attributes)
        for name, member in _list_members(item):
            if member.is_function:
                yield from _find_gaps(member, f"{path}.{name}")
            elif member.docstring is None and name not in described | _list_inherited(item):
                yield f"{path}.{name}"


def _find_missing_parameters(function: Any) -> set[str]:
    described = _list_described(function, griffe.DocstringSectionKind.parameters)
    names = {each.name.lstrip("*") for each in function.parameters} - {"self", "cls"}
    # A function with one obvious argument explains it in its first sentence.
    return names - described if described else set()


def _list_described(item: Any, kind: griffe.DocstringSectionKind) -> set[str]:
    sections = item.docstring.parse("google") if item.docstring else ()
    return {
        each.name.lstrip("*")
        for section in sections
        if section.kind is kind
        for each in section.value
    }


def _list_inherited(item: Any) -> set[str]:
    """Lists the attributes that a class of ours above this one explains."""
    kind = griffe.DocstringSectionKind.attributes
    return {name for base in item.mro() for name in _list_described(base, kind)}


def _list_members(item: Any) -> list[tuple[str, Any]]:
    return [
        (name, member)
        for name, member in item.members.items()
        if not name.startswith("_") and not member.is_alias and name not in _OF_TFX
    ]


def _resolve(item: Any) -> Any:
    """Returns what a name stands for, however many modules hand it on."""
    while item.is_alias:
        item = item.final_target
    return item


def _find_module(package: Any, path: str) -> Any:
    module = package
    for name in path.split(".")[1:]:
        module = module[name]
    return module


def _format_object(item: Any, path: str) -> list[str]:
    """Returns the directive of a function, class or value, as lines of Markdown."""
    owner, _, name = path.rpartition(".")
    if item.is_attribute:
        return _wrap("py:data", name, owner, [*_split(item.docstring)])
    if item.is_function:
        return _wrap("py:function", f"{name}{_format_signature(item)}", owner, _format_text(item))
    body = _format_text(item)
    initializer = item.members.get("__init__")
    if initializer is not None and initializer.docstring:
        body += _format_text(initializer, skip_text=True)
    for inner, member in _list_members(item):
        if member.is_function:
            kind, head = "py:method", f"{inner}{_format_signature(member)}"
            body += _wrap(kind, head, "", _format_text(member), member.labels)
        elif member.docstring:
            body += _wrap("py:attribute", inner, "", _split(member.docstring))
        elif inner in _list_inherited(item):
            body += _wrap("py:attribute", f"{inner} = {member.value}", "", [])
    signature = _format_signature(initializer) if initializer is not None else ""
    return _wrap("py:class", f"{name}{signature}", owner, body, fence="`" * 4)


def _wrap(
    kind: str,
    head: str,
    module: str,
    body: Iterable[str],
    labels: Iterable[str] = (),
    fence: str = "```",
) -> list[str]:
    options = [f":module: {module}"] if module else []
    options += [f":{label}:" for label in ("classmethod", "staticmethod") if label in labels]
    return [f"{fence}{{{kind}}} {head}", *options, "", *body, fence, ""]


def _format_signature(function: Any) -> str:
    words, is_keyword_only = [], False
    for each in function.parameters:
        if each.name in ("self", "cls"):
            continue
        kind = each.kind
        if kind is griffe.ParameterKind.keyword_only and not is_keyword_only:
            words.append("*")
            is_keyword_only = True
        is_keyword_only = is_keyword_only or kind is griffe.ParameterKind.var_positional
        star = {"variadic positional": "*", "variadic keyword": "**"}.get(kind.value, "")
        word = f"{star}{each.name}"
        if each.annotation is not None:
            word += f": {each.annotation}"
        if each.default is not None and not star:
            word += f" = {each.default}" if each.annotation is not None else f"={each.default}"
        words.append(word)
    returns = f" -> {function.returns}" if function.returns is not None else ""
    return f"({', '.join(words)}){returns}"


def _format_text(item: Any, skip_text: bool = False) -> list[str]:
    """Returns a docstring as Markdown: prose as it is, the rest as fields."""
    lines: list[str] = []
    for section in item.docstring.parse("google") if item.docstring else ():
        kind = section.kind.value
        if kind == "text":
            lines += [] if skip_text else [*section.value.splitlines(), ""]
        elif kind == "admonition":
            lines += [f"**{section.title}**: {section.value.description}", ""]
        elif kind == "examples":
            lines += [line for _, text in section.value for line in (text, "")]
        else:
            lines += [*_format_fields(kind, section.value), ""]
    return lines


def _format_fields(kind: str, entries: Iterable[Any]) -> Iterator[str]:
    for entry in entries:
        description = " ".join(entry.description.split())
        if kind == "raises":
            yield f":raises {entry.annotation}: {description}"
        elif kind in ("returns", "yields"):
            yield f":{kind}: {description}"
        else:
            field = "ivar" if kind == "attributes" else "param"
            yield f":{field} {entry.name.lstrip('*')}: {description}"


def _split(docstring: Any) -> list[str]:
    return docstring.value.splitlines() if docstring else []


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directive."""
    app.add_config_value("public_names_path", "", "env")
    app.add_directive("public-names", PublicNames)
    return {"parallel_read_safe": True}
