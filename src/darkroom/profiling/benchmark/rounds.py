"""`darkroom benchmark input`: compares ways to read a dataset for training on this machine."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from darkroom import storage
from darkroom.errors import OutputError, UsageError, convert_error
from darkroom.options.checks import check_count
from darkroom.options.input import InputOptions, choose_short_side
from darkroom.profiling.benchmark.comparison import (
    InputComparison,
    WayResult,
    check_output,
    find_caution,
    format_comparison,
    write_comparison,
)
from darkroom.profiling.benchmark.sample import InputSample, open_sample
from darkroom.profiling.benchmark.ways import WAYS, Batches, Way
from darkroom.runtime import progress

_ROUNDS = 3
_PASSES = 8
# The first batches are not measured, because they were made ahead.
_WARM_BATCHES = 2
_LEAST_SECONDS, _MOST_SECONDS = 0.5, 3.0
_IDLE_SECONDS = 0.8
# A way that takes longer than this is measured only once.
_SLOW_SECONDS = 8.0
# The emulated accelerator needs this share of the rate of the fastest way.
_NEEDED_SHARE = 0.9

Clock = Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class BenchmarkOptions:
    """Options of a comparison; checked when made.

    Attributes:
        image_size: (height, width) of the views in pixels.
        batch_size: Images in a batch.
        images: Maximum number of images in the sample.
        step_seconds: Duration of a step of the emulated accelerator; None: it needs nine tenths of
            the rate of the fastest way.
    """

    image_size: tuple[int, int] = (224, 224)
    batch_size: int = 64
    images: int = 1024
    step_seconds: float | None = None

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            UsageError: A value is out of its range.
        """
        object.__setattr__(self, "image_size", self.input_options.image_size)
        check_count("images", self.images, 1)
        step = self.step_seconds
        if step is not None and (type(step) not in (int, float) or not 0 < step < 60):
            raise UsageError(f"step_seconds is {step!r}, expected a number from 0 to 60.")

    @property
    def input_options(self) -> InputOptions:
        """How images become batches: random windows, which all ways can make."""
        return InputOptions(self.image_size, batch_size=self.batch_size, augment="crop")


@dataclass
class _Entrant:
    """A way, with its measurements so far."""

    way: Way
    batches: Batches = ()
    skipped: str = ""
    prepare_seconds: float | None = None
    rates: list[float] = field(default_factory=list)
    idle_shares: list[float] = field(default_factory=list)
    is_slow: bool = False


def run_benchmark(values: Mapping[str, Any], *, as_json: bool) -> int:
    """Compares, writes a picture and tables, and prints the result.

    Args:
        values: `directory`, `output_dir`, and options of `BenchmarkOptions` by name.
        as_json: Print one JSON object instead of a table.

    Returns:
        The exit code.

    Raises:
        OutputError: `output_dir` has files of the same names that darkroom did not write.
        StorageError: It cannot be written. Both are checked before the measurements.
    """
    values = dict(values)
    directory, output_dir = values.pop("directory"), values.pop("output_dir")
    options = BenchmarkOptions(**values)
    check_output(output_dir)
    with progress.use(progress.make_sink(sys.stderr)):
        comparison = compare_input(directory, options)
    try:
        paths = write_comparison(comparison, output_dir)
    except (OSError, OutputError) as error:
        # The measurements took minutes, so print them even if they cannot be written.
        if not as_json:
            print(format_comparison(comparison))
            raise
        found = convert_error(error)
        print(json.dumps({**comparison.to_dict(), "error": found.to_dict()}))
        return found.exit_code
    table = "\n".join([*paths, "", format_comparison(comparison)])
    print(json.dumps(comparison.to_dict()) if as_json else table)
    return 0


def compare_input(
    directory: str | os.PathLike[str], options: BenchmarkOptions | None = None
) -> InputComparison:
    """Compares ways to read a dataset for training. All ways have a turn in each round.

    Args:
        directory: A dataset with images as files, JPEG or PNG.
        options: Options of the comparison.

    Returns:
        The measurements, with all files in the page cache.

    Raises:
        DataError: There is no dataset, or none of images with labels.
        OSError: Storage failed.
    """
    options = options or BenchmarkOptions()
    inputs = options.input_options
    with open_sample(directory, options.images, inputs, passes=_PASSES) as sample:
        if caution := find_caution(len(sample.paths), options.batch_size):
            progress.note(caution)
        entrants = [_prepare(way, sample) for way in WAYS]
        running = [entrant for entrant in entrants if not entrant.skipped]

        def measure_free(entrant: _Entrant) -> None:
            entrant.rates.append(measure_rate(entrant.batches, len(sample.paths)))

        def measure_busy(entrant: _Entrant) -> None:
            entrant.idle_shares.append(measure_idle(entrant.batches, step_seconds))

        _run_rounds("Free", running, measure_free)
        best = max(statistics.median(entrant.rates) for entrant in running)
        step_seconds = options.step_seconds or options.batch_size / (_NEEDED_SHARE * best)
        _run_rounds("Accelerator", running, measure_busy)
        return InputComparison(
            directory=storage.absolute(directory),
            images=len(sample.paths),
            mean_bytes=sample.num_bytes / len(sample.paths),
            image_size=options.image_size,
            batch_size=options.batch_size,
            cores=len(os.sched_getaffinity(0)),
            step_seconds=step_seconds,
            results=tuple(_conclude(entrant, inputs) for entrant in entrants),
        )


def measure_rate(batches: Batches, num_images: int, *, clock: Clock = time.perf_counter) -> float:
    """Returns the images per second when batches are taken as fast as they come.

    Args:
        batches: They start again when they end.
        num_images: Minimum number of images to take, within at most three seconds.
        clock: Returns seconds.
    """
    iterator = _repeat(batches)
    for _ in range(_WARM_BATCHES):
        next(iterator)
    started, count = clock(), 0
    while True:
        count += len(next(iterator)[0])
        seconds = clock() - started
        is_enough = count >= num_images and seconds >= _LEAST_SECONDS
        if is_enough or seconds >= _MOST_SECONDS:
            return count / seconds


def measure_idle(
    batches: Batches,
    step_seconds: float,
    *,
    clock: Clock = time.perf_counter,
    sleep: Callable[[float], object] = time.sleep,
) -> float:
    """Returns the share of its time in which an accelerator waits for batches.

    Args:
        batches: They start again when they end.
        step_seconds: Time that the accelerator works on a batch; emulated by `sleep`.
        clock: Returns seconds.
        sleep: Waits for some seconds.
    """
    iterator = _repeat(batches)
    for _ in range(_WARM_BATCHES):
        next(iterator)
        sleep(step_seconds)
    started, waited = clock(), 0.0
    while (begun := clock()) - started < _IDLE_SECONDS:
        next(iterator)
        waited += clock() - begun
        sleep(step_seconds)
    return waited / (begun - started)


def _repeat(batches: Batches) -> Iterator[tuple[Any, Any]]:
    while True:
        yield from batches


def _prepare(way: Way, sample: InputSample) -> _Entrant:
    if obstacle := way.find_obstacle(sample):
        return _Entrant(way, skipped=obstacle)
    started = time.perf_counter()
    with progress.step(f"Open {_name(way, sample.options)}"):
        batches = way.open(sample)
    return _Entrant(way, batches, prepare_seconds=time.perf_counter() - started)


def _run_rounds(what: str, entrants: list[_Entrant], measure: Callable[[_Entrant], None]) -> None:
    """Measures all in turn, several times, so that other work on the machine slows all equally."""
    for number in range(1, _ROUNDS + 1):
        with progress.step(what, number, _ROUNDS):
            for done, entrant in enumerate(entrants, 1):
                if number == 1 or not entrant.is_slow:
                    started = time.perf_counter()
                    measure(entrant)
                    entrant.is_slow |= time.perf_counter() - started > _SLOW_SECONDS
                progress.advance(done, len(entrants), "ways")


def _conclude(entrant: _Entrant, options: InputOptions) -> WayResult:
    way = entrant.way
    return WayResult(
        name=_name(way, options),
        advice=way.advice.format(short_side=choose_short_side(options.image_size)),
        is_stored=way.is_stored,
        images_per_second=statistics.median(entrant.rates) if entrant.rates else None,
        idle_share=statistics.median(entrant.idle_shares) if entrant.idle_shares else None,
        prepare_seconds=entrant.prepare_seconds,
        rounds=tuple(entrant.rates),
        skipped=entrant.skipped,
    )


def _name(way: Way, options: InputOptions) -> str:
    return way.name.format(short_side=choose_short_side(options.image_size))
