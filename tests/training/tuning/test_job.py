"""`darkroom train --tune N` as a command."""

from __future__ import annotations

import json

import pytest

import darkroom
from darkroom.cli import main
from darkroom.training import train
from darkroom.training.sources import find_data
from darkroom.training.tuning import job

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.usefixtures("own_models", "quick_loop", "quick_export"),
]
pytest.importorskip("keras_tuner")

QUICK = ["--image-size", "8x8", "--batch-size", "8", "--epochs", "2", "--model", "own_models:tiny"]


@pytest.fixture
def records(helpers, write_dataset):
    rows = helpers.make_rows(40)
    return write_dataset({"train": rows[:16], "eval": rows[16:24], "test": rows[24:32]})


def tune(records, folder, trials, capsys):
    command = ["train", "--data", str(records), "--checkpoint-dir", str(folder), *QUICK]
    code = main([*command, "--tune", str(trials), "--json"])
    said = capsys.readouterr()
    return code, json.loads(said.out), said.err


def read_trials(folder):
    return json.loads((folder / "tuning" / "trials.json").read_text())["trials"]


def test_the_model_is_trained_with_the_best_options(records, tmp_path, capsys):
    folder = tmp_path / "run"
    code, result, said = tune(records, folder, 3, capsys)
    assert code == 0
    trials = read_trials(folder)
    best = max(trials, key=lambda each: each["score"])
    assert len(trials) == 3
    # The same training again, with the same seed.
    assert result["metrics"]["val_accuracy"] == pytest.approx(best["score"])
    assert result["best_epoch"] == best["epoch"]
    plan = json.loads((folder / "training.json").read_text())["plan"]
    assert {name: plan["options"][name] for name in best["values"]} == best["values"]
    assert f"Best of 3 trials: {best['trial']}" in said
    assert sorted(path.name for path in (folder / "tuning").iterdir()) == [
        "chosen.json",
        "trials.json",
    ]

    trained, _, last = said.partition("Best of 3 trials")
    lines = [line for line in trained.splitlines() if "epoch" in line]
    assert [line.partition(" done")[0] for line in lines] == ["Trial 1/3", "Trial 2/3", "Trial 3/3"]
    assert "Training: epoch 1/2 done" in last

    # The same command again trains nothing.
    code, again, _ = tune(records, folder, 3, capsys)
    assert (code, again["already_complete"]) == (0, True)
    assert again["metrics"] == result["metrics"]


def test_more_trials_may_choose_other_options(records, tmp_path, capsys):
    folder = tmp_path / "run"
    assert tune(records, folder, 1, capsys)[0] == 0
    # As if the first options were the worst.
    path = folder / "tuning" / "trials.json"
    saved = json.loads(path.read_text())
    saved["trials"][0]["score"] = -1.0
    path.write_text(json.dumps(saved))
    code, result, _ = tune(records, folder, 2, capsys)
    assert code == 0
    assert not result["already_complete"]
    second = read_trials(folder)[1]
    assert result["metrics"]["val_accuracy"] == pytest.approx(second["score"])
    plan = json.loads((folder / "training.json").read_text())["plan"]
    assert plan["options"]["learning_rate"] == second["values"]["learning_rate"]


def test_it_is_an_argument_in_python_too(records, tmp_path, monkeypatch):
    reads = []
    monkeypatch.setattr(train, "find_data", lambda *given: reads.append(given) or find_data(*given))
    options = {"image_size": (8, 8), "batch_size": 8, "epochs": 2, "model": "own_models:tiny"}
    result = darkroom.train(records, tmp_path / "run", tune=2, **options)
    trials = read_trials(tmp_path / "run")
    assert len(trials) == 2
    best = max(trials, key=lambda each: each["score"])
    assert result.metrics["val_accuracy"] == pytest.approx(best["score"])
    # The data is looked for once, for the trials and the training together.
    assert reads == [([str(records)], [])]
    # The search is known, so the command goes on with it.
    again = darkroom.train(records, tmp_path / "run", tune=2, **options)
    assert again.already_complete


def test_a_wrong_number_of_trials_is_a_usage_error(records, tmp_path, capsys):
    code, result, _ = tune(records, tmp_path / "run", -1, capsys)
    assert code == 2
    assert "tune is -1" in result["error"]["message"]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("missing", ["keras_tuner", "sklearn"])
def test_without_the_extra_nothing_is_trained(records, tmp_path, capsys, monkeypatch, missing):
    inner = job.importlib.util.find_spec
    monkeypatch.setattr(job.importlib.util, "find_spec", lambda n: n != missing and inner(n))
    code, result, _ = tune(records, tmp_path / "run", 3, capsys)
    assert code == 3
    assert "--tune needs the extra 'tune', which is not installed" in result["error"]["message"]
    assert not (tmp_path / "run").exists()


def test_several_processes_cannot_search(records, tmp_path, capsys, monkeypatch):
    cluster = {"worker": ["a:1", "b:1"]}
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}})
    )
    code, result, _ = tune(records, tmp_path / "run", 2, capsys)
    assert code == 2
    assert "TF_CONFIG names several" in result["error"]["message"]
