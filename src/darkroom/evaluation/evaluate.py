"""Evaluates an exported model on a split, as `darkroom evaluate` and `darkroom train` do."""

from __future__ import annotations

import os
from collections.abc import Sequence

from darkroom import storage
from darkroom.dataset.splits import SPLITS, TEST, parse_split
from darkroom.errors import UsageError
from darkroom.evaluation.metrics import count_confusions, measure
from darkroom.evaluation.result import MAX_CONFUSIONS, Confusion, Evaluation, list_notes
from darkroom.evaluation.scoring import Scored, score_split
from darkroom.evaluation.serving import ServedModel, find_model, identify_model, load_model
from darkroom.input.data_paths import NamedSplit, find_split
from darkroom.runtime import progress

Paths = str | os.PathLike[str]


@storage.report_failures
@progress.shown
def evaluate(model: Paths, records: Paths | Sequence[Paths], split: str = TEST) -> Evaluation:
    """Says how good an exported model is, by what a server would answer.

    All images of the split go through the model's own serving signature. No image is left out, and
    nothing is written.

    Args:
        model: A SavedModel that darkroom exported, or the folder of a training.
        records: A dataset, a pattern of datasets, several of them, or one list or folder of images.
        split: The split: train, eval or test, or another name of it, as val.

    Returns:
        The numbers; `to_dict()` gives them as values for JSON.

    Raises:
        DataError: There is no model, no such split, the model does not know a label of the records,
            or an image is damaged.
        UsageError: `split` is not the name of a split, or several lists of images are given.
        MissingExtraError: TensorFlow is not installed.
        OSError: Something cannot be read.
    """
    name = check_split(split)
    given = [records] if isinstance(records, str | os.PathLike) else records
    folder = find_model(os.fspath(model))
    named = find_split([os.fspath(each) for each in given], name)
    found, _ = evaluate_split(load_model(folder), named)
    return found


def check_split(split: str) -> str:
    """Returns the name of a split for any of its names.

    Raises:
        UsageError: It is not the name of a split.
    """
    name = parse_split(split) if isinstance(split, str) else None
    if not name:
        raise UsageError(f"split is {split!r}, expected {', '.join(SPLITS)}.")
    return name


def evaluate_split(
    model: ServedModel, named: NamedSplit, *, chose_epoch: bool = False
) -> tuple[Evaluation, Scored]:
    """Scores a split, and returns the numbers and the scores.

    Args:
        model: The model.
        named: The split.
        chose_epoch: Whether the training chose its best epoch on this split.
    """
    source, labels = named.open()
    scored = score_split(model, source, labels)
    metrics = measure(scored.scores, scored.truth, model.labels)
    found = Evaluation(
        model_dir=model.folder,
        model_sha256=identify_model(model.folder),
        split=named.name,
        metrics=metrics,
        confusions=_list_confusions(scored, model.labels),
        notes=list_notes(metrics, named.name, chose_epoch=chose_epoch),
    )
    return found, scored


def _list_confusions(scored: Scored, labels: Sequence[str]) -> tuple[Confusion, ...]:
    counts = count_confusions(scored.truth, scored.scores.argmax(axis=1), len(labels))
    rows, columns = counts.nonzero()
    pairs = [
        Confusion(labels[row], labels[column], int(counts[row, column]))
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
        if row != column
    ]
    return tuple(sorted(pairs, key=lambda each: -each.records)[:MAX_CONFUSIONS])
