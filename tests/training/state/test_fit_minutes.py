"""A training that may take a certain time."""

from __future__ import annotations

from functools import partial

import pytest

from darkroom.errors import UsageError
from darkroom.training import run
from darkroom.training.devices.environment import Cluster
from darkroom.training.devices.placement import DevicePlacement
from darkroom.training.features.compute import Computer
from darkroom.training.state.course import TimeBudget
from darkroom.training.state.training_run import TrainingRun

from ..histories import EndedError
from ..quick_loop import QuickLoop

pytestmark = pytest.mark.tensorflow


class _Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(autouse=True)
def clock(without_images, monkeypatch):
    """A clock by which each epoch takes ten seconds, and nothing else takes time."""
    found, inner = _Clock(), QuickLoop.train_epoch

    def train_epoch(*arguments):
        inner(*arguments)
        found.now += 10

    monkeypatch.setattr(QuickLoop, "train_epoch", train_epoch)
    monkeypatch.setattr(run, "TimeBudget", partial(TimeBudget, clock=found))
    # With it, an epoch of the last layers is thought to take 2.6 s, and one of all 4.3 s; and
    # another 10 s are kept for the start of each phase.
    monkeypatch.setattr(Computer, "measure_view", lambda computer, must_run: 0.05)
    return found


@pytest.fixture
def limited(values):
    del values["fine_tune_epochs"]
    return values


def _list_phases(trained):
    return [entry["phase"] for entry in trained.history]


def test_fine_tuning_takes_the_time_that_is_left(tmp_path, train_in, limited, notes):
    # After the head there are 30 s: for three epochs, which are thought to take 29.5 s.
    trained = train_in(tmp_path / "run", {**limited, "fit_minutes": 50 / 60})
    assert _list_phases(trained) == ["head", "head", "top", "top", "all"]
    [hint] = [each for each in trained.hints if "--fit-minutes" in each]
    # They took longer than it was thought.
    assert hint.endswith("1 min 20 s, and 0.833333 minutes have time for 3: --fit-minutes 3")
    # More time: more epochs, of which those that are done count.
    more = train_in(tmp_path / "run", {**limited, "fit_minutes": 2})
    assert _list_phases(more) == ["head", "head", "top", "top", "all", "all", "all"]


def test_time_before_a_kill_counts(tmp_path, train_in, limited, clock):
    options = {**limited, "epochs": 9, "fit_minutes": 0.75}
    inner = TrainingRun.end_epoch

    def end_epoch(training, *arguments):
        inner(training, *arguments)
        if len(training.history) == 2:
            raise EndedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingRun, "end_epoch", end_epoch)
        with pytest.raises(EndedError):
            train_in(tmp_path / "run", options)
    clock.now = -1000.0  # that of another machine
    trained = train_in(tmp_path / "run", options)
    assert _list_phases(trained) == ["head"] * 4


def test_several_processes_have_no_time_in_common(tmp_path, train_in, limited, monkeypatch):
    def make_placement(strategy):
        import tensorflow as tf

        return DevicePlacement(tf.distribute.get_strategy(), Cluster(num_workers=2))

    monkeypatch.setattr("darkroom.training.devices.placement.make_placement", make_placement)
    with pytest.raises(UsageError, match="fit_minutes is set, but several processes train"):
        train_in(tmp_path / "run", {**limited, "fit_minutes": 1})
