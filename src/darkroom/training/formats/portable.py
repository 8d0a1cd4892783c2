"""A model for machines without TensorFlow: converted, opened again, and compared."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from darkroom import storage
from darkroom.data.open import open_data
from darkroom.data.splits import describe_target
from darkroom.dataset.layout import LABELS_FILE
from darkroom.dataset.splits import EVAL, TRAIN
from darkroom.errors import DataError, StorageError, UsageError, build_missing_extra_error
from darkroom.evaluation.scores.serving import check_model_kind, find_model, read_learned
from darkroom.options.input import InputOptions
from darkroom.options.manifest import ManifestOptions
from darkroom.options.source import ONE_LABEL
from darkroom.options.training import EXPORT_FORMATS
from darkroom.runtime import progress, streams
from darkroom.runtime.process import begin_at_call
from darkroom.runtime.result import Fact, Outcome, Result, ResultRow
from darkroom.runtime.text import format_count, make_visible
from darkroom.storage import copies, ledger
from darkroom.targets.learned import Learned
from darkroom.targets.scoring import find_scoring
from darkroom.training.formats import converter

if TYPE_CHECKING:
    from darkroom.input.source import ImageSource

_FILES = {
    converter.TFLITE: "model.tflite",
    converter.FLOAT16: "model-float16.tflite",
    converter.DYNAMIC: "model-dynamic.tflite",
    converter.INT8: "model-int8.tflite",
    converter.ONNX: "model.onnx",
}
# Ranges hardly change after a hundred images.
_SAMPLE_IMAGES = 128
_COMPARED_IMAGES = 1000
_BATCH = 50


@dataclass(frozen=True)
class Export:
    """A model in another format, compared with the SavedModel.

    Attributes:
        format: One of `EXPORT_FORMATS`.
        path: The file.
        size_bytes: Its length.
        max_difference: Largest difference of a probability, or of a number in its unit.
        agreement: Share of the images for which both have the same most likely label, or the same
            labels that reach their thresholds; None for numbers.
    """

    format: str
    path: str
    size_bytes: int
    max_difference: float
    agreement: float | None


@dataclass(frozen=True)
class ExportResult(Result):
    """The exported files.

    Attributes:
        model_dir: The SavedModel.
        model_bytes: Its length.
        images: Number of images of the eval split that were compared.
        image_size: (height, width) in pixels that all formats take.
        resize: How images become that size.
        exports: Each format.
        agree_on: What `agreement` counts; empty for numbers.
    """

    model_dir: str
    model_bytes: int
    images: int
    image_size: tuple[int, int]
    resize: str
    exports: tuple[Export, ...]
    agree_on: str

    def describe(self) -> Outcome:
        """Returns the formats with their differences."""
        height, width = self.image_size
        rows: list[ResultRow] = [
            Fact(
                "Input",
                f"uint8 [N, {height}, {width}, 3], RGB, resized by {self.resize!r}: "
                "bilinear, without antialiasing",
            ),
            Fact("Compared", f"on {format_count(self.images, 'image')} of the eval split"),
            *_list_lines(self),
        ]
        return Outcome(format_count(len(self.exports), "format"), rows)


@begin_at_call
@progress.shown
def export(
    model: str | os.PathLike[str],
    records: str | os.PathLike[str] | Sequence[str],
    output_dir: str | os.PathLike[str],
    formats: Sequence[str] = EXPORT_FORMATS[:4],
) -> ExportResult:
    """Writes a trained model in other formats, and compares their answers with its own.

    Each takes pixels, uint8 [N, height, width, 3], RGB, and returns the answers, float32 [N, C].
    Scaling is part of the model; decoding and resizing are not.

    Args:
        model: The folder of a training, or an exported SavedModel.
        records: The data of its training: folders that `darkroom.convert` wrote, or patterns of
            such folders; or one list or folder of images. Answers are compared on the eval split,
            and the 8-bit format takes its ranges from the train split.
        output_dir: Local folder for the files and the label map, or the names of the numbers.
        formats: Some of `tflite`, `tflite-float16`, `tflite-dynamic`, `tflite-int8` and `onnx`.

    Returns:
        The files, with sizes and differences.

    Raises:
        DataError: A split is missing, or labels or answers are not what the model has learned.
        UsageError: A format is unknown, or there is no model.
        MissingExtraError: The extra `tf` or `onnx` is not installed.
        StorageError: A format cannot be made.
        OutputError: The folder has other files of these names.
    """
    _check_formats(formats)
    output = storage.absolute(output_dir)
    ledger.check_owned_files(output, [_FILES[each] for each in formats])
    folder = find_model(os.fspath(model))
    named = [os.fspath(records)] if isinstance(records, str | os.PathLike) else [*records]
    with streams.quiet_tensorflow():
        import tensorflow as tf

    from darkroom.input.opening import open_splits

    learned = read_learned(folder)
    data = open_data(named, manifest=ManifestOptions(label_kind=ONE_LABEL))
    splits = {name: data.find_split(name) for name in (TRAIN, EVAL)}
    _check_target(folder, learned, describe_target(splits[EVAL]))
    sources = open_splits(splits)
    with copies.use_local_copy(folder) as local:
        served = _load(local, folder)
        [spec] = served.classify.input_signature
        height, width = spec.shape[1:3]
        options = InputOptions(
            (height, width), batch_size=_BATCH, resize=served.describe_resize().numpy().decode()
        )
        with tempfile.TemporaryDirectory() as scratch:
            for name, source, most in (
                (converter.SAMPLE_FILE, sources[TRAIN], _SAMPLE_IMAGES),
                (converter.PIXELS_FILE, sources[EVAL], _COMPARED_IMAGES),
            ):
                np.save(Path(scratch, name), _read_pixels(source, options, most))
            pixels = np.load(Path(scratch, converter.PIXELS_FILE), mmap_mode="r")
            batches = (pixels[n : n + _BATCH] for n in range(0, len(pixels), _BATCH))
            answers = np.concatenate([served.classify(tf.constant(each)) for each in batches])
            expected = find_scoring(learned.kind).check(answers, folder, from_logits=False)
            kinds = dict.fromkeys(formats)
            made = [_make(local, each, scratch, expected, output, learned) for each in kinds]
        contents = {Path(each.path).name: data for each, data in made}
        contents[LABELS_FILE] = Path(local, "assets", LABELS_FILE).read_bytes()
        ledger.write_files(output, contents)
        return ExportResult(
            folder,
            sum(path.stat().st_size for path in Path(local).rglob("*") if path.is_file()),
            len(expected),
            (height, width),
            options.resize,
            tuple(each for each, _ in made),
            find_scoring(learned.kind).agree_on,
        )


def _load(local: str, folder: str) -> Any:
    """Loads the SavedModel of a folder from its local copy.

    Raises:
        UsageError: It lacks the function that other formats are made of.
    """
    import tensorflow as tf

    served = tf.saved_model.load(local)
    if not hasattr(served, "classify"):
        raise UsageError(
            f"{folder} was written by another version of darkroom, or by another program.",
            "Run its training again: it is complete, and only exports the model.",
        )
    return served


def _list_lines(result: ExportResult) -> list[str]:
    """Returns a table as lines of text: its header, the SavedModel, then each format."""
    same_title = f"{result.agree_on or '-':>10}"
    head = f"{'format':15} {'size':>10}  {'difference':>10}  {same_title}  file"
    rows = [("savedmodel", f"{result.model_bytes / 1e6:,.1f} MB", "", "", result.model_dir)]
    for each in result.exports:
        size = f"{each.size_bytes / 1e6:,.1f} MB"
        difference = f"{each.max_difference:.1e}"
        same = "-" if each.agreement is None else f"{each.agreement:.1%}"
        rows.append((each.format, size, difference, same, each.path))
    lines = [
        f"{name:15} {size:>10}  {difference:>10}  {same:>{len(same_title)}}  {path}"
        for name, size, difference, same, path in rows
    ]
    return [head, *lines]


def _check_formats(formats: Sequence[str]) -> None:
    for each in formats:
        if each not in EXPORT_FORMATS:
            raise UsageError(f"Unknown format {each!r}.", f"Known: {', '.join(EXPORT_FORMATS)}.")
    if converter.ONNX in formats:
        for name in ("tf2onnx", "onnxruntime"):
            if importlib.util.find_spec(name) is None:
                raise build_missing_extra_error("The format onnx", "onnx")


def _check_target(folder: str, learned: Learned, data: Learned) -> None:
    """Checks that the data is labelled with what the model has learned, in the same order.

    Raises:
        DataError: It is not.
    """
    check_model_kind(folder, learned, data.kind)
    if learned.names != data.names:
        what = find_scoring(learned.kind).names_are
        raise DataError(
            f"The {what} of the model in {folder} differ from the data's: {len(learned.names)} and "
            f"{len(data.names)}, or in another order.",
            f"Give the data that it was trained on, or data with the same {what}.",
        )


def _read_pixels(source: ImageSource, options: InputOptions, most: int) -> npt.NDArray[Any]:
    """Returns images from all spans of a split, uint8 [N, height, width, 3]."""
    from darkroom.input.pipeline import make_eval_dataset

    batches = make_eval_dataset(source, options, sample=most)
    pixels: npt.NDArray[Any] = np.concatenate([each.numpy() for each, _ in batches])
    return pixels


def _make(
    local: str,
    kind: str,
    scratch: str,
    expected: npt.NDArray[Any],
    output: str,
    learned: Learned,
) -> tuple[Export, bytes]:
    """Makes one format in a separate process.

    Raises:
        StorageError: It cannot be made.
    """
    path, answers = Path(scratch, _FILES[kind]), Path(scratch, converter.ANSWERS_FILE)
    answers.unlink(missing_ok=True)
    command = [sys.executable, "-m", converter.__name__, local, kind, str(path), scratch]
    with progress.step(f"Exporting {kind}"):
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode or not answers.exists():
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        said = make_visible(lines[-1], max_characters=300) if lines else "it did not say why"
        raise StorageError(
            f"The model cannot be converted to {kind}: {said}.",
            "Leave this format out, or change the model. Nothing was written.",
        )
    found = np.load(answers)
    data = path.read_bytes()
    return Export(
        kind,
        storage.join(output, path.name),
        len(data),
        float(np.abs(found - expected).max()),
        find_scoring(learned.kind).agree(found, expected, learned),
    ), data
