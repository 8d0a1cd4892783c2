"""What a comparison of ways to read has found, as a table, a picture and advice."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from darkroom import storage
from darkroom.errors import StorageError
from darkroom.profiling.benchmark.chart import Bars, draw_chart

PICTURE_FILE, TABLE_FILE, JSON_FILE = FILES = ("input.png", "input.md", "input.json")
BASELINE = "darkroom"

# A way that is begun anew every few batches is measured at beginning, not at reading.
_LEAST_BATCHES = 8
# Runs of the same way differ by about as much.
_NOTABLE = 1.1
_COLUMNS = ("way", "images/s", f"to {BASELINE}", "idle", "prepared in")


@dataclass(frozen=True, kw_only=True)
class WayResult:
    """How fast a way is; all of its numbers are None where it was left out.

    Attributes:
        name: The way.
        advice: What to do to read so.
        is_stored: Whether the dataset has to be converted in another way for it.
        images_per_second: When batches are taken as fast as they come; the median of all rounds.
        idle_share: Of the time, when an accelerator takes them; the median of all rounds.
        prepare_seconds: Time until it could be read for the first time.
        rounds: Images a second of each round.
        skipped: Why it was left out.
    """

    name: str
    advice: str
    is_stored: bool
    images_per_second: float | None = None
    idle_share: float | None = None
    prepare_seconds: float | None = None
    rounds: tuple[float, ...] = ()
    skipped: str = ""


@dataclass(frozen=True, kw_only=True)
class InputComparison:
    """Ways to read the same images, compared.

    Attributes:
        directory: The dataset.
        images: Number of images in the sample.
        mean_bytes: Mean size of their files.
        image_size: (height, width) of the views in pixels.
        batch_size: Images in a batch.
        cores: Cores that this process may use.
        step_seconds: Length of the emulated accelerator's step.
        results: One for each way.
    """

    directory: str
    images: int
    mean_bytes: float
    image_size: tuple[int, int]
    batch_size: int
    cores: int
    step_seconds: float
    results: tuple[WayResult, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns the comparison as values that JSON knows, with caution and advice."""
        told = {"caution": find_caution(self.images, self.batch_size)}
        return {**dataclasses.asdict(self), **told, "advice": advise(self.results)}


def check_output(output_dir: str | os.PathLike[str]) -> None:
    """Makes the folder, and writes a file there, which goes again.

    Raises:
        StorageError: One of them does not work.
    """
    folder = storage.absolute(output_dir)
    probe = storage.join(folder, f"{storage.PART_PREFIX}probe")
    try:
        storage.make_folder(folder)
        storage.write_bytes(probe, b"")
        storage.delete(probe)
    except OSError as error:
        reason = "it is a file" if isinstance(error, FileExistsError) else error.strerror or error
        raise StorageError(
            f"The folder {folder} for picture and tables cannot be written to: {reason}.",
            "Name another one with --output-dir.",
        ) from error


def write_comparison(comparison: InputComparison, output_dir: str | os.PathLike[str]) -> list[str]:
    """Writes the picture, the table in Markdown and as JSON; returns their paths."""
    folder = storage.absolute(output_dir)
    contents = (
        draw_comparison(comparison),
        (format_markdown(comparison) + "\n").encode(),
        (json.dumps(comparison.to_dict(), indent=2) + "\n").encode(),
    )
    storage.make_folder(folder)
    paths = [storage.join(folder, name) for name in FILES]
    for path, content in zip(paths, contents, strict=True):
        storage.write_bytes(path, content)
    return paths


def find_caution(num_images: int, batch_size: int) -> str:
    """Returns why a sample says little; the empty text when it has eight batches or more."""
    needed = _LEAST_BATCHES * batch_size
    if num_images >= needed:
        return ""
    return (
        f"Too few images to tell which way is fastest: {num_images:,} are fewer than "
        f"{_LEAST_BATCHES} batches of {batch_size}. Take {needed:,} or more (--images, of a "
        "dataset that has them), or smaller batches."
    )


def format_comparison(comparison: InputComparison) -> str:
    """Returns the table for a terminal, any caution, and the advice as its last line."""
    rows = [_COLUMNS, *map(_format_cells, _pair_with_ratios(comparison.results))]
    widths = [max(len(row[column]) for row in rows if len(row) > 2) for column in range(5)]
    lines = [_describe_sample(comparison), ""]
    for name, *cells in rows:
        shown = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=False))
        lines.append(f"{name:<{widths[0]}}  {cells[0] if len(cells) == 1 else shown}".rstrip())
    return "\n".join([*lines, "", *_conclude(comparison)])


def format_markdown(comparison: InputComparison) -> str:
    """Returns the table in Markdown, between what was measured and caution and advice."""
    lines = [_describe_sample(comparison), "", _join_cells(_COLUMNS), "| --- |" + " ---: |" * 4]
    for pair in _pair_with_ratios(comparison.results):
        cells = _format_cells(pair)
        lines.append(_join_cells([*cells, *[""] * (len(_COLUMNS) - len(cells))]))
    return "\n".join([*lines, "", *_conclude(comparison)])


def draw_comparison(comparison: InputComparison) -> bytes:
    """Returns the picture, a PNG."""
    bars = []
    for result in comparison.results:
        values: tuple[float, ...] = ()
        texts: tuple[str, ...] = (f"left out: {result.skipped}",)
        if result.images_per_second is not None and result.idle_share is not None:
            values = result.images_per_second, result.idle_share
            texts = f"{result.images_per_second:,.0f}", f"{result.idle_share:.0%}"
        bars.append(Bars(result.name, values, texts, result.name == BASELINE))
    most = max(result.images_per_second or 0 for result in comparison.results)
    columns = (
        "images/s, taken as fast as they come",
        f"accelerator idles, steps of {comparison.step_seconds * 1000:.3g} ms",
    )
    return draw_chart(_describe_sample(comparison), columns, bars, (most, 1.0))


def advise(results: Sequence[WayResult]) -> str:
    """Returns which way is fastest, and what storing the dataset in another way would give."""
    measured = [result for result in results if result.rounds and result.advice]
    own = [result for result in measured if not result.is_stored]
    best = next((result for result in own if result.name == BASELINE), own[0])
    for result in own:
        if _is_faster(result, best):
            best = result
    others = [
        f"stored with {result.advice}: {_compare(result, best):.1f} times that"
        for result in measured
        if result.is_stored and _is_faster(result, best)
    ]
    rate = best.images_per_second or 0.0
    head = f"Fastest without other storage: {best.name} ({best.advice}), {rate:,.0f} images/s"
    return "; ".join([head, *(others or ["no other storage is faster"])]) + "."


def _conclude(comparison: InputComparison) -> list[str]:
    caution = find_caution(comparison.images, comparison.batch_size)
    return [*([caution, ""] if caution else []), advise(comparison.results)]


def _is_faster(result: WayResult, other: WayResult) -> bool:
    return min(_list_ratios(result, other)) > 1 and _compare(result, other) >= _NOTABLE


def _compare(result: WayResult, other: WayResult) -> float:
    return statistics.median(_list_ratios(result, other))


def _list_ratios(result: WayResult, other: WayResult) -> list[float]:
    """Returns the ratios of the rounds, in each of which both met the same other work."""
    pairs = zip(result.rounds, other.rounds, strict=False)
    return [mine / others for mine, others in pairs]


def _pair_with_ratios(results: Sequence[WayResult]) -> list[tuple[WayResult, float | None]]:
    base = next((result for result in results if result.name == BASELINE and result.rounds), None)
    return [
        (result, _compare(result, base) if result.rounds and base else None) for result in results
    ]


def _format_cells(pair: tuple[WayResult, float | None]) -> tuple[str, ...]:
    result, ratio = pair
    if result.images_per_second is None:
        return result.name, f"left out: {result.skipped}"
    return (
        result.name,
        f"{result.images_per_second:,.0f}",
        f"{ratio:.2f}" if ratio is not None else "",
        f"{result.idle_share:.0%}",
        f"{result.prepare_seconds:.1f} s",
    )


def _join_cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _describe_sample(comparison: InputComparison) -> str:
    height, width = comparison.image_size
    return (
        f"{comparison.images:,} images of {comparison.mean_bytes / 1000:,.0f} kB to batches of "
        f"{comparison.batch_size} x {height} x {width}, {comparison.cores} cores; "
        f"step {comparison.step_seconds * 1000:.3g} ms"
    )
