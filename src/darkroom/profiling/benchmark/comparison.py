"""The result of a comparison of ways to read: a table, a picture and advice."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from darkroom import storage
from darkroom.errors import StorageError
from darkroom.profiling.benchmark.chart import Bars, draw_chart
from darkroom.storage import ledger

FILES = ("input.png", "input.md", "input.json")
BASELINE = "darkroom"

# With fewer batches an epoch, the start of a way is measured and not its reading.
_LEAST_BATCHES = 8
# Two runs of the same way differ by about this factor.
_NOTABLE = 1.1
_COLUMNS = ("way", "images/s", f"to {BASELINE}", "idle", "prepared in")


@dataclass(frozen=True, kw_only=True)
class WayResult:
    """How fast a way is. Its numbers are None if it was left out.

    Attributes:
        name: The name of the way.
        advice: How to read in this way.
        is_stored: Whether it needs a dataset that was converted with other options.
        images_per_second: Rate when batches are taken as fast as they come; median of all rounds.
        idle_share: Share of its time that an accelerator waits; median of all rounds.
        prepare_seconds: Time until the first batch could be read.
        rounds: Images per second in each round.
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
        cores: Number of cores that this process may use.
        step_seconds: Duration of a step of the emulated accelerator.
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
        """Returns the comparison as values for JSON, with the caution and the advice."""
        told = {"caution": find_caution(self.images, self.batch_size)}
        return {**dataclasses.asdict(self), **told, "advice": advise(self.results)}


def check_output(output_dir: str | os.PathLike[str]) -> None:
    """Checks that files can be written to a folder, which is made if it does not exist.

    Raises:
        OutputError: It has files of their names that darkroom did not write.
        StorageError: They cannot.
    """
    folder = storage.absolute(output_dir)
    probe = storage.join(folder, f"{storage.PART_PREFIX}{uuid.uuid4().hex}")
    ledger.check_files(folder, FILES)
    try:
        storage.make_folder(folder)
        storage.write_bytes(probe, b"")
        storage.delete_file(probe)
    except OSError as error:
        reason = "it is a file" if isinstance(error, FileExistsError) else error.strerror or error
        raise StorageError(
            f"The folder {folder} for picture and tables cannot be written to: {reason}.",
            "Choose another folder with --output-dir.",
        ) from error


def write_comparison(comparison: InputComparison, output_dir: str | os.PathLike[str]) -> list[str]:
    """Writes the picture, and the table as Markdown and JSON. Returns their paths.

    Raises:
        OutputError: `output_dir` has files of these names that darkroom did not write.
        OSError: It cannot be written.
    """
    folder = storage.absolute(output_dir)
    contents = (
        draw_comparison(comparison),
        (format_markdown(comparison) + "\n").encode(),
        (json.dumps(comparison.to_dict(), indent=2) + "\n").encode(),
    )
    return ledger.write_files(folder, dict(zip(FILES, contents, strict=True)))


def find_caution(num_images: int, batch_size: int) -> str:
    """Returns why a sample is too small, or the empty text if it has at least eight batches."""
    needed = _LEAST_BATCHES * batch_size
    if num_images >= needed:
        return ""
    return (
        f"Too few images to tell which way is fastest: {num_images:,} are fewer than "
        f"{_LEAST_BATCHES} batches of {batch_size}. Use {needed:,} or more (--images, from a "
        "dataset that has them), or smaller batches."
    )


def format_comparison(comparison: InputComparison) -> str:
    """Returns the table for a terminal, the caution if there is one, and the advice."""
    rows = [_COLUMNS, *map(_format_cells, _pair_with_ratios(comparison.results))]
    widths = [max(len(row[column]) for row in rows if len(row) > 2) for column in range(5)]
    lines = [_describe_sample(comparison), ""]
    for name, *cells in rows:
        shown = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=False))
        lines.append(f"{name:<{widths[0]}}  {cells[0] if len(cells) == 1 else shown}".rstrip())
    return "\n".join([*lines, "", *_conclude(comparison)])


def format_markdown(comparison: InputComparison) -> str:
    """Returns the sample, the table, the caution if there is one, and the advice as Markdown."""
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
    """Returns which way is fastest, and how much faster other storage would be."""
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
    """Returns the ratio in each round. In a round, other work on the machine slows both."""
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
