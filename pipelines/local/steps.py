"""The steps of the demo without TFX: conversion, checks, gate, training, evaluation, push."""

from __future__ import annotations

import time

from darkroom import storage
from darkroom.components.pusher.saved_model import push_once
from darkroom.conversion.convert import convert
from darkroom.dataset import layout
from darkroom.dataset.splits import EVAL
from darkroom.evaluation.evaluate import evaluate
from darkroom.evaluation.report.result import Evaluation, find_missed
from darkroom.options.checks import pick_fields
from darkroom.options.conversion import ConversionFields, ConversionOptions, EmbedFields
from darkroom.options.source import SourceFields
from darkroom.options.validation import ValidationFields
from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.local.summary import RunSummary, count_changes
from darkroom.runtime import progress
from darkroom.targets.scoring import find_scoring
from darkroom.training.result import TrainingResult
from darkroom.training.train import train_datasets
from darkroom.validation.validate import ValidationResult, validate

_RECORDS, _REPORT, _TRAINING, _PUSHED = "records", "report", "training", "pushed"
_REUSED = "Training"


def run_steps(config: PipelineConfig, log_path: str) -> RunSummary:
    """Runs the steps of the pipeline one after the other, without TFX.

    Args:
        config: The configuration. Records, report, training and pushed models go below its root.
        log_path: File with the output of TensorFlow, for the summary.

    Raises:
        DarkroomError: A step failed. A dataset or a model that does not pass is in the summary.
    """
    started = time.monotonic()
    records = storage.join(config.root, _RECORDS)
    with progress.step("Loading TensorFlow"):
        import darkroom.training.run  # noqa: F401
    result = _make_dataset(config, records)
    trained = found = missed = pushed = None
    is_new = True
    if result.blessed:
        data = config.training
        trained = train_datasets([records], data, storage.join(config.root, _TRAINING))
    if trained is not None:
        found = _evaluate(trained, records)
        missed = find_missed(found, config.min_accuracy, config.min_recall)
        if not missed:
            with progress.step("Push"):
                version, is_new = push_once(trained.model_dir, config.push_dir)
            pushed = storage.join(config.push_dir, version)
    return RunSummary(
        root=config.root,
        report=result.report,
        report_path=result.report_path,
        epochs=trained.exported if trained else None,
        score=found.score if found else None,
        score_name=find_scoring(found.kind).score_name if found else "accuracy",
        failures=missed or (),
        min_accuracy=config.min_accuracy,
        pushed=pushed,
        was_there=not is_new,
        examples=records,
        changed=count_changes(storage.join(records, layout.INDEX_FOLDER)),
        reused=(_REUSED,) if trained and trained.already_complete else (),
        log_path=log_path,
        seconds=time.monotonic() - started,
        model=trained.model_dir if trained else None,
        page=trained.evaluation.report_path if trained else None,
        gallery=result.gallery_path,
    )


def _make_dataset(config: PipelineConfig, records: str) -> ValidationResult:
    """Converts the source, and judges the dataset; the gate judges the rejects, too."""
    source, conversion = (pick_fields(config, each) for each in (SourceFields, ConversionFields))
    how = ConversionOptions(**source, **conversion, **pick_fields(config, EmbedFields))
    convert(config.data, records, max_rejects=1, overwrite=True, options=how)
    options = pick_fields(config, ValidationFields)
    return validate(records, **options, report_dir=storage.join(config.root, _REPORT))


def _evaluate(trained: TrainingResult, records: str) -> Evaluation:
    """Returns the numbers of the eval split, which the training may have measured already."""
    if trained.evaluation.split == EVAL:
        return trained.evaluation
    with progress.step("Evaluation"):
        return evaluate(trained.model_dir, records, EVAL)
