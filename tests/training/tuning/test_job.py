"""`darkroom train --tune N` as a command."""

from __future__ import annotations

import json

import pytest

import darkroom
from darkroom.cli import main
from darkroom.options.training import TrainingOptions
from darkroom.training import train
from darkroom.training.devices.cluster import Cluster
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


def test_the_model_is_trained_with_the_best_options(records, tmp_path, capsys, monkeypatch):
    reads = []
    monkeypatch.setattr(train, "find_data", lambda *data: reads.append(data) or find_data(*data))
    folder = tmp_path / "run"
    code, result, said = tune(records, folder, 2, capsys)
    assert code == 0
    # The data is looked for once, for the trials and the training together.
    assert [data for data, _ in reads] == [[str(records)]]
    trials = read_trials(folder)
    best = max(trials, key=lambda each: each["score"])
    assert len(trials) == 2
    # The same training again, with the same seed.
    assert result["metrics"]["val_accuracy"] == pytest.approx(best["score"])
    assert result["best_epoch"] == best["epoch"]
    plan = json.loads((folder / "training.json").read_text())["plan"]
    assert {name: plan["options"][name] for name in best["values"]} == best["values"]
    assert f"Best of 2 trials: {best['trial']}" in said
    assert sorted(path.name for path in (folder / "tuning").iterdir()) == [
        "chosen.json",
        "trials.json",
    ]

    trained, _, last = said.partition("Best of 2 trials")
    lines = [line for line in trained.splitlines() if "epoch" in line]
    assert [line.partition(" done")[0] for line in lines] == ["Trial 1/2", "Trial 2/2"]
    assert "Training: epoch 1/2 done" in last

    # The same command again trains nothing.
    code, again, _ = tune(records, folder, 2, capsys)
    assert (code, again["already_complete"]) == (0, True)
    assert again["metrics"] == result["metrics"]


def test_more_trials_may_choose_other_options(tmp_path):
    scores = iter([0.25, 0.75, 0.5])

    def choose(tune):
        def train(_options, _folder):
            return [{"epoch": 1, "val_loss": 1.0, "val_accuracy": next(scores)}]

        return job.choose_options(TrainingOptions(), {}, str(tmp_path), tune, train)

    first = choose(1)
    (tmp_path / "history.json").write_text("of a training with these options")
    assert choose(1) == first == TrainingOptions()
    assert (tmp_path / "history.json").exists()
    second = choose(2)
    values = read_trials(tmp_path)[1]["values"]
    assert {name: getattr(second, name) for name in values} == values
    assert not (tmp_path / "history.json").exists()
    assert choose(3) == second


def test_it_is_an_argument_in_python_too(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(train, "train_datasets", lambda *_, tune: begun.append(tune))
    darkroom.train("records", tmp_path, tune=2)
    assert begun == [2]


@pytest.mark.parametrize(
    ("trials", "missing", "num_workers", "code", "message"),
    [
        (-1, "", 1, 2, "tune is -1"),
        (2, "", 2, 2, "TF_CONFIG names several"),
        (3, "keras_tuner", 1, 3, "--tune needs the extra 'tune', which is not installed"),
        (3, "sklearn", 1, 3, "--tune needs the extra 'tune', which is not installed"),
    ],
)
def test_where_no_search_is_possible_nothing_is_trained(
    records, tmp_path, capsys, monkeypatch, trials, missing, num_workers, code, message
):
    inner = job.importlib.util.find_spec
    monkeypatch.setattr(job.importlib.util, "find_spec", lambda n: n != missing and inner(n))
    monkeypatch.setattr(job, "read_cluster", lambda: Cluster(num_workers=num_workers))
    found, result, _ = tune(records, tmp_path / "run", trials, capsys)
    assert (found, message in result["error"]["message"]) == (code, True)
    assert not (tmp_path / "run").exists()
