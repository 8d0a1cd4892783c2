"""The demo where TFX is not installed: the same checks, gate, training and summary."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from darkroom.cli import main
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.opening import check_files

from ...warm_python import WarmPython

pytestmark = pytest.mark.tensorflow

# As on a machine without TFX, even if it was imported before.
_WITHOUT_TFX = """
import sys
for name in [name for name in sys.modules if name.split(".")[0] in ("darkroom", "tfx")]:
    del sys.modules[name]
sys.modules["tfx"] = None
from darkroom.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def run_demo(
    tmp_path_factory: pytest.TempPathFactory, warm_python: WarmPython
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the demo in a process without TFX, always in the same folder."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "without_tfx.py").write_text(_WITHOUT_TFX)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ("without_tfx.py", "demo", "--root", folder / "root", *arguments)
        return warm_python.run(*command, cwd=folder)

    return run


@pytest.fixture(scope="module")
def demo(run_demo: Callable[..., subprocess.CompletedProcess[str]]) -> tuple[Path, dict[str, Any]]:
    """The folder of the demo, and what the first run said."""
    done = run_demo("--json")
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads(done.stdout)
    return Path(summary["pushed"]).parents[2], summary


def test_the_data_is_judged_as_by_the_pipeline(demo):
    _, summary = demo
    check_files(summary["examples"], read_dataset(summary["examples"]))
    assert (summary["rows"], summary["written"], summary["deduplicated"]) == (1803, 1799, 0)
    assert summary["rejected"] == {"empty": 1, "missing": 1, "not_an_image": 1, "truncated": 1}
    assert summary["changed"] == {"orientation": 1}
    assert summary["blessed"] is True
    found = {each["check"]: (each["policy"], each["rows"]) for each in summary["findings"]}
    assert sorted(found) == ["label_conflicts", "leakage"]
    policy, [leak] = found["leakage"]
    assert policy == "warn"
    names = {Path(leak["uri"]).name, Path(leak["other_uri"]).name}
    assert names == {"0010.png", "copy-of-0010.png"}
    assert "Passed with 2 warnings." in Path(summary["report"]).read_text()


def test_a_model_is_trained_evaluated_and_pushed(demo):
    tf = pytest.importorskip("tensorflow")
    root, summary = demo
    history = json.loads((root / "run-without-tfx/training/history.json").read_text())
    best = min(history, key=lambda entry: entry["val_loss"])
    assert (summary["best_epoch"], summary["epochs"]) == (best["epoch"], 8)
    # The accuracy is that of the model that was exported, over the whole split.
    assert summary["accuracy"] == pytest.approx(best["val_accuracy"])
    assert summary["accuracy"] >= 0.97
    assert "right on the eval split" in Path(summary["page"]).read_text()
    answer = tf.saved_model.load(summary["pushed"]).signatures["serving_default"](
        image_bytes=tf.constant([(root / "images/digits/4/0002.png").read_bytes()])
    )
    assert answer["label"].numpy() == [b"4"]


def test_a_second_run_trains_and_pushes_nothing_again(demo, run_demo):
    root, summary = demo
    done = run_demo()
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Pushed to  {summary['pushed']}\n" in done.stdout
    assert f"Page       {summary['page']}\n" in done.stdout
    assert "1 step reused" in done.stdout
    assert os.listdir(root / "run-without-tfx/pushed") == [Path(summary["pushed"]).name]
    last = done.stdout.splitlines()[-2:]
    assert last[0].endswith("darkroom convert YOUR_IMAGES --output-dir records")
    assert last[1].startswith("With TFX   ")
    assert "Kubeflow and Vertex AI" in last[1]


def test_the_gate_stops_before_the_training(demo, run_demo):
    done = run_demo("--policy", "leakage=fail", "--json")
    assert done.returncode == 1, done.stdout + done.stderr
    stopped = json.loads(done.stdout)
    assert (stopped["blessed"], stopped["accuracy"], stopped["pushed"]) == (False, None, None)
    assert stopped["findings"][0]["policy"] == "fail"
    assert stopped["error"]["code"] == "data"
    assert stopped["error"]["message"].startswith("The data did not pass. Stopped by 1 finding")


def test_without_tensorflow_the_demo_says_which_extra_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    arguments = ["demo", "--root", f"{tmp_path}/demo", "--without-tfx", "--json"]
    assert main(arguments) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "missing-extra"
    assert error["message"] == "The demo needs the extra 'tf', which is not installed."
    assert not (tmp_path / "demo").exists()


def test_other_data_in_the_folder_of_the_run_is_left_alone(tmp_path, capsys):
    own = tmp_path / "demo" / "run-without-tfx" / "thesis.txt"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    assert main(["demo", "--root", f"{tmp_path}/demo", "--without-tfx"]) == 4
    assert "contains unrelated files: thesis.txt." in capsys.readouterr().err
    assert own.read_text() == "mine"


@pytest.mark.skipif(not importlib.util.find_spec("tfx"), reason="needs the extra [tfx]")
def test_with_tfx_installed_the_form_without_it_can_be_asked_for(demo, warm_python):
    root, summary = demo
    done = warm_python.run(
        *("-m", "darkroom.cli", "demo", "--without-tfx", "--root", root, "--json"), cwd=root.parent
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["pushed"] == summary["pushed"]
