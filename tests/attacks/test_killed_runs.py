"""`run`, `train` and `compile` that are killed anywhere: the next one ends as if nothing was."""

from __future__ import annotations

import json
import os
import random
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

_CONFIG = Path(__file__).parents[2] / "docs/examples/kubeflow.toml"


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


def kill_often(runner: Runner, argv, reset, num_steps: int, num_moments: int) -> Iterator[str]:
    """Kills a command at some of its steps and moments; yields where, after each."""
    started = time.monotonic()
    total = runner.count_steps(*argv, fault="system")
    seconds = time.monotonic() - started
    chosen = random.Random(5)
    for step in sorted(chosen.sample(range(1, total + 1), min(num_steps, total))):
        reset()
        code = runner.run(*argv, fault="system", step=step)
        assert code == -signal.SIGKILL, runner.output
        yield f"step {step} of {total}"
    for _ in range(num_moments):
        reset()
        delay = chosen.uniform(0, seconds)
        # It may have come to its end.
        code = runner.run(*argv, kill_after=delay)
        assert code in (-signal.SIGKILL, 0), runner.output
        yield f"after {delay:.1f} s of {seconds:.1f}"


@pytest.mark.long
def test_a_killed_run_ends_with_the_same_records_and_model(small_run: SmallRun, tmp_path, capsys):
    """DARKROOM_KILLS sets how often it is killed; a third of them at moments."""
    count = int(os.environ.get("DARKROOM_KILLS", "60"))
    expected = small_run.run()
    assert expected["code"] == 0, expected
    records = read_files(expected["examples"])
    os.rename(small_run.root, tmp_path / "whole")
    model = tmp_path / "whole" / Path(expected["pushed"]).relative_to(small_run.root)
    kills = kill_often(
        *(small_run.runner, small_run.make_argv(), small_run.restore),
        *(count - count // 3, count // 3),
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
def test_a_killed_training_ends_with_the_same_model(runner: Runner, tmp_path, capsys):
    write_label_folders(tmp_path / "src", 20)
    convert(tmp_path / "src", tmp_path / "records")
    folder, whole = tmp_path / "out", tmp_path / "whole"
    options = ("--image-size", "8x8", "--batch-size", "8", "--epochs", "3")
    argv = ("train", "--data", tmp_path / "records", *options, "--checkpoint-steps", "2")
    argv = (*argv, "--checkpoint-dir", folder)

    def reset() -> None:
        # The first run comes to its end.
        os.rename(folder, tmp_path / f"old-{time.monotonic_ns()}" if whole.exists() else whole)

    killed = 0
    for where in kill_often(runner, argv, reset, num_steps=30, num_moments=30):
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


@pytest.mark.long
def test_a_killed_compile_leaves_the_old_pipeline_or_the_new_one(runner: Runner, tmp_path):
    output = tmp_path / "build/pipeline.yaml"
    output.parent.mkdir()
    argv = ("compile", "--target", "kubeflow", "--config", _CONFIG, "-o", output)
    texts = []
    for arguments in (argv, more := (*argv, "--set", "epochs=7")):
        assert runner.run(*arguments) == 0, runner.output
        texts.append(output.read_bytes())
    old, new = texts
    assert old != new
    for where in kill_often(runner, more, lambda: output.write_bytes(old), 10_000, 0):
        assert output.read_bytes() in texts, where
        assert runner.run(*more) == 0, (where, runner.output)
        assert output.read_bytes() == new, where
        left = [path.name for path in output.parent.iterdir()]
        assert [name for name in left if name[0] != "."] == ["pipeline.yaml"], where
