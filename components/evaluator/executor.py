"""Executor of Evaluator: TFMA measures; which model it compares with is looked up here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import tensorflow_model_analysis as tfma
from absl import logging
from tfx.components.evaluator import executor as tfx_executor
from tfx.types import artifact_utils, standard_artifacts
from tfx.types.standard_component_specs import EXAMPLE_SPLITS_KEY
from tfx.utils import path_utils, proto_utils

from darkroom import storage
from darkroom.components.evaluator.metrics import fit_config
from darkroom.components.model_report.evaluation import read_failures
from darkroom.components.pusher.saved_model import find_newest_version
from darkroom.dataset.commit import find_dataset
from darkroom.dataset.layout import LABELS_FILE
from darkroom.errors import DataError
from darkroom.evaluation.scores.serving import GRAPH_FILE, read_learned
from darkroom.runtime.text import list_first
from darkroom.storage import copies
from darkroom.targets.learned import Learned
from darkroom.targets.scoring import find_scoring

BASELINE_KEY = "baseline"
REASONS_PROPERTY = "reasons"
BASELINE_PROPERTY = "baseline"
SPLIT_PROPERTY = "split"
_MODEL_KEY, _BASELINE_MODEL_KEY, _EXAMPLES_KEY = "model", "baseline_model", "examples"
_EVALUATION_KEY, _BLESSING_KEY, _CONFIG_KEY = "evaluation", "blessing", "eval_config"
# Beside TFMA's files, so that workers elsewhere see it, too. It is deleted at the end.
_COPY_FOLDER = ".baseline"


class Executor(tfx_executor.Executor):
    """TFX's executor, which also compares with a model that only its place is known of."""

    # Its workers read by TensorFlow, which cannot open s3://.
    READS_BY_TENSORFLOW = True

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Evaluates the model; says of one that does not pass why.

        Args:
            input_dict: `examples`, `model`, and `baseline_model` if there is one.
            output_dict: `evaluation`, marked with its split if it has one; and `blessing`.
            exec_properties: `baseline`: place of the model to compare with, or ""; and TFX's own.

        Raises:
            DataError: There is no model in that place, or the records lack a column of a slice.
        """
        evaluation = artifact_utils.get_single_instance(output_dict[_EVALUATION_KEY])
        model = artifact_utils.get_single_instance(input_dict[_MODEL_KEY])
        learned = _read_learned(model)
        config = _fit_config(exec_properties, learned)
        check_slice_columns(input_dict[_EXAMPLES_KEY], config)
        with _find_baseline(input_dict, exec_properties, evaluation.uri) as (baselines, place):
            if baselines and (said := _compare_labels(learned, baselines[0])):
                baselines, place = [], f"none: {said}"
            logging.info("The model is compared with %s.", place)
            inputs = {**input_dict, _BASELINE_MODEL_KEY: baselines}
            super().Do(inputs, output_dict, {**exec_properties, _CONFIG_KEY: config})
        evaluation.set_string_custom_property(BASELINE_PROPERTY, place)
        splits = json.loads(exec_properties[EXAMPLE_SPLITS_KEY])
        if len(splits) == 1:
            evaluation.set_string_custom_property(SPLIT_PROPERTY, splits[0])
        if failures := read_failures(evaluation.uri):
            blessing = artifact_utils.get_single_instance(output_dict[_BLESSING_KEY])
            blessing.set_string_custom_property(REASONS_PROPERTY, "; ".join(failures))
            for each in failures:
                logging.warning("The model is not blessed: %s", each)


def _fit_config(exec_properties: Mapping[str, Any], learned: Learned | None) -> str:
    """Returns the metrics, as JSON, for what a model answers."""
    text: str = exec_properties[_CONFIG_KEY]
    if learned is None or find_scoring(learned.kind).tfma_score:
        return text
    config = tfma.EvalConfig()
    proto_utils.json_to_proto(text, config)
    fitted: str = proto_utils.proto_to_json(fit_config(config, learned))
    return fitted


@contextmanager
def _find_baseline(
    input_dict: Mapping[str, list[Any]], exec_properties: Mapping[str, Any], scratch: str
) -> Iterator[tuple[list[Any], str]]:
    """Gives the artifact of the model to compare with, if there is one, and where it is."""
    given = list(input_dict.get(_BASELINE_MODEL_KEY) or ())
    if not (base := exec_properties.get(BASELINE_KEY)):
        yield given, given[0].uri if given else "no model: none is blessed yet"
        return
    found = find_newest_model(storage.absolute(base))
    if found is None:
        yield [], f"no model: {base} has none yet"
        return
    copy = standard_artifacts.Model()
    copy.uri = storage.join(scratch, _COPY_FOLDER)
    try:
        copies.copy_folder(found, path_utils.serving_model_dir(copy.uri))
        yield [copy], found
    finally:
        storage.delete(copy.uri)


def find_newest_model(base: str) -> str | None:
    """Returns the SavedModel in a folder, or the newest one of those that were pushed there.

    Args:
        base: Folder of a SavedModel, or of versions of one, whose names are numbers.

    Returns:
        Its folder; None if the folder is empty, or does not exist.

    Raises:
        DataError: There is something else.
    """
    if storage.exists(storage.join(base, GRAPH_FILE)):
        return base
    if version := find_newest_version(base):
        return storage.join(base, version)
    if names := storage.list_folder(base):
        raise DataError(
            f"There is no model in {base}, which has {list_first(names)}.",
            "baseline_model names a SavedModel, or a folder of pushed ones.",
        )
    return None


def _compare_labels(learned: Learned | None, baseline: Any) -> str:
    """Returns why a model cannot be compared with another one; empty when it can.

    TFMA compares numbers of labels. A model of another program has no label map, which says
    nothing.
    """
    other = _read_learned(baseline)
    if learned is None or other is None:
        return ""
    if (learned.kind, learned.names) == (other.kind, other.names):
        return ""
    return f"the model in {baseline.uri} has other labels, or another order of them"


def _read_learned(artifact: Any) -> Learned | None:
    """Returns what a model answers; None for one of another program."""
    is_old = path_utils.is_old_model_artifact(artifact)
    folder = path_utils.serving_model_path(artifact.uri, is_old)
    has_labels = storage.exists(storage.join(folder, "assets", LABELS_FILE))
    return read_learned(folder) if has_labels else None


def check_slice_columns(examples: list[Any], config: str) -> None:
    """Checks that records have the columns of all slices: TFMA would leave such a slice out.

    Raises:
        DataError: They lack one.
    """
    specs = json.loads(config).get("slicing_specs", ())
    wanted = {key for each in specs for key in each.get("feature_keys", ())}
    for artifact in examples:
        dataset = find_dataset(artifact.uri)  # nobody lists the columns of another program
        if dataset and (missing := sorted(wanted - dataset.features.keys())):
            raise DataError(
                f"The records have no column {missing[0]!r} to slice by.",
                f"Their columns: {', '.join(sorted(dataset.features))}.",
            )
