"""JSON files of a training that someone forged: taken for ones that are not there, never a bug."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest

from darkroom.errors import DataError
from darkroom.evaluation.report.facts import Facts, encode_evaluation, encode_facts, read_facts
from darkroom.evaluation.report.page import make_model_page
from darkroom.evaluation.report.pictures import PagePictures
from darkroom.evaluation.report.result import Evaluation, Slice
from darkroom.targets.description import View
from darkroom.targets.label.metrics import measure
from darkroom.training.result import TrainingResult, read_result
from darkroom.training.state.history import read_exported, read_history

from ..runtime.test_json_values import list_places, replace_at

NEW = (None, "x", -1.5, [])
SCORES = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
EVALUATION = Evaluation(
    "run/model",
    "a" * 64,
    "test",
    measure(SCORES, np.array([0, 1, 1]), ["cat", "dog"]),
    ("A note.",),
    "run/model.html",
    (Slice("camera", "old", 2, 0.5),),
)
HISTORY = [
    {
        "epoch": 1,
        "phase": "head",
        "loss": 2.0,
        "accuracy": 0.2,
        "val_loss": 1.5,
        "val_accuracy": 0.1,
    },
    {
        "epoch": 2,
        "phase": "top",
        "loss": 1.0,
        "accuracy": 0.4,
        "val_loss": 1.2,
        "val_accuracy": 0.5,
    },
]
FACTS = Facts(
    recipe={"model": "small_cnn", "image_size": [32, 32], "epochs": 2, "weights": None},
    history=HISTORY,
    exported_epoch=2,
    input={"verdict": "Not input-bound.", "microseconds_an_image": {"decode": 812.4}},
    data={name: [{"name": name, "fingerprint": "f", "records": 3}] for name in ("train", "eval")},
    code={"darkroom": "1.0"},
)
PLAN = {"options": {"model": "small_cnn"}, "data": ["f"]}
RESULT = TrainingResult(
    2,
    1,
    2,
    {"loss": 0.5, "accuracy": 1.0},
    "run",
    "run/model",
    EVALUATION,
    "Not input-bound.",
    hints=["use more images"],
)


def forge(values):
    """Yields the JSON of values with each of them replaced or deleted, at all places."""
    written = json.loads(json.dumps(values))
    for path in list_places(written):
        for new in NEW:
            yield path, json.dumps(replace_at(written, path, new))
        if path:
            *above, name = path
            inner = written
            for key in above:
                inner = inner[key]
            others = inner[1:] if isinstance(inner, list) else {**inner}
            if isinstance(others, dict):
                del others[name]
            yield path, json.dumps(replace_at(written, above, others))


def attempt(read):
    """Returns what a function returns, or the DataError that it raises."""
    try:
        return read()
    except DataError as error:
        return error


@pytest.fixture
def run(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "saved_model.pb").touch()
    return tmp_path


def test_a_forged_result_of_a_training_is_shown_or_not_there(run):
    path = run / "training.json"
    path.write_text(json.dumps({"plan": PLAN, "result": RESULT.to_dict()}))
    found = read_result(str(run), PLAN)
    page, model = str(run / "model.html"), str(run / "model")
    assert found == replace(
        RESULT,
        checkpoint_dir=str(run),
        model_dir=model,
        already_complete=True,
        hints=("use more images",),
        evaluation=replace(EVALUATION, model_dir=model, report_path=page),
    )
    shown = 0
    for place, text in forge({"plan": PLAN, "result": RESULT.to_dict()}):
        path.write_text(text)
        result = read_result(str(run), PLAN)
        if result is None:
            continue
        shown += 1
        assert place[0] == "result"
        assert result.to_text().encode()
        assert result._repr_html_().encode()
        assert json.dumps(result.to_dict(), allow_nan=False)
    assert shown


def test_forged_facts_are_shown_or_not_there(tmp_path):
    written = {"evaluation.json": encode_evaluation(EVALUATION, FACTS)}
    written["facts.json"] = encode_facts(FACTS)
    for name, encoded in written.items():
        (tmp_path / name).write_bytes(encoded)
        read = read_facts(str(tmp_path), name)
        assert json.loads(json.dumps(asdict(read))) == json.loads(json.dumps(asdict(FACTS)))
    splits = [
        SimpleNamespace(name=split, data=[{"name": "x", "fingerprint": "f", "records": 3}])
        for split in ("train", "all")
    ]
    for place, text in forge({"format": 1, "facts": asdict(FACTS)}):
        (tmp_path / name).write_text(text)
        facts = read_facts(str(tmp_path), name)
        assert isinstance(facts, Facts)
        if not place:
            assert facts == Facts()
        assert {facts.find_use(split) for split in splits} <= {"", "train", "eval"}
        gallery = PagePictures(View({}, ()), thumbnails={}, names={})
        page = make_model_page(EVALUATION, facts, gallery)
        assert page.to_html().encode()
        assert page.to_markdown().encode()
        assert encode_evaluation(EVALUATION, facts)


def test_a_forged_history_is_damaged_or_of_epochs(tmp_path):
    (tmp_path / "best").mkdir()
    (tmp_path / "best" / "epoch.json").write_text(json.dumps(HISTORY[0]))
    for _, text in forge(HISTORY):
        (tmp_path / "history.json").write_text(text)
        found = attempt(lambda: read_history(str(tmp_path)))
        if isinstance(found, DataError):
            assert "history.json is damaged" in str(found)
            continue
        assert all(isinstance(each["epoch"], int) for each in found)
        assert read_exported(str(tmp_path)).epochs == len(found)
    (tmp_path / "history.json").write_text(json.dumps(HISTORY))
    for _, text in forge(HISTORY[0]):
        (tmp_path / "best" / "epoch.json").write_text(text)
        found = attempt(lambda: read_exported(str(tmp_path)))
        if isinstance(found, DataError):
            assert "epoch.json is damaged" in str(found)
        else:
            assert isinstance(found.best, int)
