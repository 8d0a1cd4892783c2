"""At its end, `darkroom train` scores the test split once, with the model that it exported."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from darkroom.cli import main
from darkroom.errors import DataError
from darkroom.evaluation import evaluate as scoring

from ..pictures import encode

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder", "own_models")]

OPTIONS = ["--image-size", "8x8", "--batch-size", "8", "--augment", "none"]
OPTIONS += ["--model", "own_models:ready", "--learning-rate", "1e-6"]


@pytest.fixture
def pictures(tmp_path):
    """Dark and light pictures; in test, one of six dark ones has the wrong label."""
    rng = np.random.default_rng(0)
    for split, count in {"train": 12, "val": 6, "test": 6}.items():
        for number in range(2 * count):
            is_light = number % 2 == 1
            label = "light" if is_light or (split, number) == ("test", 0) else "dark"
            pixels = rng.integers(140 if is_light else 0, 255 if is_light else 110, (8, 8, 3))
            path = tmp_path / "pictures" / split / label / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode(pixels.astype(np.uint8)))
    return tmp_path / "pictures"


@pytest.fixture
def count_scorings(monkeypatch):
    scored = []
    inner = scoring.score_split

    def score(*arguments):
        scored.append(arguments)
        return inner(*arguments)

    monkeypatch.setattr(scoring, "score_split", score)
    return scored


@pytest.fixture
def ready_model(own_models, quick_loop, monkeypatch):
    """A model that is right from the start, as own_models:ready."""

    def make(num_classes, image_size):
        model = own_models.tiny(num_classes, image_size)
        model.layers[-1].set_weights([np.array([[-9.0, 9.0]] * 3), np.array([13.0, -13.0])])
        return model

    monkeypatch.setattr(own_models, "ready", make, raising=False)


def _fail(*arguments):
    raise DataError("1 of 12 images cannot be decoded.")


@pytest.mark.usefixtures("ready_model")
def test_the_test_split_is_scored_once(pictures, tmp_path, capsys, monkeypatch, count_scorings):
    folder = tmp_path / "run"
    command = ["train", "--data", str(pictures), "--checkpoint-dir", str(folder), *OPTIONS]
    command += ["--epochs", "2"]
    with monkeypatch.context() as patch:
        patch.setattr(scoring, "score_split", _fail)
        assert main(command) == 1
    said = capsys.readouterr().err
    assert "The model is trained and exported, but it cannot be scored: 1 of 12 images" in said
    assert (folder / "model" / "saved_model.pb").exists()
    assert not (folder / "model.html").exists()
    assert not (folder / "training.json").exists()

    # The next run trains nothing, and scores.
    assert main([*command, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["epochs"], result["already_complete"]) == (2, False)
    found = result["evaluation"]
    assert (found["split"], found["records"], found["accuracy"]) == ("test", 12, 11 / 12)
    assert found["confusions"] == [{"label": "light", "predicted": "dark", "records": 1}]
    assert found["report_path"] == f"{folder}/model.html"

    saved = json.loads((folder / "evaluation.json").read_text())
    assert saved["evaluation"] == found
    facts = saved["facts"]
    assert facts["recipe"]["model"] == "own_models:ready"
    assert [entry["epoch"] for entry in facts["history"]] == [1, 2]
    records = {split: parts[0]["records"] for split, parts in facts["data"].items()}
    assert records == {"train": 24, "eval": 12, "test": 12}
    page = (folder / "model.html").read_text()
    assert "91.7% right on the test split" in page
    assert "own_models:ready" in page
    assert (folder / "model.md").exists()

    # A training that is complete says it again, and scores nothing.
    assert main(command) == 0
    out = capsys.readouterr().out
    assert out.startswith("Already complete: nothing was done.\n")
    assert "\nAccuracy   0.9167 on the test split of 12 records" in out
    assert f"\nPage       {folder}/model.html\n" in out
    assert len(count_scorings) == 1

    # The folder may be moved.
    moved = shutil.move(folder, tmp_path / "moved")
    command[command.index(str(folder))] = str(moved)
    assert main([*command, "--json"]) == 0
    again = json.loads(capsys.readouterr().out)["evaluation"]
    assert (again["report_path"], again["model_dir"]) == (f"{moved}/model.html", f"{moved}/model")

    # The page of this model does not outlive it.
    monkeypatch.setattr("darkroom.training.export.export_model", lambda *_, **__: 1 / 0)
    assert main([*command, "--epochs", "3"]) == 70
    left = {path.name for path in moved.iterdir()}
    assert left.isdisjoint({"model.html", "model.md", "evaluation.json", "training.json"})
