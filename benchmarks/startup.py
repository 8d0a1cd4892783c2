"""How long `darkroom --help` takes to start: wall and processor time of new processes.

    python benchmarks/startup.py [ROUNDS]

Prints median and best of each command, beside a Python that does nothing. With `-v` also the ten
slowest imports of `darkroom run --help`.
"""

from __future__ import annotations

import re
import resource
import statistics
import subprocess
import sys
import time

_COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "darkroom --help": ["-m", "darkroom.cli", "--help"],
    "darkroom convert --help": ["-m", "darkroom.cli", "convert", "--help"],
    "darkroom train --help": ["-m", "darkroom.cli", "train", "--help"],
    "darkroom run --help": ["-m", "darkroom.cli", "run", "--help"],
    "darkroom submit --help": ["-m", "darkroom.cli", "submit", "--help"],
}
_AIM_SECONDS = 0.2


def _measure(arguments: list[str]) -> tuple[float, float]:
    """Returns the seconds and the processor seconds of one process."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    seconds = time.perf_counter() - started
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime


def _print_imports() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *_COMMANDS["darkroom run --help"]],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = re.findall(r"import time: +(\d+) \| +(\d+) \| *(\S+)", done.stderr)
    print("\nslowest imports of darkroom run --help: own ms, with what they import")
    for own, total, name in sorted(rows, key=lambda row: -int(row[0]))[:10]:
        print(f"  {int(own) / 1000:6.1f} {int(total) / 1000:6.1f}  {name}")


def main() -> None:
    """Measures each command in turn, so that a busy moment does not hit one alone."""
    numbers = [each for each in sys.argv[1:] if each.isdigit()]
    rounds = int(numbers[0]) if numbers else 15
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in _COMMANDS}
    for _ in range(rounds):
        for name, arguments in _COMMANDS.items():
            taken[name].append(_measure(arguments))
    print(f"{'':26} median s  best s  processor s (median); aim {_AIM_SECONDS} s")
    for name, found in taken.items():
        walls, used = zip(*found, strict=True)
        median, best = statistics.median(walls), min(walls)
        print(f"{name:26} {median:8.3f} {best:7.3f} {statistics.median(used):12.3f}")
    if "-v" in sys.argv:
        _print_imports()


if __name__ == "__main__":
    main()
