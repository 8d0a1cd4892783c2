"""Evaluates an exported model on a split, as `darkroom evaluate` and `darkroom train` do."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from darkroom import storage
from darkroom.data.open import find_roots, open_data
from darkroom.data.splits import ALL_SPLITS, Split, describe_target
from darkroom.dataset.layout import DATASET_FILE
from darkroom.dataset.opening import check_outside
from darkroom.dataset.splits import EVAL, SPLITS, TEST, parse_split
from darkroom.errors import UsageError
from darkroom.evaluation.report.facts import Facts, read_facts
from darkroom.evaluation.report.pictures import PagePictures, make_page_pictures
from darkroom.evaluation.report.result import Evaluation, Slice, describe_use
from darkroom.evaluation.report.write import EVALUATION_FILES, PAGE_FILE, encode_files
from darkroom.evaluation.scores.scoring import Scored, score_split
from darkroom.evaluation.scores.serving import (
    ServedModel,
    check_model_kind,
    find_model,
    identify_model,
    load_model,
    read_learned,
)
from darkroom.options.manifest import ManifestOptions
from darkroom.options.source import ONE_LABEL
from darkroom.runtime import progress
from darkroom.storage import ledger

_HINT = (
    "Name the folder of a training, or an exported SavedModel; or the results of a detector by "
    "results (--results)."
)
_INSTEAD = "Score another split: --split {split} (split= in Python)."


@storage.report_failures
@progress.shown
def evaluate(
    model: storage.UserPath | None,
    records: storage.UserPath | Sequence[storage.UserPath],
    split: str = TEST,
    report_dir: storage.UserPath | None = None,
    *,
    from_logits: bool = False,
    judge: Callable[[Evaluation], Sequence[str]] | None = None,
    notes: Sequence[str] = (),
    results: storage.UserPath | None = None,
    annotations: storage.UserPath | None = None,
) -> Evaluation:
    """Evaluates an exported model by the answers that a server would give, or a detector.

    All images of the split go through the model's own serving signature. No image is left out.
    Of a detector the results are given, whatever made them: they are compared with the objects as
    COCO does it, without TensorFlow.

    Args:
        model: A SavedModel that darkroom exported, or the folder of a training; None with
            `results`.
        records: A dataset, a pattern of datasets, several of them, or one list or folder of images.
        split: The split: train, eval or test, or another name of it, as val; `all` for all of them.
        report_dir: Folder for `model.html`, `model.md` and `evaluation.json`; made if it does not
            exist. Files of an earlier report are replaced, others are not. None: nothing is
            written.
        from_logits: The model gives logits, and probabilities are made of them.
        judge: Takes the numbers, and returns the bounds that the model misses, as parts of a
            sentence. The report says them first.
        notes: Sentences that the report says before its own, as which bounds there are.
        results: What a detector says of the images of one dataset of boxes: a file of JSON as COCO
            has it, or a folder of label files of ultralytics with scores.
        annotations: The file of COCO that the detector had, by whose ids the results name images
            and classes; or `labels.txt`, whose lines are classes, from 1. None: they are the ids of
            the list that was converted, or else images have the names of their files, and class n
            is the nth label.

    Returns:
        The numbers; `to_dict()` gives them as values for JSON.

    Raises:
        DataError: There is no model, no such split, the records are labelled otherwise than the
            model answers, it does not give probabilities, or an image is damaged.
        UsageError: `split` is not the name of a split, several lists of images are given, or one
            for a model that does not answer with one label; or both or none of model and results
            are given.
        OutputError: `report_dir` is in a dataset, or has files of these names that darkroom did not
            write.
        MissingExtraError: TensorFlow is not installed.
        OSError: Something cannot be read or written.
    """
    name = check_split(split)
    given = [records] if isinstance(records, str | os.PathLike) else [*records]
    folder = find_given(model, results, annotations)
    target = None if report_dir is None else storage.absolute(report_dir)
    [roots] = find_roots(given)
    if target is not None:
        _check_target(target, roots)
    if results is not None:
        found, pictures, facts = _evaluate_results(results, given, roots, name, annotations)
    else:
        found, pictures, facts = _evaluate_model(
            folder, given, roots, name, from_logits=from_logits
        )
    found = replace(found, notes=(*notes, *found.notes))
    if judge is not None:
        found = _add_missed(found, judge(found))
    if target is not None:
        found = replace(found, report_path=storage.join(target, PAGE_FILE))
        with progress.step("Report"):
            ledger.write_files(target, encode_files(found, pictures(), facts))
    return found


def find_given(
    model: storage.UserPath | None,
    results: storage.UserPath | None,
    annotations: storage.UserPath | None,
) -> str:
    """Returns the folder of the model that is given; empty where results are.

    Raises:
        UsageError: Both are, or none, or annotations without results.
        DataError: There is no model.
        MissingPathError: There is nothing at its path.
    """
    if (model is None) == (results is None):
        what = (
            "Neither a model nor results are" if model is None else "A model and results are both"
        )
        raise UsageError(
            f"{what} given.", "Give the model, or the results of a detector: results (--results)."
        )
    if annotations is not None and results is None:
        raise UsageError("annotations are for the results of a detector, and none are given.")
    return "" if model is None else find_model(os.fspath(model), _HINT)


def _evaluate_results(
    results: storage.UserPath,
    given: Sequence[storage.UserPath],
    roots: Sequence[str],
    split: str,
    annotations: storage.UserPath | None,
) -> tuple[Evaluation, Callable[[], PagePictures], Facts]:
    if len(roots) != 1:
        raise UsageError(
            f"Results are compared with one dataset, got {', '.join(map(str, given))}.",
            "Give the output folder of darkroom convert.",
        )
    from darkroom.evaluation.results import evaluate_results
    from darkroom.targets.boxes.results import DetectorFiles

    named = open_data(given, roots=roots).find_split(split, _INSTEAD)
    return evaluate_results(DetectorFiles.of(results, annotations), roots[0], named)


def _evaluate_model(
    folder: str,
    given: Sequence[storage.UserPath],
    roots: Sequence[str],
    split: str,
    *,
    from_logits: bool,
) -> tuple[Evaluation, Callable[[], PagePictures], Facts]:
    learned = read_learned(folder)
    if learned.kind != ONE_LABEL and not roots:
        raise UsageError(
            f"The model in {folder} answers with {learned.kind}, which a list or folder of images "
            "says only to darkroom convert.",
            "Convert it, and evaluate the model on the dataset.",
        )
    # The model defines the labels.
    data = open_data(given, manifest=ManifestOptions(label_kind=ONE_LABEL), roots=roots)
    named = data.find_split(split, _INSTEAD)
    facts = read_facts(os.path.dirname(folder))
    if facts == Facts():
        facts = read_facts(folder)  # an artifact of Kubeflow has nothing beside it
    found, scored = _evaluate_split(load_model(folder, from_logits=from_logits), named, facts)
    return found, partial(make_page_pictures, scored), facts


def evaluate_training(
    model_dir: str,
    named: Split,
    facts: Facts,
    folder: str,
    *,
    missed: Sequence[str] = (),
    slices: Sequence[Slice] = (),
) -> Evaluation:
    """Evaluates the model of a training, and writes its page, card and numbers.

    Args:
        model_dir: The folder of the SavedModel.
        named: The split to score.
        facts: How the model was made.
        folder: The folder of the training, which has been claimed.
        missed: The bounds that the model misses, where it was judged.
        slices: How good it is for values of columns, where that was measured.

    Raises:
        DataError: An image is damaged, or the model does not give probabilities.
    """
    with progress.step("Evaluation"):
        found, scored = _evaluate_split(load_model(model_dir), named, facts)
        page = storage.join(folder, PAGE_FILE)
        found = replace(_add_missed(found, missed), report_path=page, slices=tuple(slices))
        for name, data in encode_files(found, make_page_pictures(scored), facts).items():
            storage.write_bytes(storage.join(folder, name), data)
    return found


def _add_missed(found: Evaluation, missed: Sequence[str]) -> Evaluation:
    if not missed:
        return found
    note = f"The model did not pass its evaluation: {'; '.join(missed)}."
    return replace(found, notes=(note, *found.notes), missed=tuple(missed))


def find_scored_split(records: str) -> Split:
    """Returns the split of a dataset that a finished model is scored on: test, else eval."""
    data = open_data([records])
    return data.find_split(TEST if TEST in data.splits else EVAL)


def check_split(split: str) -> str:
    """Returns the name of a split for any of its names; that of all splits for itself.

    Raises:
        UsageError: It is not the name of a split.
    """
    if split == ALL_SPLITS:
        return ALL_SPLITS
    name = parse_split(split) if isinstance(split, str) else None
    if not name:
        raise UsageError(f"split is {split!r}, expected {', '.join((*SPLITS, ALL_SPLITS))}.")
    return name


def _check_target(target: str, datasets: Sequence[str]) -> None:
    """Checks that a report replaces no file of others, before anything is computed.

    Raises:
        OutputError: It would, or it would be in a dataset.
    """
    ledger.check_folder(target)
    for root in (*datasets, target):
        if storage.exists(storage.join(root, DATASET_FILE)):
            check_outside(root, target, "The report")
    ledger.check_owned_files(target, EVALUATION_FILES)


def _evaluate_split(model: ServedModel, named: Split, facts: Facts) -> tuple[Evaluation, Scored]:
    """Scores a split: returns the numbers, and the answers of which pages choose their images.

    The first note says if the training used these records.
    """
    from darkroom.input.opening import open_splits

    learned = model.learned
    data = describe_target(named)
    check_model_kind(model.folder, learned, data.kind)
    [source] = open_splits({named.name: named}).values()
    scored = score_split(model, source, data.names)
    found = Evaluation(
        model_dir=model.folder,
        model_sha256=identify_model(model.folder),
        split=named.name,
        metrics=model.scoring.measure(scored.answers, scored.truth, learned),
        kind=learned.kind,
    )
    notes = (*describe_use(facts.find_use(named)), *found.summarize().notes)
    return replace(found, notes=notes), scored
