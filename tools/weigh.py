"""Prints how heavy the project is: code, tests, flags, functions, folders, words.

    python tools/weigh.py

Lines of code are those without docstrings, comments and blank lines. Needs the core alone.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CODE = ("src", "components", "pipelines")
_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
_GENERATED = ("command-line", "components", "kfp-components", "options", "bad-input", "rejects")
# What few who use these need is found by name, in `runtime/by_name.py`, and does not count.
_COMMANDS = {
    "convert": "darkroom.conversion.convert",
    "validate": "darkroom.validation.validate",
    "load": "darkroom.input.loading",
    "reader": "darkroom.reader.opening",
    "verify": "darkroom.proof.verify",
}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def list_files(*folders: str) -> Iterator[Path]:
    """Yields the Python files of folders."""
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def count_code(text: str) -> int:
    """Returns the number of lines that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | _Function) and ast.get_docstring(node):
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def count_single_calls(texts: list[str]) -> tuple[int, int]:
    """Returns the numbers of private functions: those that one place names, and all."""
    single = total = 0
    for text in texts:
        tree = ast.parse(text)
        names = Counter(
            node.attr if isinstance(node, ast.Attribute) else node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute | ast.Name)
        )
        for node in ast.walk(tree):
            if isinstance(node, _Function) and re.match("_(?!_)", node.name):
                total += 1
                single += names[node.name] == 1
    return single, total


def find_longest_function(paths: list[Path]) -> tuple[int, str]:
    """Returns the length of the longest function with its docstring, and its name."""
    return max(
        ((node.end_lineno or 0) - node.lineno + 1, f"{path.relative_to(ROOT)}: {node.name}")
        for path in paths
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, _Function)
    )


def find_folder_circles(paths: list[Path]) -> list[str]:
    """Returns the folders that import their parent and are imported by it."""
    homes = {"src/darkroom": "darkroom"} | {name: f"darkroom.{name}" for name in CODE[1:]}
    arrows: set[tuple[str, str]] = set()
    folders = {}
    for path in paths:
        place = str(path.relative_to(ROOT).parent)
        home = next(name for name in homes if f"{place}/".startswith(f"{name}/"))
        folders[path] = homes[home] + place.removeprefix(home).replace("/", ".")
    known = set(folders.values())
    for path, folder in folders.items():
        if path.name == "__init__.py":
            continue  # names that it passes on
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                targets = [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
                deepest = max((t for t in targets if t in known), key=len, default=None)
                target = deepest or node.module.rpartition(".")[0]
                arrows.add((folder, target))
    return sorted(
        folder
        for folder in known
        for parent in (folder.rpartition(".")[0],)
        if parent.count(".") and (folder, parent) in arrows and (parent, folder) in arrows
    )


def list_owned(start: str) -> set[Path]:
    """Returns the files that a module imports, and they in turn: what one reads to own it.

    Imports inside functions count, those for type checkers do not. Nor does the `__init__` of a
    package from which only another module is imported.
    """
    homes = {"darkroom": ROOT / "src/darkroom"}
    homes |= {f"darkroom.{name}": ROOT / name for name in CODE[1:]}
    known = {}
    for package, folder in homes.items():
        for path in folder.rglob("*.py"):
            names = path.relative_to(folder).with_suffix("").parts
            names = names[:-1] if names[-1] == "__init__" else names
            known[".".join((package, *names))] = path
    found: set[str] = set()
    todo = {start}
    while todo:
        found |= todo
        trees = [ast.parse(known[name].read_text("utf-8")) for name in todo]
        named = {name for tree in trees for name in _list_imports(tree, known)}
        todo = named.intersection(known) - found
    return {known[name] for name in found}


def _list_imports(node: ast.AST, known: Container[str]) -> Iterator[str]:
    """Yields the modules that a piece of code imports, but not for type checkers."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import):
        yield from (each.name for each in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        names = [f"{node.module}.{each.name}" for each in node.names]
        yield from (name if name in known else node.module for name in names)
    for child in ast.iter_child_nodes(node):
        yield from _list_imports(child, known)


def count_flags() -> Iterator[tuple[str, int]]:
    """Yields each command and the number of its flags."""
    from darkroom.cli.parser import build_parser

    [commands] = [each for each in build_parser()._actions if hasattr(each.choices, "items")]
    for name, parser in commands.choices.items():
        yield name, sum(bool(each.option_strings) for each in parser._actions)


def count_words() -> tuple[int, int, int]:
    """Returns the words of pages written by hand, their number, and the words of generated ones."""
    pages = [
        page for page in sorted((ROOT / "docs").rglob("*.md")) if "decisions" not in page.parts
    ]
    made = [page for page in pages if page.parent.name == "reference" and page.stem in _GENERATED]
    words = {page: len(page.read_text("utf-8").split()) for page in pages}
    total = sum(words.values())
    generated = sum(words[page] for page in made)
    return total - generated, len(pages) - len(made), generated


def main() -> int:
    """Prints the table."""
    paths = list(list_files(*CODE))
    texts = [path.read_text("utf-8") for path in paths]
    single, private = count_single_calls(texts)
    flags = dict(count_flags())
    by_hand, pages, generated = count_words()
    length, longest = find_longest_function(paths)
    circles = find_folder_circles(paths)
    spelled = sum("jpeg_quality" in text for text in texts)
    print(f"lines of code            {sum(map(count_code, texts)):,}")
    tests = sum(len(path.read_text("utf-8").splitlines()) for path in list_files("tests"))
    print(f"lines of tests           {tests:,}")
    for name, start in _COMMANDS.items():
        owned = [path.read_text("utf-8") for path in list_owned(start)]
        code = sum(map(count_code, owned))
        print(f"to own {name:17} {len(owned)} modules, {code:,} lines")
    print(
        f"commands, flags          {len(flags)}, {sum(flags.values())} (submit {flags['submit']})"
    )
    print(f"private, one call site   {single / private:.0%} ({single} of {private})")
    print(f"longest function         {length} ({longest})")
    print(f"folders in a circle      {len(circles)} ({', '.join(circles)})")
    print(f"files with jpeg_quality  {spelled}")
    print(f"words by hand, generated {by_hand:,} in {pages} pages, {generated:,}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
