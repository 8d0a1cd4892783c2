"""Runs two things in turn: what is measured, and what it is compared with."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

Run = Callable[[], float]


def run_pairs(own: Run, other: Run, pairs: int, aim: str = "") -> str:
    """Returns the cells of a row: both medians, the median of the ratios, and all ratios."""
    return show_pairs([(own(), other()) for _ in range(pairs)], aim)


def show_pairs(runs: Sequence[tuple[float, float]], aim: str = "") -> str:
    """Returns the cells of a row of pairs that have been measured; see `run_pairs`."""
    ratios = [first / second for first, second in runs]
    rates = [statistics.median(run[side] for run in runs) for side in range(2)]
    return (
        f"{rates[0]:>9,.0f}{rates[1]:>9,.0f}{statistics.median(ratios):>8.2f}"
        f"  {aim}{' '.join(f'{ratio:.2f}' for ratio in ratios)}"
    )
