"""What the Trainer's outputs say of the model."""

from __future__ import annotations

from pathlib import Path

import pytest
from tfx.components.trainer import executor as tfx_executor
from tfx.types import standard_artifacts

from darkroom.components.trainer.executor import Executor
from darkroom.evaluation.report.facts import Facts, encode_facts
from darkroom.evaluation.scores.serving import identify_model

pytestmark = [pytest.mark.tfx, pytest.mark.usefixtures("simple_decoder")]

HISTORY = ({"epoch": 1, "val_accuracy": 0.75}, {"epoch": 2, "val_accuracy": 0.5})
DATA = {"train": [{"name": "d", "fingerprint": "abc", "records": 6}]}


def _train(
    new_artifact,
    monkeypatch,
    facts: Facts | None,
    labels: bytes | None,
    graph: str = "saved_model.pb",
):
    model, run = (
        new_artifact(kind) for kind in (standard_artifacts.Model, standard_artifacts.ModelRun)
    )

    def train(self, inputs, outputs, properties):
        assets = Path(model.uri, "Format-Serving/assets")
        assets.mkdir(parents=True)
        (assets.parent / graph).write_bytes(b"graph")
        if labels is not None:
            (assets / "labels.txt").write_bytes(labels)
        if facts is not None:
            Path(run.uri, "facts.json").write_bytes(encode_facts(facts))

    monkeypatch.setattr(tfx_executor.GenericExecutor, "Do", train)
    Executor().Do({}, {"model": [model], "model_run": [run]}, {})
    return model, run


def test_model_and_run_say_how_good_the_model_is_and_of_what_it_was_made(new_artifact, monkeypatch):
    facts = Facts(history=HISTORY, exported_epoch=1, data=DATA)
    model, run = _train(new_artifact, monkeypatch, facts, b"cat\ndog\n")
    for artifact in (model, run):
        assert artifact.get_float_custom_property("eval_accuracy") == 0.75
        assert artifact.get_int_custom_property("labels") == 2
        assert artifact.get_string_custom_property("dataset_fingerprint") == "abc"
        assert artifact.get_string_custom_property("sha256") == identify_model(
            f"{model.uri}/Format-Serving"
        )


def test_what_another_program_wrote_does_not_end_a_training(new_artifact, monkeypatch):
    model, run = _train(new_artifact, monkeypatch, None, b"caf\xe9\n", "model.keras")
    for artifact in (model, run):
        for name in ("eval_accuracy", "labels", "dataset_fingerprint", "sha256"):
            assert not artifact.has_custom_property(name)
