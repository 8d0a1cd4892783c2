"""Finds words and phrases that plain English does without, in code and docs.

Run by `make lint`. It finds what a pattern can find; the rest is a matter of reading.
"""

from __future__ import annotations

import re
import subprocess
import sys
from bisect import bisect_right
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

_PLACES = "above|alone|at|before|behind|below|beside|directly|elsewhere|in|inside|on|outside|there"

# What is found, and what to write instead. Groups do not capture: their number is the entry's.
WORDS = {
    r"(?<!there )\b(?:is|are|was|were|be) no (?!longer\b|more\b|less\b|fewer\b|such\b|better\b)"
    r"(?=[a-z`'\"])": '"is not a"',
    r"\banew\b": '"again", or "a new"',
    r"\b(?:un)?mend(?:s|ed|ing)?\b": '"fix"',
    r"\bt(?:ake|akes|ook|aken|aking) up again\b": '"resume"',
    rf"\bstands? (?:{_PLACES}|once|twice|under)\b": '"is"',
    rf"\b(?:lies?|lay) (?:{_PLACES}|under|upright|where)\b": '"is"',
    r"\brefused rows?\b": '"rejected row"',
    r"\brows? (?:that )?(?:is|are|was|were) refused\b": '"rejected"',
    r"\bin silence\b": '"silently", or "without a message"',
    r"\bheld against\b": '"compared with"',
    r"\bcost(?:s|ing)? (?:its|their|his|a) (?:own )?rows?\b": '"rejects the row"',
    r"\bslips? of the pen\b": '"typing error"',
    r"\bto be had\b": '"available"',
    r"\bas often as not\b": '"often"',
}
PATTERN = re.compile("|".join(f"({words})" for words in WORDS), re.IGNORECASE)
ENDINGS = (".md", ".py", ".sh", ".toml", ".yaml", ".yml", "Dockerfile", "Makefile")
SKIPPED = ("constraints/", "check_words.py", "test_words.py", "/golden/")


def list_files() -> list[Path]:
    """Lists the files of the checkout that people write."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = (name for name in listed.split("\0") if name.endswith(ENDINGS))
    return [ROOT / name for name in names if not any(part in name for part in SKIPPED)]


def find_words(text: str) -> list[tuple[int, str, str]]:
    """Returns the line, the words and what to write instead, for each hit in a text."""
    # A sentence continues in the next line. The name of a test is a sentence, too.
    starts: list[int] = []
    joined = ""
    for line in text.splitlines():
        starts.append(len(joined))
        line = re.sub(r"def test_\w+", lambda name: name[0].replace("_", " "), line)
        joined += line.strip().removeprefix("#").strip() + " "
    hits = []
    for match in PATTERN.finditer(joined):
        instead = list(WORDS.values())[(match.lastindex or 1) - 1]
        hits.append((bisect_right(starts, match.start()), match[0], instead))
    return hits


def main() -> int:
    """Prints every hit and returns 1 if there is one."""
    found = 0
    for path in list_files():
        for line, words, instead in find_words(path.read_text(encoding="utf-8")):
            print(f"{path.relative_to(ROOT)}:{line}: {words!r}: write {instead}")
            found += 1
    if found:
        print(f"Found {found} phrases that plain English does without.", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
