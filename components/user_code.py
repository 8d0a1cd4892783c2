"""Finds the code of a user's that a function runs: its module, and the imports of that.

Modules are found and read, never imported. Those of Python itself and of darkroom are left out, and
the installed packages that a module imports: they do not change between two runs. What is imported
by a computed name is not seen.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence

_INSTALLED = {"site-packages", "dist-packages"}
_NOT_THE_USERS = {"darkroom", *sys.builtin_module_names, *sys.stdlib_module_names}


def read_sources(module: str, places: Sequence[str] = ()) -> dict[str, str]:
    """Returns the source of a module, and of the user's modules that it imports, by module.

    Args:
        module: Name of the module.
        places: Folders and wheels in which modules are looked for before `sys.path`.

    Returns:
        Source by name; empty when the module is Python's or darkroom's, or cannot be found.
    """
    importlib.invalidate_caches()
    sources: dict[str, str] = {}
    names, seen = [*_list_parents(module)], set[str]()
    while names:
        name = names.pop()
        if name in seen or name.partition(".")[0] in _NOT_THE_USERS:
            continue
        seen.add(name)
        spec = _find_module(name, [*places, *sys.path])
        source = _read_source(spec, even_installed=name == module) if spec else None
        if spec is None or source is None:
            continue
        sources[name] = source
        package = name if spec.submodule_search_locations is not None else name.rpartition(".")[0]
        names += _list_imports(source, package)
    return sources


def fingerprint_sources(sources: dict[str, str]) -> str:
    """Returns a text that changes when a source does; empty without sources."""
    if not sources:
        return ""
    return hashlib.sha256(repr(sorted(sources.items())).encode("utf-8", "replace")).hexdigest()


def forget_modules(names: Sequence[str]) -> None:
    """Makes the next import of modules read their files again.

    TFX does that with the module of `run_fn` alone. Its imports would stay as they were when
    the process first imported it.
    """
    for name in names:
        if name != "__main__":
            sys.modules.pop(name, None)


def _find_module(name: str, places: Sequence[str]) -> importlib.machinery.ModuleSpec | None:
    """Returns where a module is, without an import of it or of a package around it; else None."""
    found, searched = None, list(places)
    for number, part in enumerate(name.split(".")):
        try:
            # By the last part of its name: for all of it, the packages around it must be imported.
            found = importlib.machinery.PathFinder.find_spec(part, searched)
            if found is None and not number:
                found = importlib.util.find_spec(part)  # a package that is installed editable
        except (ImportError, ValueError, AttributeError):
            return None
        if found is None:
            return None
        searched = list(found.submodule_search_locations or ())
    return found


def _read_source(
    spec: importlib.machinery.ModuleSpec, *, even_installed: bool = False
) -> str | None:
    """Returns a module's source; None when it has none, or is not the user's."""
    if spec.submodule_search_locations is not None and spec.origin in (None, "namespace"):
        return ""
    if not even_installed and not _INSTALLED.isdisjoint((spec.origin or "").split(os.sep)):
        return None
    try:
        source: str | None = spec.loader.get_source(spec.name)  # type: ignore[union-attr]
    except (AttributeError, ImportError, OSError):
        return None
    return source


def _list_imports(source: str, package: str) -> Iterator[str]:
    """Yields the names that may be modules, with the packages around them."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return  # the error comes when the module is imported
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                yield from _list_parents(each.name)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                outer = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*filter(None, outer), *filter(None, [base])])
            if base:
                yield from _list_parents(base)
            for each in node.names:
                yield f"{base}.{each.name}" if base else each.name


def _list_parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))
