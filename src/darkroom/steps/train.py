"""Trains a model, exports it and evaluates it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from darkroom import storage
from darkroom.errors import UsageError
from darkroom.options.fields import check_fields
from darkroom.options.training import TrainingFields, TrainingOptions
from darkroom.steps import parts
from darkroom.steps.places import name_uris
from darkroom.steps.step import Artifact, Given, Made, Parameter, Paths, Step, take_options

if TYPE_CHECKING:
    from darkroom.evaluation.report.result import Evaluation
    from darkroom.training.result import TrainingResult

# What the result `accuracy` is where images do not have one label.
NO_ACCURACY = -1.0
_TEXTS = (".json", ".md", ".html")


@dataclass(frozen=True, kw_only=True)
class _SomeTrainingOptions(TrainingFields):
    """Options of a training of which not all are known, so each is checked on its own."""

    def __post_init__(self) -> None:
        check_fields(self)


def run(paths: Paths, options: Given) -> Made:
    """Trains a model in a separate folder, and hands over the files worth keeping."""
    from darkroom.dataset.splits import TRAIN
    from darkroom.evaluation.report.facts import read_facts
    from darkroom.evaluation.report.write import PAGE_FILE
    from darkroom.training.train import train

    checkpoint_dir = options.pop("checkpoint_dir")
    with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
        folder = checkpoint_dir or os.path.join(scratch, "training")
        result = train(paths["dataset"], folder, options=TrainingOptions(**options))
        if result is None:
            raise UsageError(
                "This is not the chief of a training with several workers, so it has no model.",
                "A task trains alone: remove TF_CONFIG from its environment.",
            )
        _hand_over(result, paths, is_scratch=not checkpoint_dir)
        model = _describe_model(result.evaluation)
        for part in read_facts(folder).data.get(TRAIN, ())[:1]:
            model["dataset_fingerprint"] = part["fingerprint"]
        page = storage.read_bytes(storage.join(folder, PAGE_FILE))
    return Made(
        result,
        _count_epochs(result) | list_metrics(result.evaluation),
        facts={"trained_model": model},
        files={"model_page": page},
        results=list_results(result.evaluation),
    )


def _hand_over(result: TrainingResult, paths: Mapping[str, str], *, is_scratch: bool) -> None:
    """Copies a finished training into the artifacts."""
    from darkroom.evaluation.report.facts import EVALUATION_FILE
    from darkroom.evaluation.report.write import EVALUATION_FILES
    from darkroom.evaluation.scores.serving import GRAPH_FILE
    from darkroom.profiling.verdict import VERDICT_JSON, VERDICT_MARKDOWN
    from darkroom.storage import copies
    from darkroom.training.state.folder import KERAS_FILE, RESULT_FILE
    from darkroom.training.state.history import HISTORY_FILE, TENSORBOARD_FOLDER

    folder, model, log = result.checkpoint_dir, paths["trained_model"], paths["training_log"]
    # A failed attempt may have left an earlier model.
    storage.delete(model)
    copies.copy_folder(result.model_dir, model, last=GRAPH_FILE)
    # The folder is gone when the task has ended.
    moved = {result.model_dir: name_uris(model), folder: name_uris(log)} if is_scratch else {}
    _copy_log(folder, EVALUATION_FILE, model, moved)
    storage.delete(log)
    # Checkpoints are not worth their upload when a training has ended.
    logged = {RESULT_FILE, HISTORY_FILE, KERAS_FILE, VERDICT_JSON, VERDICT_MARKDOWN}
    for name in storage.list_everything(folder):
        if name in logged.union(EVALUATION_FILES) or name.startswith(f"{TENSORBOARD_FOLDER}/"):
            _copy_log(folder, name, log, moved)


def _copy_log(folder: str, name: str, target: str, paths: Mapping[str, str]) -> None:
    """Copies a file of a training; texts name kept files by their new place."""
    source, path = storage.join(folder, name), storage.join(target, name)
    storage.make_folder(os.path.dirname(path))
    if name.endswith(_TEXTS):
        text = storage.read_bytes(source).decode()
        storage.write_bytes(path, name_uris(text, paths).encode())
    else:
        storage.copy_file(source, path)


def _describe_model(found: Evaluation) -> dict[str, Any]:
    """Returns the metadata of the artifact, by name: how to call the model, and how good it is."""
    from darkroom.evaluation.scores.serving import ERROR_KEY
    from darkroom.targets.scoring import find_scoring

    scoring = find_scoring(found.kind)
    return {
        "framework": "tensorflow",
        "signature": f"serving_default: image_bytes -> {', '.join((*scoring.outputs, ERROR_KEY))}",
        # "labels" or "numbers", and how many the model has.
        scoring.names_are: len(found.summarize().table.rows),
        "sha256": found.model_sha256,
        "split": found.split,
        **list_results(found),
    }


def _count_epochs(result: TrainingResult) -> dict[str, float]:
    # Keras's names, with the split that each is of.
    metrics = {
        f"eval_{name[4:]}" if name.startswith("val_") else f"train_{name}": value
        for name, value in result.metrics.items()
    }
    return {"epochs": result.epochs, "exported_epoch": result.exported.epoch, **metrics}


def list_metrics(found: Evaluation) -> dict[str, float]:
    """Returns the numbers of an evaluation, for a UI."""
    return found.list_scalars() | {f"{found.split}_records": found.metrics.records}


def list_results(found: Evaluation) -> dict[str, float]:
    """Returns the output parameters."""
    from darkroom.targets.scoring import find_scoring

    # KFP fails a task that leaves out a number, or gives one that is not finite.
    has_accuracy = "accuracy" in find_scoring(found.kind).scalars
    accuracy = found.accuracy if has_accuracy else NO_ACCURACY
    return {"score": found.score, "accuracy": accuracy}


STEP = Step(
    "train_classifier",
    "Trains a model, exports it and evaluates it.",
    run,
    (
        parts.DATASET_URI,
        *take_options(TrainingFields),
        Parameter(
            "checkpoint_dir",
            str,
            "Folder in a store or a volume where checkpoints outlive the task, so that a killed "
            "training resumes. Each run needs a separate folder.",
            "",
        ),
    ),
    inputs=(parts.DATASET,),
    outputs=(
        Artifact("trained_model", "Model", "The model as a SavedModel, for servers."),
        Artifact(
            "training_log",
            "Artifact",
            "History, evaluation, card of the model, the Keras file, and TensorBoard's files.",
        ),
        parts.name_metrics("training"),
        parts.name_page("model"),
    ),
    results=parts.SCORES,
    needs_tensorflow=True,
    checks=(TrainingOptions,),
    partial_checks=(_SomeTrainingOptions,),
)
