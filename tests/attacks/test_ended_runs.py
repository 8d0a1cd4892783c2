"""`run` and `train` that end anywhere: the next one ends as if nothing had been.

They are not in the table of `test_sweep`: two trainings have equal numbers, not equal bytes.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tests.attacks.conftest import SmallRun
from tests.interrupted_runs import Runner
from tests.pictures import write_label_folders
from tests.trees import read_files

from darkroom import verify
from darkroom.components.pusher.saved_model import check_saved_model
from darkroom.conversion.convert import convert

pytestmark = pytest.mark.tfx


def read_weights(model: Path) -> dict[str, np.ndarray]:
    """Returns the variables of a SavedModel by name; without what only names objects."""
    reader = tf.train.load_checkpoint(str(model / "variables/variables"))
    shapes = reader.get_variable_to_shape_map()
    return {name: reader.get_tensor(name) for name in shapes if name[0] != "_"}


def check_same_model(found: Path, expected: Path) -> None:
    check_saved_model(str(found))
    weights, wanted = read_weights(found), read_weights(expected)
    assert weights.keys() == wanted.keys()
    for name, values in wanted.items():
        np.testing.assert_allclose(weights[name], values, rtol=1e-4, atol=1e-6, err_msg=name)


def end_often(runner: Runner, argv, reset, steps: dict[str, int], moments: int) -> Iterator[str]:
    """Ends a command by faults at some of its steps and at moments; yields where, after each."""
    chosen = random.Random(5)
    seconds = 0.0
    for fault, count in steps.items():
        reset()
        started = time.monotonic()
        total = runner.count_steps(*argv, fault=fault)
        seconds = time.monotonic() - started
        for step in sorted(chosen.sample(range(1, total + 1), min(count, total))):
            reset()
            code = runner.run(*argv, fault=fault, step=step)
            if fault == "kill":
                assert code == -signal.SIGKILL, runner.output
            assert "Traceback" not in runner.output, runner.output
            yield f"{fault}, step {step} of {total}"
    for _ in range(moments):
        reset()
        delay = chosen.uniform(0, seconds)
        # It may have come to its end.
        code = runner.run(*argv, kill_after=delay)
        assert code in (-signal.SIGKILL, 0), runner.output
        yield f"after {delay:.1f} s of {seconds:.1f}"


@pytest.mark.long
def test_a_run_that_ended_ends_with_the_same_records_and_model(
    small_run: SmallRun, tmp_path, capsys
):
    """DARKROOM_KILLS sets how often it ends: by SIGKILL, by a call that fails, and at moments."""
    count = int(os.environ.get("DARKROOM_KILLS", "9"))
    expected = small_run.run()
    assert expected["code"] == 0, expected
    records = read_files(expected["examples"])
    os.rename(small_run.root, tmp_path / "whole")
    model = tmp_path / "whole" / Path(expected["pushed"]).relative_to(small_run.root)
    kills = end_often(
        *(small_run.runner, small_run.make_argv(), small_run.restore),
        *({"kill": count // 3, "fail": count // 3}, count // 3),
    )
    killed = 0
    for where in kills:
        # What a server would find is whole at any moment.
        for version in small_run.root.glob("pushed/[0-9]*"):
            check_saved_model(str(version))
        found = small_run.run()
        assert found["code"] == 0, (where, found)
        assert found["accuracy"] == pytest.approx(expected["accuracy"]), where
        assert (found["epochs"], found["blessed"]) == (expected["epochs"], True)
        assert read_files(found["examples"]) == records, where
        assert verify(found["examples"]).is_sound
        check_same_model(Path(found["pushed"]), model)
        again = small_run.run()
        assert (again["code"], len(again["reused"])) == (0, 11), (where, again)
        killed += 1
    with capsys.disabled():
        print(f"\nrun{killed:>6} times, as many good reruns")


@pytest.mark.long
def test_a_training_that_ended_gives_the_same_model(runner: Runner, tmp_path, capsys):
    write_label_folders(tmp_path / "src", 20)
    convert(tmp_path / "src", tmp_path / "records")
    folder, whole = tmp_path / "out", tmp_path / "whole"
    options = ("--image-size", "8x8", "--batch-size", "8", "--epochs", "3")
    argv = ("train", "--data", tmp_path / "records", *options, "--checkpoint-steps", "2")
    argv = (*argv, "--checkpoint-dir", folder)

    assert runner.run(*argv) == 0, runner.output
    os.rename(folder, whole)

    def reset() -> None:
        shutil.rmtree(folder, ignore_errors=True)

    killed = 0
    for where in end_often(runner, argv, reset, {"kill": 5, "fail": 5}, moments=3):
        assert runner.run(*argv) == 0, (where, runner.output)
        history, found = (
            json.loads((each / "history.json").read_text()) for each in (whole, folder)
        )
        for entry, wanted in zip(found, history, strict=True):
            same = {name: wanted[name] for name in ("epoch", "loss", "val_loss", "accuracy")}
            assert {name: entry[name] for name in same} == pytest.approx(same, rel=1e-4), where
        check_same_model(folder / "model", whole / "model")
        assert not list(folder.glob("model/.*")) + list(folder.glob(".*tmp*")), where
        killed += 1
    with capsys.disabled():
        print(f"\ntrain{killed:>6} times, as many good reruns")
