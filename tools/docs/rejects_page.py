"""The page of the reasons for rejects: each code, what to do, and the faults that lead to it."""

from __future__ import annotations

import re
from collections import defaultdict

from faults import read_faults

from darkroom.dataset.rejects import REJECT_HINTS
from tables import escape, format_table

_HEAD = """# Reasons for rejects

{generated}

A rejected row is in `rejects.parquet` and `rejects.jsonl`, with its row number, its URI and a
reason. The reason is one of the codes below. The other rows are not affected. `rejects.jsonl` is
itself a list of images: fix the images, then convert that file.
[Bad input](bad-input.md) shows all faults, also those that stop a run.

"""
# So many faults of a reason are shown.
_SHOWN = 3


def format_page(generated: str) -> str:
    """Returns the text of the page.

    Args:
        generated: The sentence that says how the page is written.
    """
    causes: dict[str, list[str]] = defaultdict(list)
    for fault in read_faults():
        for code in re.findall(r"`(\w+)`", fault.code):
            if fault.input not in causes[code]:
                causes[code].append(fault.input)
    rows = []
    for code, hint in sorted(REJECT_HINTS.items()):
        more = ["..."] if len(causes[code]) > _SHOWN else []
        rows.append((f"`{code}`", "; ".join(causes[code][:_SHOWN] + more), escape(hint)))
    return _HEAD.format(generated=generated) + format_table(
        ("reason", "seen with", "what to do"), rows
    )
