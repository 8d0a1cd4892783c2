"""Writes docs/reference/bad-input.md from the tests that are marked as bad inputs.

A test, in whatever folder below tests/, says which row of the catalogue it covers:

    @pytest.mark.fault(27, "missing file", "rejected", code="`missing`", hint="...")
    def test_a_missing_file_is_rejected(...): ...

Marks may be stacked, and may be in `pytest.param(..., marks=pytest.mark.fault(...))`. Numbers run
from 1 to 112, system faults are "S1" to "S8". The texts are Markdown, written out or constants of
the module: this script reads the source of the tests and does not import them.

    python tests/bad_input/faults.py            writes the page
    python tests/bad_input/faults.py --check    exits 1 when the page is out of date
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "bad-input.md"
NUMBERS = range(1, 113)

_SECTIONS = {
    "CSV and other lists": range(1, 27),
    "Paths and URIs": range(27, 41),
    "Images": range(41, 62),
    "Labels and the dataset": range(62, 69),
    "Several labels, and numbers": range(69, 74),
    "Images that look alike": range(74, 76),
    "Decisions": range(76, 79),
    "Groups, features and the gallery": range(79, 85),
    "What a source is read as": range(85, 95),
    "Annotations of boxes": range(95, 113),
}
# Where an input of a number is, if the input does not say so.
_PLACES = {
    106: "a list of objects",
    107: "Vertex AI",
    108: "a CSV with a row for each object",
    109: "AutoML",
    110: "Label Studio",
    111: "YOLO",
    112: "Pascal VOC",
    69: "a cell with several labels",
    71: "a column for each label",
    72: "a column of numbers",
}
_HEAD = """# Bad input

This page lists what can be wrong with the input, and what darkroom does about it. It is written by
`make reference` from the tests: every input has a test, to which its number links.

- A **rejected** row affects no other row. Its row number, URI, reason code and what is wrong are in
  `rejects.parquet` and `rejects.jsonl`, and rows = written + rejected + deduplicated. More rejected
  rows than `--max-rejects` (1 % unless given) end the run with exit code 1, without a dataset.
- **Refused** means that nothing is written. The message says what is wrong, where, and what to do.
  The exit code is 1 for data, 2 for usage, 3 for the environment.
- A **finding** is reported by ImageValidator after the conversion. Its policy (fail, warn, off)
  decides whether the gate stops the pipeline.
- Where there is no code, the input is taken as it is meant.
"""
_TABLE = """
| # | input | what darkroom does | code | hint |
| --- | --- | --- | --- | --- |
"""


class Fault(NamedTuple):
    """A mark: what goes in, what comes out, and the test that shows it."""

    number: int | str
    input: str
    behaviour: str
    code: str
    hint: str
    path: str


def read_faults(folder: Path = ROOT / "tests") -> list[Fault]:
    """Returns the marks of all tests below a folder, by number, then by file and line."""
    found: list[Fault] = []
    for path in sorted(folder.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.fault(" in text:
            name = path.relative_to(ROOT).as_posix()
            found.extend(_find_marks(ast.parse(text, str(path)), name))
    return sorted(found, key=lambda fault: _as_order(fault.number))


def _find_marks(tree: ast.Module, path: str) -> Iterator[Fault]:
    constants = {
        ast.unparse(node.targets[0]): node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.List)
    }
    if table := constants.get("FAULTS"):
        yield from _read_table(ast.literal_eval(table), path)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            for decorator in node.decorator_list:
                for call in ast.walk(decorator):
                    if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("mark.fault"):
                        yield _make_fault(call, constants, path)


def _read_table(table: list[Any], path: str) -> Iterator[Fault]:
    """Yields the faults of a table: number, what is wrong, cell, reason of the reject."""
    for number, what, _, reason in table:
        yield Fault(number, what, "rejected", f"`{reason}`", "", path)


def _make_fault(call: ast.Call, constants: Mapping[str, ast.expr], path: str) -> Fault:
    def read(node: ast.expr) -> Any:
        return ast.literal_eval(constants.get(ast.unparse(node), node))

    def take(
        number: int | str, input: str, behaviour: str, *, code: str = "", hint: str = ""
    ) -> Fault:
        return Fault(number, input, behaviour, code, hint, path)

    arguments = [read(argument) for argument in call.args]
    named = {str(word.arg): read(word.value) for word in call.keywords}
    return take(*arguments, **named)


def _as_order(number: int | str) -> tuple[bool, int]:
    return isinstance(number, str), int(str(number).lstrip("S"))


def format_page(faults: Iterable[Fault]) -> str:
    """Returns the text of docs/reference/bad-input.md."""
    faults = list(faults)
    text = _HEAD
    for title, numbers in _SECTIONS.items():
        text += _format_section(title, [fault for fault in faults if fault.number in numbers])
    return text + _format_section("The system", [f for f in faults if isinstance(f.number, str)])


def _format_section(title: str, faults: list[Fault]) -> str:
    # Inputs of one number with the same outcome are one line.
    lines: dict[tuple[str, ...], list[Fault]] = {}
    for fault in faults:
        outcome = (str(fault.number), fault.behaviour, fault.code, fault.hint)
        lines.setdefault(outcome, []).append(fault)
    text = "".join(_format_line(*outcome, each) for outcome, each in lines.items())
    return f"\n## {title}\n{_TABLE}{text}" if faults else ""


def _format_line(number: str, behaviour: str, code: str, hint: str, faults: list[Fault]) -> str:
    links = " ".join(dict.fromkeys(f"[{number}](../../{each.path})" for each in faults))
    inputs = "; ".join(dict.fromkeys(each.input for each in faults))
    if place := _PLACES.get(faults[0].number):
        inputs = f"{place}: {inputs}"
    cells = (links, inputs, behaviour, code, hint)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def main() -> int:
    """Writes the page, or with `--check` compares it; returns the exit code."""
    faults = read_faults()
    text = format_page(faults)
    if missing := sorted(set(NUMBERS) - {fault.number for fault in faults}):
        print(f"No test is marked for {missing}", file=sys.stderr)
    if "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    is_current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text
    if not is_current:
        script = Path(__file__).relative_to(ROOT)
        print(f"{PAGE} is out of date: run python {script}", file=sys.stderr)
    return int(bool(missing) or not is_current)


if __name__ == "__main__":
    sys.exit(main())
