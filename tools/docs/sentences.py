"""Prints how long the sentences of the documentation are, page by page and in all.

    python tools/docs/sentences.py             README, CONTRIBUTING and docs/
    python tools/docs/sentences.py PAGE ...    these pages
    python tools/docs/sentences.py --brief     only the line for all

Code, tables and headings do not count. Exits 1 when the sentences of all pages together are longer
than they should be: `MEDIAN` and `NINE_IN_TEN` words. Needs the standard library alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
MEDIAN, NINE_IN_TEN = 17, 30

_FENCE = re.compile(r"^( *)(`{3,})[^\n]*\n.*?^\1\2`*$", re.M | re.S)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4}[^\n]*\n)+")
_NOT_PROSE = re.compile(r"^\s*(#|\||!\[|<|:\w+:)")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
# A full stop inside a name, as in `dataset.json`, is not followed by white space.
_END = re.compile(r"(?<=[.!?])[)\"*_]*\s+(?=[\"(*_`\[]*[A-Z0-9`])")


def find_sentences(text: str) -> Iterator[str]:
    """Yields the sentences of a Markdown text; a list's item ends one, too."""
    prose = _INDENTED.sub("\n", _FENCE.sub("\n", text))
    block: list[str] = []
    for line in [*prose.splitlines(), ""]:
        if block and (not line.strip() or _NOT_PROSE.match(line) or _ITEM.match(line)):
            yield from _END.split(_LINK.sub(r"\1", " ".join(block)))
            block = []
        if line.strip() and not _NOT_PROSE.match(line):
            block.append(_ITEM.sub("", line).strip())


def count_words(text: str) -> list[int]:
    """Returns the number of words of each sentence of three words or more."""
    lengths = (
        sum(any(letter.isalnum() for letter in word) for word in sentence.split())
        for sentence in find_sentences(text)
    )
    return [length for length in lengths if length > 2]


def describe(lengths: list[int]) -> tuple[int, float, int]:
    """Returns the number of sentences, the median, and what nine in ten do not exceed."""
    ordered = sorted(lengths)
    return len(ordered), median(ordered), ordered[max(0, -(-9 * len(ordered) // 10) - 1)]


def main() -> int:
    """Prints the table; returns the exit code."""
    is_brief = "--brief" in sys.argv
    named = [Path(name).resolve() for name in sys.argv[1:] if not name.startswith("--")]
    usual = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    everything: list[int] = []
    print(f"{'sentences':>9} {'median':>6} {'nine in ten':>11}  page")
    for page in named or usual:
        lengths = count_words(page.read_text(encoding="utf-8"))
        everything += lengths
        if lengths and not is_brief:
            name = page.relative_to(ROOT) if page.is_relative_to(ROOT) else page
            _print(lengths, str(name))
    number, middle, long = _print(everything, "all")
    if middle <= MEDIAN and long <= NINE_IN_TEN:
        return 0
    print(f"Aim: {MEDIAN} and {NINE_IN_TEN} words in {number:,} sentences.", file=sys.stderr)
    return 1


def _print(lengths: list[int], name: str) -> tuple[int, float, int]:
    number, middle, long = described = describe(lengths)
    mark = " *" if middle > MEDIAN or long > NINE_IN_TEN else ""
    print(f"{number:>9,} {middle:>6g} {long:>11}  {name}{mark}")
    return described


if __name__ == "__main__":
    sys.exit(main())
