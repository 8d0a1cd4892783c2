"""The predictions of a model for new images, as `darkroom predict` writes them."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from darkroom import storage
from darkroom.dataset.example import encode_example
from darkroom.errors import DataError, RejectError, UsageError
from darkroom.evaluation.scores.serving import find_model, load_model
from darkroom.images.decoders import ImagePreparer
from darkroom.images.headers import IMAGE_ENDINGS, is_image_name
from darkroom.images.prepare import MAX_IMAGE_BYTES
from darkroom.options.image import ImageOptions
from darkroom.runtime import progress
from darkroom.runtime.machine import count_cores
from darkroom.runtime.result import Fact, Outcome, Result
from darkroom.runtime.text import MAX_LISTED_ROWS, format_count, make_visible
from darkroom.storage import ledger
from darkroom.storage.uris import find_ending
from darkroom.targets.scoring import Prediction

__all__ = ["FailedImage"]

_ENDINGS = (".csv", ".jsonl")
_BATCH_SIZE, _BATCH_BYTES = 64, 1 << 26
# Images that are read at the same time.
_READ_SIZE = 16


@dataclass(frozen=True)
class FailedImage:
    """An image that a conversion would reject.

    Attributes:
        path: Its path or URI.
        reason: Why: the reason of the reject, and the problem in words.
    """

    path: str
    reason: str


@dataclass(frozen=True)
class Predictions(Result):
    """The predictions of a model for images.

    Attributes:
        model_dir: The folder of the SavedModel.
        predictions: One for each image that could be used, in the order of the images: by the
            kind of target `LabelPrediction`, `LabelsPrediction` or `NumbersPrediction`.
        failed: The images that could not.
        output: The file with the predictions; None if none was written.
    """

    model_dir: str
    predictions: tuple[Prediction, ...]
    failed: tuple[FailedImage, ...] = ()
    output: str | None = None

    def __repr__(self) -> str:
        return (
            f"Predictions(predictions={len(self.predictions):,}, failed={len(self.failed):,}, "
            f"output={self.output!r})"
        )

    def describe(self) -> Outcome:
        """Returns a summary, or each prediction where no file has them."""
        title = format_count(len(self.predictions), "prediction")
        failed = [
            Fact("Failed", f"{make_visible(each.path)}: {each.reason}")
            for each in self.failed[:MAX_LISTED_ROWS]
        ]
        if (more := len(self.failed) - MAX_LISTED_ROWS) > 0:
            failed.append(Fact("Failed", f"and {more:,} more"))
        if self.output is None:
            lines = [f"{each}  {make_visible(each.path)}" for each in self.predictions]
            return Outcome(title, [lines, *failed])
        counts = Counter(name for each in self.predictions for name in each.list_names())
        labels = ", ".join(
            f"{make_visible(name)} {count:,}" for name, count in counts.most_common(MAX_LISTED_ROWS)
        )
        total = format_count(len(self.predictions) + len(self.failed), "image")
        head = f"{len(self.predictions):,} of {total}" + (f"  ({labels})" if labels else "")
        return Outcome(title, [Fact("Predicted", head), *failed, Fact("Written", self.output)])


@storage.report_failures
@progress.shown
def predict(
    model: storage.UserPath,
    images: storage.UserPath | Sequence[storage.UserPath],
    output: storage.UserPath | None = None,
    *,
    from_logits: bool = False,
    overwrite: bool = False,
) -> Predictions:
    """Predicts what images are labelled with, by an exported model.

    Each image becomes the record of a conversion, so the model sees what training saw.

    Args:
        model: A SavedModel that darkroom exported, or the folder of a training.
        images: Image files, folders of them, or patterns.
        output: A file, `.csv` or `.jsonl`, for path and prediction of each image. It is a source
            that `darkroom.convert` takes. None: nothing is written.
        from_logits: The model gives logits, and probabilities are made of them.
        overwrite: Whether `output` is replaced if it exists.

    Returns:
        The predictions, and the images that a conversion would reject.

    Raises:
        DataError: There is no model, no image, none of them can be used, or the answers of the
            model are not of its kind.
        UsageError: `output` has another ending, or `images` is empty.
        OutputError: `output` exists already.
        MissingExtraError: TensorFlow is not installed.
        OSError: Something cannot be read or written.
    """
    target = None if output is None else storage.absolute(output)
    if target is not None:
        check_output(target, overwrite=overwrite)
    given = [images] if isinstance(images, str | os.PathLike) else images
    paths = list_image_files([os.fspath(each) for each in given])
    folder = find_model(os.fspath(model))
    served = load_model(folder, from_logits=from_logits)
    found: list[Prediction] = []
    failed: list[FailedImage] = []
    with progress.step("Predicting"):
        for batch in _read_batches(paths, failed):
            names, records = zip(*batch, strict=True)
            found += served.scoring.predict(names, served.answer_examples(records), served.learned)
            progress.advance(len(found) + len(failed), len(paths), "images")
    if not found:
        raise DataError(
            f"None of {format_count(len(paths), 'image')} can be used: {failed[0].path} "
            f"({failed[0].reason}).",
            "Images are read as by darkroom convert.",
        )
    if target is not None:
        storage.write_bytes(target, encode_predictions(target, found, served.scoring.number_format))
    return Predictions(folder, tuple(found), tuple(failed), target)


def check_output(path: str, *, overwrite: bool = False) -> None:
    """Checks that predictions can be written to a file.

    Raises:
        UsageError: Its ending is not that of a form that is known.
        OutputError: It exists already, and `overwrite` is not set.
        StorageError: Its folder does not exist.
    """
    if find_ending(path) not in _ENDINGS:
        raise UsageError(
            f"The output is {path}, expected a name that ends in {' or '.join(_ENDINGS)}.",
            "darkroom convert tells the form of a source by its ending.",
        )
    ledger.check_output_file(path, overwrite=overwrite)


def list_image_files(paths: Sequence[str]) -> list[str]:
    """Returns the images that files, folders and patterns name, each once.

    Raises:
        DataError: A folder or a pattern names none.
        UsageError: No path is given.
        MissingPathError: There is nothing at a path.
    """
    if not paths:
        raise UsageError("No image is given.", "Name images, folders of them, or patterns.")
    found: list[str] = []
    for path in map(storage.absolute, paths):
        if storage.is_folder(path):
            part = [storage.join(path, name) for name in storage.walk_files(path)]
        elif storage.exists(path):
            found.append(path)
            continue
        elif storage.is_pattern(path):
            part = storage.match_pattern(path)
        else:
            raise storage.build_missing_error(path, "The image")
        part = [*filter(is_image_name, part)]
        if not part:
            raise DataError(
                f"{path} names no file with an image's ending.",
                f"Known endings: {' '.join(sorted(IMAGE_ENDINGS))}.",
            )
        found += part
    return list(dict.fromkeys(found))


def encode_predictions(path: str, predictions: Sequence[Prediction], number_format: str) -> bytes:
    """Returns predictions as the lines of a source.

    Images below the folder of the file have relative paths, so that both can be moved.

    Args:
        path: The file that they will be in: CSV if it ends in .csv, else JSON Lines.
        predictions: Predictions, each a row.
        number_format: How a number is written, as `format` takes it.
    """
    is_csv = path.lower().endswith(".csv")

    def encode(cell: Any) -> Any:
        if isinstance(cell, float):
            text = format(cell, number_format)
            return text if is_csv else float(text)
        if isinstance(cell, str):
            return cell
        return ";".join(cell) if is_csv else [*cell]

    base = f"{path.rpartition('/')[0]}/"
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    for number, each in enumerate(predictions):
        cells = {name: encode(cell) for name, cell in each.list_cells().items()}
        row = {"image_uri": each.path.removeprefix(base), **cells}
        if not is_csv:
            text.write(json.dumps(row, ensure_ascii=False) + "\n")
            continue
        if not number:
            writer.writerow(row)
        writer.writerow(row.values())
    return text.getvalue().encode()


def _read_batches(
    paths: Sequence[str], failed: list[FailedImage]
) -> Iterator[list[tuple[str, bytes]]]:
    """Yields paths and the records of a conversion; the images that it rejects have failed."""
    batch: list[tuple[str, bytes]] = []
    size = 0
    with (
        closing(ImagePreparer(ImageOptions())) as preparer,
        ThreadPoolExecutor(count_cores()) as pool,
    ):
        for start in range(0, len(paths), _READ_SIZE):
            part = paths[start : start + _READ_SIZE]
            for path, record in zip(part, pool.map(partial(_prepare, preparer), part), strict=True):
                if isinstance(record, FailedImage):
                    failed.append(record)
                    continue
                batch.append((path, record))
                size += len(record)
                if len(batch) == _BATCH_SIZE or size >= _BATCH_BYTES:
                    yield batch
                    batch, size = [], 0
    if batch:
        yield batch


def _prepare(preparer: ImagePreparer, path: str) -> bytes | FailedImage:
    """Returns the record of an image, so that the model sees what training saw."""
    try:
        path.encode()  # a source is UTF-8
        data = storage.read_bytes(path, limit_bytes=MAX_IMAGE_BYTES)
        image = preparer.prepare(data).encoded
        return encode_example({}, image) + image
    except UnicodeEncodeError:
        return FailedImage(make_visible(path), "not named in UTF-8")
    except RejectError as error:
        return FailedImage(path, f"{error.reason}: {error.detail}")
    except (*storage.UNUSABLE, ValueError) as error:
        return FailedImage(path, f"not readable ({type(error).__name__})")
