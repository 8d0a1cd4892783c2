"""`darkroom train`: converted datasets to a SavedModel in one folder."""

from __future__ import annotations

import itertools
import json
import shutil

import pytest

from darkroom.cli import main
from darkroom.profiling.meter import InputTiming
from darkroom.profiling.verdict import STAGES, StageCosts
from darkroom.storage.locks import FolderLock

from ..trees import read_files
from .quick_loop import QuickLoop
from .test_forged_files import RESULT

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder", "own_models")]

# A model that is traced quickly, where the network does not matter.
QUICK = ["--image-size", "8x8", "--batch-size", "8", "--augment", "none"]
QUICK += ["--model", "own_models:tiny"]


@pytest.fixture
def datasets(helpers, write_dataset, tmp_path):
    """Two datasets; the second has no eval split."""
    rows = helpers.make_rows(40)
    first = write_dataset({"train": rows[:16], "eval": rows[16:24]}).rename(tmp_path / "set-1")
    second = write_dataset({"train": rows[24:]}).rename(tmp_path / "set-2")
    return first, second


@pytest.mark.usefixtures("quick_loop", "quick_export")
def test_train_makes_a_model_and_says_when_it_is_complete(
    datasets, tmp_path, capsys, count_commits
):
    folder = tmp_path / "run"
    command = ["train", "--data", f"{tmp_path}/set-*", "--eval-data", str(datasets[0])]
    command += ["--checkpoint-dir", str(folder), *QUICK]
    each_once = [f"{root}/dataset.json" for root in datasets]
    with count_commits() as read:
        assert main([*command, "--epochs", "1", "--json"]) == 0
    assert sorted(read) == each_once
    result = json.loads(capsys.readouterr().out)
    assert result["epochs"] == 1
    assert not result["already_complete"]
    assert set(result["metrics"]) == {"loss", "accuracy", "val_loss", "val_accuracy"}
    assert result["model_dir"] == str(folder / "model")

    # A complete training is recognized without opening a record.
    with count_commits() as read:
        assert main([*command, "--epochs", "1"]) == 0
    assert sorted(read) == each_once
    out = capsys.readouterr().out
    assert out.startswith(
        "Already complete: nothing was done.\n"
        "Epoch      1 of 1 (lowest val_loss)\nMetrics    accuracy "
    )

    # The model was deleted: it is exported again, without training.
    exported = (folder / "model" / "saved_model.pb").read_bytes()
    shutil.rmtree(folder / "model")
    assert main([*command, "--epochs", "1", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["already_complete"], again["epochs"]) == (False, 1)
    assert again["metrics"] == result["metrics"]
    assert (folder / "model" / "saved_model.pb").read_bytes() == exported

    # More epochs: it resumes, and the model is new; what the user put beside it stays.
    (folder / "model" / "notes.txt").write_text("mine")
    before = (folder / "model" / "saved_model.pb").stat().st_mtime_ns
    assert main([*command, "--epochs", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epochs"] == 2
    assert (folder / "model" / "saved_model.pb").stat().st_mtime_ns > before
    assert (folder / "model" / "notes.txt").read_text() == "mine"
    history = json.loads((folder / "history.json").read_text())
    assert [entry["epoch"] for entry in history] == [1, 2]
    assert history[0]["loss"] == pytest.approx(result["metrics"]["loss"])

    # Another training must not use this folder.
    other = ["train", "--data", str(datasets[0]), "--checkpoint-dir", str(folder), *QUICK]
    assert main(other) == 4
    said = capsys.readouterr().err
    assert "belongs to a training on different data" in said
    assert f"Use another folder for this run, or delete {folder}." in said


@pytest.mark.usefixtures("quick_loop", "quick_export")
def test_more_epochs_that_are_worse_leave_the_model_as_it_is(
    datasets, tmp_path, capsys, monkeypatch
):
    hints = ["dog has 12: --balance prior", "it rises: --epochs 60"]
    monkeypatch.setattr("darkroom.training.run.list_hints", lambda *_: hints)
    losses = itertools.count(1.0)
    monkeypatch.setattr(QuickLoop, "evaluate", lambda *_: {"loss": next(losses)})
    folder = tmp_path / "run"
    command = ["train", "--data", str(datasets[0]), *QUICK, "--checkpoint-dir", str(folder)]
    assert main([*command, "--epochs", "1"]) == 0
    capsys.readouterr()
    weights = (folder / "model" / "saved_model.pb").read_bytes()

    assert main([*command, "--epochs", "2"]) == 0
    printed = capsys.readouterr().out
    assert "Epoch      1 of 2 (lowest val_loss)\nMetrics " in printed
    # One of them is of a training that needs another folder.
    assert "Next       dog has 12: --balance prior with another --checkpoint-dir\n" in printed
    assert printed.rstrip().endswith("           it rises: --epochs 60")
    assert (folder / "model" / "saved_model.pb").read_bytes() == weights
    history = json.loads((folder / "history.json").read_text())
    assert [entry["val_loss"] for entry in history] == [1, 2]

    command += ["--epochs", "2", "--json"]
    assert main(command) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["epochs"], result["best_epoch"], result["already_complete"]) == (2, 1, True)
    assert {"epoch": 1, **result["metrics"]} == history[0]

    # What says which epoch was exported is lost: it is written again.
    (folder / "best" / "epoch.json").unlink()
    result = json.loads((folder / "training.json").read_text())
    del result["result"]["best_epoch"]
    (folder / "training.json").write_text(json.dumps(result))
    (folder / "model" / "saved_model.pb").unlink()

    assert main(command) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["epochs"], result["best_epoch"], result["already_complete"]) == (2, 1, False)
    assert (folder / "model" / "saved_model.pb").read_bytes() == weights
    assert json.loads((folder / "best" / "epoch.json").read_text())["epoch"] == 1


def test_a_result_names_where_the_cost_of_the_input_is():
    assert RESULT.to_text().splitlines() == [
        "Epoch      2 of 2 (the last; 1 has the lowest val_loss)",
        "Metrics    loss 0.5000, accuracy 1.0000",
        *RESULT.evaluation.to_text().splitlines(),
        "Input      Not input-bound.",
        "           run/input.md",
        "History    run",
        "Model      run/model",
        "Next       use more images",
    ]


def test_data_that_cannot_be_trained_on_is_an_error(datasets, images, tmp_path, capsys):
    folder = ["--checkpoint-dir", str(tmp_path / "run")]
    assert main(["train", "--data", f"{tmp_path}/none-*", *folder]) == 1
    assert f"{tmp_path}/none-*" in capsys.readouterr().err
    assert main(["train", "--data", str(images), str(datasets[0]), *folder]) == 2
    assert "come from one list, folder or pattern" in capsys.readouterr().err
    assert main(["train", "--data", str(datasets[0]), *folder, "--loop", "while"]) == 2
    assert "Argument --loop: invalid choice: 'while'" in capsys.readouterr().err


@pytest.fixture
def images(helpers, tmp_path):
    """A folder of images by split and label."""
    for number, (png, label) in enumerate(helpers.make_rows(16)):
        split = "train" if number < 12 else "validation"
        path = tmp_path / "images" / split / ("dark", "light")[label] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png)
    return tmp_path / "images"


@pytest.mark.usefixtures("quick_loop", "quick_export")
def test_images_are_trained_on_without_a_conversion_and_profiled(
    images, tmp_path, capsys, monkeypatch
):
    def wait_for_decoding(source, _options):
        assert source.count_images() == 12
        return StageCosts({name: 1e-3 if name == "decode" else 1e-6 for name in STAGES})

    monkeypatch.setattr("darkroom.training.run.measure_stages", wait_for_decoding)
    monkeypatch.setattr(InputTiming, "images_per_second", 50.0)
    folder = tmp_path / "run"
    command = ["train", "--data", str(images), "--checkpoint-dir", str(folder), *QUICK]
    command += ["--profile-input", "--json", "--epochs"]
    for epochs, share in ((1, 0.5), (2, 0.01)):
        waits = share == 0.5
        monkeypatch.setattr(InputTiming, "waiting_share", property(lambda timing, of=share: of))
        assert main([*command, str(epochs)]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["epochs"] == epochs
        found = json.loads((folder / "input.json").read_text())
        assert found["verdict"] == result["verdict"]
        assert found["verdict"] in (folder / "input.md").read_text()
        assert found["verdict"].startswith("Input-bound 50%" if waits else "Not input-bound")
        assert ("decoding; store smaller" in found["verdict"]) == waits
        assert tuple(found["microseconds_an_image"]) == STAGES
    assert (folder / "model" / "assets" / "labels.txt").read_text() == "dark\nlight\n"

    assert main([*command, "2"]) == 0
    assert json.loads(capsys.readouterr().out)["already_complete"]
    changed = next(images.glob("train/dark/*"))
    changed.write_bytes(next(images.glob("train/light/*")).read_bytes())
    assert main([*command, "2"]) == 4
    message = json.loads(capsys.readouterr().out)["error"]["message"]
    assert "belongs to a training on different data" in message


def test_a_folder_that_is_not_of_this_training_alone_is_left_as_it_is(datasets, tmp_path, capsys):
    root, _ = datasets
    command = ["train", "--data", str(root), "--checkpoint-dir"]
    before = read_files(root)
    assert main([*command, str(root)]) == 4
    said = capsys.readouterr().err
    assert f"darkroom: {root} contains unrelated files: SHA256SUMS, Split-" in said
    assert "Choose another --checkpoint-dir, which may be new." in said
    assert read_files(root) == before
    (tmp_path / "run").mkdir()
    with FolderLock(str(tmp_path / "run")):
        assert main([*command, str(tmp_path / "run")]) == 4
    assert "is being written by process" in capsys.readouterr().err
