"""Runs `darkroom ARGUMENTS` in a process that kills itself at a step.

    python killed_process.py STEP FILE ARGUMENTS...

STEP: the call of the system before which it is killed, from 1; 0 for none. FILE gets the number of
calls of a run that came to its end.
"""

from __future__ import annotations

import sys
from pathlib import Path

from interrupted_runs import SYSTEM, Counter


def main(step: str, steps: str, *argv: str) -> int:
    from darkroom import cli

    counter = Counter(int(step))
    for name in SYSTEM:
        counter.watch(name)
    code = cli.main(argv)
    Path(steps).write_text(str(counter.steps))
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
