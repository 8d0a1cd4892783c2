"""The tasks of the components of models; TensorFlow is loaded when one of them runs."""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Mapping
from numbers import Real
from typing import Any

from darkroom import storage
from darkroom.dataset.commit import find_dataset
from darkroom.dataset.pointer import find_data
from darkroom.dataset.splits import TRAIN
from darkroom.errors import DarkroomError, DataError, UsageError
from darkroom.evaluation.evaluate import evaluate, find_scored_split
from darkroom.evaluation.predict import predict
from darkroom.evaluation.report.facts import EVALUATION_FILE, read_facts
from darkroom.evaluation.report.result import Evaluation, describe_split, find_missed
from darkroom.evaluation.report.write import EVALUATION_FILES, PAGE_FILE
from darkroom.evaluation.scores.serving import ERROR_KEY, GRAPH_FILE
from darkroom.kfp import pages
from darkroom.kfp.execution import Execution
from darkroom.kfp.places import name_uris
from darkroom.options.training import TrainingOptions
from darkroom.profiling.verdict import VERDICT_JSON, VERDICT_MARKDOWN
from darkroom.runtime.functions import describe_user_failure, load_function
from darkroom.storage import copies
from darkroom.targets.scoring import find_scoring
from darkroom.training.result import TrainingResult
from darkroom.training.state.folder import KERAS_FILE, RESULT_FILE
from darkroom.training.state.history import HISTORY_FILE, TENSORBOARD_FOLDER
from darkroom.training.train import train

PREDICTIONS_FILE = "predictions.jsonl"
# Checkpoints are not worth their upload when a training has ended.
_LOGGED = (RESULT_FILE, HISTORY_FILE, KERAS_FILE, VERDICT_JSON, VERDICT_MARKDOWN, *EVALUATION_FILES)
# What the result `accuracy` is where images do not have one label.
NO_ACCURACY = -1.0
_TEXTS = (".json", ".md", ".html")


def train_classifier(execution: Execution) -> None:
    """Trains a model in a separate folder, and hands over the files worth keeping."""
    place, options = execution.find_dataset(), dict(execution.parameters)
    checkpoint_dir = options.pop("checkpoint_dir")
    with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
        folder = checkpoint_dir or os.path.join(scratch, "training")
        result = train(place, folder, options=TrainingOptions(**options))
        if result is None:
            raise UsageError(
                "This is not the chief of a training with several workers, so it has no model.",
                "A task trains alone: remove TF_CONFIG from its environment.",
            )
        _hand_over(result, execution, is_scratch=not checkpoint_dir)
    metrics = _count_epochs(result) | _list_scores(result.evaluation)
    execution.outputs["training_metrics"].write_facts(metrics)
    execution.results = _list_results(result.evaluation)
    execution.write_output()


def _hand_over(result: TrainingResult, execution: Execution, *, is_scratch: bool) -> None:
    """Copies a finished training into the artifacts."""
    folder, outputs = result.checkpoint_dir, execution.outputs
    model, log = outputs["trained_model"], outputs["training_log"]
    # A failed attempt may have left an earlier model.
    storage.delete(model.path)
    copies.copy_folder(result.model_dir, model.path, last=GRAPH_FILE)
    # The folder is gone when the task has ended.
    places = {result.model_dir: model.uri, folder: log.uri} if is_scratch else {}
    _copy_log(folder, EVALUATION_FILE, model.path, places)
    model.describe(_describe_model(result.evaluation))
    for part in read_facts(folder).data.get(TRAIN, ())[:1]:
        model.describe({"dataset_fingerprint": part["fingerprint"]})
    storage.delete(log.path)
    for name in storage.list_everything(folder):
        if name in _LOGGED or name.startswith(f"{TENSORBOARD_FOLDER}/"):
            _copy_log(folder, name, log.path, places)
    execution.copy_outputs(folder, {"model_page": PAGE_FILE})


def _copy_log(folder: str, name: str, target: str, places: Mapping[str, str]) -> None:
    """Copies a file of a training; texts name kept files by their new place."""
    source, path = storage.join(folder, name), storage.join(target, name)
    storage.make_folder(os.path.dirname(path))
    if name.endswith(_TEXTS):
        text = storage.read_bytes(source).decode()
        storage.write_bytes(path, name_uris(text, places).encode())
    else:
        storage.copy_file(source, path)


def _describe_model(found: Evaluation) -> dict[str, Any]:
    """Returns the metadata of the artifact, by name: how to call the model, and how good it is."""
    scoring = find_scoring(found.kind)
    return {
        "framework": "tensorflow",
        "signature": f"serving_default: image_bytes -> {', '.join((*scoring.outputs, ERROR_KEY))}",
        # "labels" or "numbers", and how many the model has.
        scoring.names_are: len(found.summarize().table.rows),
        "sha256": found.model_sha256,
        "split": found.split,
        **_list_results(found),
    }


def _count_epochs(result: TrainingResult) -> dict[str, float]:
    # Keras's names, with the split that each is of.
    metrics = {
        f"eval_{name[4:]}" if name.startswith("val_") else f"train_{name}": value
        for name, value in result.metrics.items()
    }
    return {"epochs": result.epochs, "exported_epoch": result.exported.epoch, **metrics}


def train_with_function(execution: Execution) -> None:
    """Calls a user's function with a separate folder, and hands over the files that it wrote."""
    place, asked = execution.find_dataset(), execution.parameters
    name, outputs = asked["function"], execution.outputs
    function = load_function("function", name)
    with tempfile.TemporaryDirectory(prefix="darkroom-") as folder:
        try:
            found = function(records=place, output_dir=folder, **asked["arguments"])
        except DarkroomError:
            raise
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            if isinstance(error, OSError):
                raise
            raise UsageError(f"{name} failed: {describe_user_failure(error)}.") from error
        numbers = {} if found is None else found
        if not (
            isinstance(numbers, Mapping) and all(isinstance(n, Real) for n in numbers.values())
        ):
            raise UsageError(f"{name} returned {found!r:.80}, expected numbers by name, or None.")
        if not storage.list_everything(folder):
            raise UsageError(f"{name} wrote no file into output_dir.")
        model = outputs["trained_model"]
        # A failed attempt may have left an earlier model.
        storage.delete(model.path)
        copies.copy_folder(folder, model.path)
    model.describe({"function": name})
    if dataset := find_dataset(find_data(place)):
        model.describe({"dataset_fingerprint": dataset.fingerprint})
    outputs["training_metrics"].write_facts({key: float(value) for key, value in numbers.items()})
    execution.write_output()


def evaluate_classifier(execution: Execution) -> None:
    """Scores a split with a model, and fails if it is not good enough and was told to fail."""
    place, asked = execution.find_dataset(), execution.parameters
    split = asked["split"] or find_scored_split(place).name
    with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
        folder = os.path.join(scratch, "report")
        found = evaluate(
            execution.inputs["model"].path,
            place,
            split,
            report_dir=folder,
            judge=lambda found: find_missed(found, asked["min_accuracy"], asked["min_recall"]),
            notes=[_describe_bounds(asked)],
        )
        execution.copy_outputs(folder, {"evaluation_page": PAGE_FILE})
    scores = _list_scores(found) | {"passed": float(not found.missed)}
    execution.outputs["evaluation_metrics"].write_facts(scores)
    where = describe_split(found.split)
    properties = find_scoring(found.kind).list_properties(found.metrics, where)
    execution.outputs["confusion_matrix"].write_facts(properties)
    execution.results = {"passed": not found.missed, **_list_results(found)}
    execution.write_output()
    if asked["fail"] and found.missed:
        raise DataError(
            f"The model is not good enough on {describe_split(found.split)}: "
            f"{'; '.join(found.missed)}.",
            "Train it longer or on more images, or ask for less: min_accuracy, min_recall.",
        )


def predict_images(execution: Execution) -> None:
    """Lists what new images are labelled with."""
    predictions, outputs = execution.outputs["predictions"], execution.outputs
    storage.make_folder(predictions.path)
    # The folder is the task's: the file of a first try goes.
    path = storage.join(predictions.path, PREDICTIONS_FILE)
    model, images = execution.inputs["model"].path, execution.parameters["images"]
    found = predict(model, images, path, overwrite=True)
    numbers = {"predicted": len(found.predictions), "failed": len(found.failed)}
    predictions.describe(numbers)
    outputs["prediction_page"].write(pages.encode_card("Predictions", found).encode())
    outputs["prediction_metrics"].write_facts(numbers)
    place = storage.join(predictions.remote, PREDICTIONS_FILE)
    execution.results = {"predictions_uri": place, **numbers}
    execution.write_output()


def register_model(execution: Execution) -> None:
    """Registers a model, with what is known of it."""
    asked, model = execution.parameters, execution.inputs["model"]
    page = execution.inputs["page"].remote
    name, given = asked["model_name"], {"page": page, "run": asked["run"]}
    # Other tasks run where requests is not installed.
    from darkroom.kfp.registry import register_version

    version = register_version(asked["registry"], name, model.path, uri=model.remote, **given)
    execution.results = {"version": version}
    execution.write_output()


def _describe_bounds(asked: Mapping[str, Any]) -> str:
    bounds = [f"{name} {asked[name]:g}" for name in ("min_accuracy", "min_recall") if asked[name]]
    if not bounds:
        return "The model is held to no bound: neither min_accuracy nor min_recall is given."
    return f"The model is held to {' and '.join(bounds)}."


def _list_scores(found: Evaluation) -> dict[str, float]:
    return found.list_scalars() | {f"{found.split}_records": found.metrics.records}


def _list_results(found: Evaluation) -> dict[str, float]:
    # KFP fails a task that leaves out a number, or gives one that is not finite.
    has_accuracy = "accuracy" in find_scoring(found.kind).scalars
    accuracy = found.accuracy if has_accuracy else NO_ACCURACY
    return {"score": found.score, "accuracy": accuracy}
