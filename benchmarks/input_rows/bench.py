"""The rows: darkroom against a limit, another loader, or itself with other options."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
import statistics
from contextlib import ExitStack
from pathlib import Path

import tensorflow as tf

from darkroom.conversion.convert import convert
from darkroom.input.opening import open_files
from darkroom.input.pipeline import make_eval_dataset, make_train_dataset
from darkroom.options import ConversionOptions
from darkroom.options.input import InputOptions
from input_rows.accelerator import Accelerator, run_fit, run_loop
from input_rows.contract import (
    BATCH,
    EVAL,
    SHORT_SIDE,
    TRAIN,
    consume,
    consume_few,
    consume_processor,
)
from input_rows.fresh_process import measure_memory, measure_rate, run_in_child
from input_rows.keras_loader import check_pixels, crop_batch, open_keras
from input_rows.limits import run_limit
from input_rows.pairs import Run, run_pairs
from input_rows.photographs import draw_photographs, make_photographs
from input_rows.ways import DEFAULT, Batches, list_ways

# The share of the pipeline's rate that an accelerator needs; the rate is measured on these batches.
_LOAD, _MEASURED_BATCHES = 0.9, 60
# Shape, quality and exponents of photographs of 12 megapixels and 1.7 MB.
_LARGE_ORIGINALS, _LARGE = 12, ((3000, 4000), 85, (1.2, 1.6))
VARIATIONS = (
    ("cycle_length", 1),
    ("cycle_length", 4),
    ("block_length", 1),
    ("block_length", 16),
    ("shuffle_records", 0),
    ("shuffle_bytes", 8 << 20),
    ("ram_budget_bytes", 64 << 20),
    ("deterministic", False),
    ("scaled_decoding", False),
    ("prefetch", 0),
    ("prefetch", 8),
    ("batch_size", 256),
    ("num_threads", 1),
    ("record_cache", "memory"),
    ("dtype", "float32"),
    ("augment", "crop_flip"),
    ("augment", "flip"),
    ("augment", "none"),
)


def compare(name: str, own: Run, limit: Run, aim: str, pairs: int) -> None:
    """Prints a row: images a second of both, and their ratio."""
    print(f"{name:<34}{run_pairs(own, limit, pairs, f'{aim:<8}')}", flush=True)


class Bench:
    """The rows, and the images in all the forms that they read, made when first needed."""

    def __init__(self, scratch: Path, count: int, pairs: int, photographs: Path | None) -> None:
        self.pairs = pairs
        self._scratch = scratch
        self._count = count
        self.images = scratch / "images"
        make_photographs(self.images, count, photographs)
        self.paths = sorted(self.images.rglob("*.jpg"))

    def convert(self, name: str, source: Path | None = None, **options: object) -> list[str]:
        """Returns the shards of the images, converted with options."""
        target = self._scratch / name
        if not target.exists():
            made = ConversionOptions(split_ratios="100/0/0", **options)
            convert(source or self.images, target, options=made)
        return sorted(str(path) for path in target.glob("Split-train/*"))

    def large(self) -> Path:
        """Returns the folder of the 12-megapixel photographs."""
        folder = self._scratch / "large"
        if not folder.exists():
            draw_photographs(folder, self._count // 25, *_LARGE, _LARGE_ORIGINALS)
        return folder

    def train(self) -> None:
        """Random windows against two processes that make the same."""
        files = self.convert("records")
        compare(
            "train, random windows : ops",
            lambda: consume(make_train_dataset(files, TRAIN, epoch=0)),
            lambda: run_limit("train", self.paths),
            ">= 1.00",
            self.pairs,
        )

    def eval(self) -> None:
        """The middle of whole images against two processes that make the same."""
        files = self.convert("records")
        compare(
            "eval, short side 256, middle : ops",
            lambda: consume(make_eval_dataset(files, EVAL)),
            lambda: run_limit("eval", self.paths),
            ">= 0.85",
            self.pairs,
        )

    def scaled(self) -> None:
        """12-megapixel photographs with and without scaled decoding."""
        files = self.convert("large-records", self.large())
        for name, make, options in (
            ("12 Mpx train : not scaled", self._make_epoch, TRAIN),
            ("12 Mpx eval : not scaled", make_eval_dataset, EVAL),
        ):
            compare(
                name,
                lambda make=make, options=options: consume_few(make(files, options)),
                lambda make=make, options=options: consume_few(
                    make(files, dataclasses.replace(options, scaled_decoding=False))
                ),
                ">= 2.00",
                self.pairs,
            )

    def resized(self) -> None:
        """Images stored with a short side of 256 against complete decoding of the originals."""
        self._compare_full("short side 256", "resized", ">= 2.00", resize_short_side=SHORT_SIDE)

    def raw(self) -> None:
        """The same images stored as pixels."""
        self._compare_full(
            "raw, short side 256", "raw", ">= 4.00", resize_short_side=SHORT_SIDE, encoding="raw"
        )

    def _compare_full(self, name: str, folder: str, aim: str, **options: object) -> None:
        files = self.convert(folder, **options)
        for use, make, how in (
            ("train", self._make_epoch, TRAIN),
            ("eval", make_eval_dataset, EVAL),
        ):
            compare(
                f"{name}, {use} : full",
                lambda make=make, how=how: consume(make(files, how)),
                lambda: run_limit("full", self.paths),
                aim,
                self.pairs,
            )

    def keras(self) -> None:
        """The same pixels, and random windows, against Keras's loader of folders."""
        files = self.convert("records")
        check_pixels(self.images)
        compare(
            "whole images, same pixels : Keras",
            lambda: consume(make_eval_dataset(files, TRAIN)),
            lambda: consume(open_keras(self.images)),
            ">= 1.00",
            self.pairs,
        )
        compare(
            "the same, of processor time : Keras",
            lambda: consume_processor(make_eval_dataset(files, TRAIN)),
            lambda: consume_processor(open_keras(self.images)),
            "",
            self.pairs,
        )
        compare(
            "random windows : Keras, then crop",
            lambda: consume(make_train_dataset(files, TRAIN, epoch=0)),
            lambda: consume(open_keras(self.images).map(crop_batch, tf.data.AUTOTUNE)),
            ">= 1.20",
            self.pairs,
        )

    def ways(self) -> None:
        """Darkroom's defaults against other ways to read the same images."""

        def run(batches: Batches) -> float:
            return consume(itertools.islice(batches, _MEASURED_BATCHES))

        with ExitStack() as resources:
            ways = list_ways(self.paths, self.convert, resources)
            own = functools.partial(run, ways.pop(DEFAULT)())
            for name, open_way in ways.items():
                compare(f"train : {name}", own, functools.partial(run, open_way()), "", self.pairs)

    def spans(self) -> None:
        """Shards that are leaves, and spans of an update a day, against shards of equal counts."""
        source = self._scratch / "spans.csv"
        labels = {path: path.parent.name for path in self.paths}
        # A fifth of the images came in the year after the first ones.
        spans = [max(0, each % 1825 - 1459) for each in range(len(self.paths))]
        rows = (
            f"{path},{label},{span}\n"
            for (path, label), span in zip(labels.items(), spans, strict=True)
        )
        source.write_text("image_uri,label,span\n" + "".join(rows))
        equal = self.convert("equal", num_shards=8)
        for name, files in (
            ("leaves", self.convert("records")),
            ("365 spans", self.convert("spans", source, span_column="span")),
        ):
            for unit, measure in (("train", consume), ("processor time", consume_processor)):
                compare(
                    f"{name}, {unit} : equal shards",
                    lambda files=files, measure=measure: measure(self._make_epoch(files, TRAIN)),
                    lambda measure=measure: measure(self._make_epoch(equal, TRAIN)),
                    ">= 0.98",
                    self.pairs,
                )

    def options(self) -> None:
        """The effect of each option: another value against the default."""
        files = self.convert("records")

        def run(options: InputOptions) -> float:
            return consume(make_train_dataset(open_files(files), options, epoch=0))

        for name, value in VARIATIONS:
            other = dataclasses.replace(TRAIN, **{name: value})
            compare(
                f"{name}={value}, train : default",
                lambda other=other: run(other),
                lambda: run(TRAIN),
                "",
                self.pairs,
            )

    def memory(self) -> None:
        """The memory of reading within budgets, beyond the memory of the imports."""
        files = self.convert("large-records", self.large())
        total = sum(os.path.getsize(file) for file in files)
        for budget in (64, 256, 1024):
            used = run_in_child(measure_memory, files, budget << 20)
            print(
                f"memory: budget {budget:>5,} MiB, records {total >> 20:>6,} MiB, "
                f"took {used:>6,.0f} MiB",
                flush=True,
            )

    def busy(self) -> None:
        """How busy an accelerator is that needs 0.9 of the pipeline's rate."""
        files = self.convert("records")
        endless = dataclasses.replace(TRAIN, repeat=None)

        measured = iter(make_train_dataset(files, endless))

        def measure_step() -> float:
            return BATCH / (_LOAD * consume(itertools.islice(measured, _MEASURED_BATCHES)))

        for name, run, ahead, aim in (
            ("a loop, every step awaited", run_loop, False, ">= 98 %"),
            ("fit, every step awaited", run_fit, False, ">= 97 %"),
            (
                "fit, awaited, 20 steps a call",
                functools.partial(run_fit, steps_per_execution=20),
                False,
                ">= 97 %",
            ),
            ("a loop, a step ahead", run_loop, True, ">= 98 %"),
            ("fit, a step ahead", run_fit, True, ">= 97 %"),
        ):
            shares = [
                run(make_train_dataset(files, endless), Accelerator(measure_step, ahead))
                for _ in range(self.pairs)
            ]
            print(
                f"accelerator at {_LOAD:.2f}, {name:<30}"
                f" busy {statistics.median(shares):>6.1%}  {aim}  "
                f"{' '.join(f'{share:.3f}' for share in shares)}",
                flush=True,
            )

    def cores(self) -> None:
        """The gain from a second core, beside the limit's gain."""
        files = self.convert("records")
        ratios, gains = [], []
        for _ in range(self.pairs):
            own = [run_in_child(measure_rate, files, cores=count) for count in (1, 2)]
            limit = [run_limit("train", self.paths, count) for count in (1, 2)]
            gains.append((own[1] / own[0], limit[1] / limit[0]))
            ratios.append(gains[-1][0] / gains[-1][1])
        first, second = (statistics.median(gain[side] for gain in gains) for side in range(2))
        print(
            f"second core: train {first:.2f}, ops {second:.2f}, "
            f"ratio {statistics.median(ratios):.2f}  >= 0.95  "
            f"{' '.join(f'{ratio:.2f}' for ratio in ratios)}",
            flush=True,
        )

    def _make_epoch(self, files: list[str], options: InputOptions) -> tf.data.Dataset:
        return make_train_dataset(files, options, epoch=0)
