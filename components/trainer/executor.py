"""Executor of Trainer: TFX's own, after which the artifacts have the facts about the model."""

from __future__ import annotations

from typing import Any

from tfx.components.trainer import executor as tfx_executor
from tfx.types import artifact_utils
from tfx.utils import path_utils

from darkroom import storage
from darkroom.dataset.labels import parse_labels
from darkroom.dataset.layout import LABELS_FILE
from darkroom.dataset.splits import TRAIN
from darkroom.evaluation.report.facts import FACTS_FILE, read_facts
from darkroom.evaluation.scores.serving import GRAPH_FILE, identify_model

_MODEL_KEY, _RUN_KEY = "model", "model_run"


class Executor(tfx_executor.GenericExecutor):
    """TFX's executor, with properties of the model for a metadata store and its UI."""

    # TFX writes by TensorFlow, which cannot open s3:// on workers elsewhere.
    READS_BY_TENSORFLOW = True

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Trains; then marks both outputs with the facts about the model.

        Args:
            input_dict: TFX's own.
            output_dict: `model`: a Model; `model_run`: a ModelRun.
            exec_properties: TFX's own.
        """
        super().Do(input_dict, output_dict, exec_properties)
        model = artifact_utils.get_single_instance(output_dict[_MODEL_KEY])
        run = artifact_utils.get_single_instance(output_dict[_RUN_KEY])
        folder = path_utils.serving_model_path(model.uri)
        facts = read_facts(run.uri, FACTS_FILE)
        has_model = storage.exists(storage.join(folder, GRAPH_FILE))
        sha256 = identify_model(folder) if has_model else None
        num_labels = _count_labels(folder)
        fingerprints = [part["fingerprint"] for part in facts.data.get(TRAIN, ())[:1]]
        best = [entry for entry in facts.history if entry["epoch"] == facts.exported_epoch]
        scores = {
            f"eval_{name.removeprefix('val_')}": float(value)
            for entry in best
            for name, value in entry.items()
            if name.startswith("val_") and name != "val_loss"
        }
        for artifact in (model, run):
            if sha256 is not None:
                artifact.set_string_custom_property("sha256", sha256)
            if num_labels is not None:
                artifact.set_int_custom_property("labels", num_labels)
            for fingerprint in fingerprints:
                artifact.set_string_custom_property("dataset_fingerprint", str(fingerprint))
            for name, score in scores.items():
                artifact.set_float_custom_property(name, score)


def _count_labels(folder: str) -> int | None:
    """Returns the number of labels of a model; None where it has none that darkroom can read."""
    path = storage.join(folder, "assets", LABELS_FILE)
    try:
        return len(parse_labels(storage.read_bytes(path).decode()))
    except (*storage.UNUSABLE, UnicodeDecodeError):
        return None
