"""Prints how heavy the project is: code, tests, parts, flags, functions, words, trips.

    python tools/weigh.py

Lines of code are those without docstrings, comments and blank lines. Needs the core and pytest:
`tests/packaging/test_layers.py` has the table of parts. A trip is left out where the packages of
its command are missing.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tempfile
import threading
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from unittest import mock

sys.path.append(str(Path(__file__).parents[1]))
from tests.docs.blocks import write_given
from tests.packaging import test_layers as layers

import darkroom
from darkroom import cli
from darkroom.cli.parser import build_parser

ROOT = Path(__file__).resolve().parents[1]
_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
_GENERATED = ("command-line", "components", "kfp-components", "options", "bad-input", "rejects")
# What few who use these need is found by name, in `runtime/by_name.py`: said apart.
_COMMANDS = {
    "convert": "darkroom.conversion.convert",
    "validate": "darkroom.validation.validate",
    "load": "darkroom.input.loading",
    "reader": "darkroom.reader.opening",
    "verify": "darkroom.proof.verify",
}
# The names of a step, and its own modules.
_STEPS = {
    "diff": ({"diff_datasets", "DatasetDiff"}, r"\.steps\.diff$|\.dataset_diff\."),
    "duplicates": ({"find_duplicates"}, r"\.(steps|audit)\.duplicates$"),
}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


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


def list_owned(start: str, known: Mapping[str, Path], *, with_found: bool = False) -> set[str]:
    """Returns the modules that a module imports, and they in turn: what one reads to own it.

    Imports inside functions count, those for type checkers do not. Nor does the `__init__` of a
    package from which only another module is imported.

    Args:
        start: The module.
        known: The files of all modules.
        with_found: Whether what is found by name counts, too.
    """
    found: set[str] = set()
    todo = {start}
    while todo:
        found |= todo
        named = {other for name in todo for other in _list_imports(layers.parse(name), known)}
        if with_found:
            named.update(*map(layers.find_by_name, todo))
        todo = named.intersection(known) - found
    return found


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


def list_naming(names: set[str], own: str) -> list[str]:
    """Returns the modules that have a name in their code, not in words about it.

    Args:
        names: The names.
        own: A pattern of modules that are left out.
    """
    return [
        module
        for module in layers.list_modules()
        if not re.search(own, module)
        and any(
            not names.isdisjoint(map(str, vars(node).values()))
            for node in ast.walk(layers.parse(module))
        )
    ]


def list_flags() -> dict[str, list[str]]:
    """Returns the flags of each command."""
    [commands] = [each for each in build_parser()._actions if hasattr(each.choices, "items")]
    return {
        name: [each.option_strings[-1] for each in parser._actions if each.option_strings]
        for name, parser in commands.choices.items()
    }


def print_parts(sizes: Mapping[str, int]) -> None:
    """Prints the lines of each part and its packages, and what it imports of other parts."""
    packages: Counter[str] = Counter()
    for module, lines in sizes.items():
        packages[layers.find_layer(module)] += lines
    imports: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for module in sizes:
        for other in {each.module for each in layers.find_imports(module)} & sizes.keys():
            imports[layers.find_part(module)][layers.find_part(other)] += 1
    for part in layers.PARTS:
        own = {name: packages[name] for name in part.packages.split(", ")}
        each = ", ".join(f"{name} {lines:,}" for name, lines in own.items())
        print(f"lines of {part.name:15} {sum(own.values()):,} ({each})")
    for part in layers.PARTS:
        others = {name: count for name, count in imports[part.name].items() if name != part.name}
        each = ", ".join(f"{name} {count:,}" for name, count in sorted(others.items()))
        allowed = part.may_import.split(", ")
        forbidden = sum(count for name, count in others.items() if name not in allowed)
        print(f"imports by {part.name:13} {each or 'none'}; forbidden {forbidden}")


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


class _Arrived(BaseException):
    """A trip has come to where the code of others begins."""


def make_trips(given: Path) -> dict[str, Callable[[Path], object]]:
    """Returns the trips by name, each from given data to a new folder."""
    compiled = ROOT / "tests/pipelines/compilation/golden/kubeflow.yaml"
    submit = f"submit --target kubeflow --host http://service.invalid --pipeline {compiled}"

    def read(source: Path) -> object:
        return next(iter(darkroom.load(source, image_size=32, framework="numpy")["train"]))

    def fit(new: Path) -> None:
        with mock.patch("keras.Model.fit", side_effect=_Arrived):
            darkroom.train(given / "records", new, image_size=32)

    return {
        "row, byte": lambda new: darkroom.convert(given / "images.csv", new),
        "annotation, box in a batch": lambda new: read(
            Path(darkroom.convert(given / "annotations.json", new).output_dir)
        ),
        "load, batch": lambda _: read(given / "records"),
        "batch, fit": fit,
        "submit, request": lambda _: sys.exit(cli.main(submit.split())),
    }


def list_run(trip: Callable[[Path], object], folder: Path) -> set[str]:
    """Returns the files of the functions that run on a trip that was made before, so no imports."""
    files: set[str] = set()
    for profile in (None, lambda frame, *_: files.add(frame.f_code.co_filename)):
        with suppress(_Arrived), mock.patch("socket.getaddrinfo", side_effect=_Arrived):
            threading.setprofile(profile)
            sys.setprofile(profile)
            trip(Path(tempfile.mkdtemp(dir=folder)))
    sys.setprofile(None)
    threading.setprofile(None)
    return files


def main() -> int:
    """Prints the table."""
    known: dict[str, Path] = layers.list_modules()
    texts = [path.read_text("utf-8") for path in known.values()]
    sizes = dict(zip(known, map(count_code, texts), strict=True))
    single, private = count_single_calls(texts)
    flags = list_flags()
    by_hand, pages, generated = count_words()
    length, longest = find_longest_function([*known.values()])
    spelled = sum("jpeg_quality" in text for text in texts)
    print(f"lines of code            {sum(sizes.values()):,}")
    tests = sum(
        len(path.read_text("utf-8").splitlines()) for path in (ROOT / "tests").rglob("*.py")
    )
    print(f"lines of tests           {tests:,}")
    for name, start in _COMMANDS.items():
        owned, found = (list_owned(start, known, with_found=each) for each in (False, True))
        code, more = (sum(sizes[module] for module in each) for each in (owned, found))
        print(
            f"to own {name:17} {len(owned)} modules, {code:,} lines "
            f"(with what is found by name: {len(found)}, {more:,})"
        )
    print_parts(sizes)
    every = [flag for each in flags.values() for flag in each]
    print(
        f"commands, flags          {len(flags)}, {len(every)}, {len({*every})} distinct "
        f"(submit {len(flags['submit'])})"
    )
    print(f"private, one call site   {single / private:.0%} ({single} of {private})")
    print(f"longest function         {length} ({longest})")
    homonyms = layers.find_homonyms()
    print(f"homonyms                 {len(homonyms)} ({', '.join(homonyms)})")
    for name, (names, own) in _STEPS.items():
        naming = list_naming(names, own)
        print(f"files that name {name:8} {len(naming)} ({', '.join(naming)})")
    print(f"files with jpeg_quality  {spelled}")
    print(f"words by hand, generated {by_hand:,} in {pages} pages, {generated:,}")
    with tempfile.TemporaryDirectory() as scratch, suppress(ImportError, SystemExit):
        write_given(Path(scratch))
        for name, trip in make_trips(Path(scratch)).items():
            run = list_run(trip, Path(scratch)) & {*map(str, known.values())}
            print(f"run from {name:27} {len(run)} modules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
