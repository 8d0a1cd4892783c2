"""What a training does next: a function of how far it is, without a model and without a file."""

from __future__ import annotations

import pytest

from darkroom.options.training import TrainingOptions
from darkroom.training.state.course import Course, Phase, TimeBudget, TrainingStep, next_step

LITE = {"model": "efficientnet-lite0", "epochs": 3}


def _make_course(history=(), *, phase="", step=0, minutes=None, spent=0.0, gpu=False, **values):
    """A course of 100 images and 20: of a history, each letter a phase, with a loss that falls."""
    times = iter([0.0])
    budget = TimeBudget(minutes, lambda: next(times, spent))
    budget.view_seconds = 0.1
    names = {"w": {}, "h": {"phase": "head"}, "t": {"phase": "top"}, "a": {"phase": "all"}}
    entries = [{"epoch": n, **names[each], "val_loss": 1 / n} for n, each in enumerate(history, 1)]
    return Course(
        options=TrainingOptions(**values),
        num_images=(100, 20),
        has_gpu=gpu,
        budget=budget,
        history=entries,
        phase=phase,
        step=step,
    )


@pytest.mark.parametrize(("history", "left"), [("", True), ("ww", True), ("www", False)])
def test_a_whole_model_has_one_phase(history, left):
    found = next_step(_make_course(history, epochs=3))
    assert found == (TrainingStep(Phase("", 3), 3) if left else TrainingStep(None))


@pytest.mark.parametrize(
    ("history", "phase", "expected"),
    [
        ("", "head", TrainingStep(Phase("head", 3), 6)),
        ("hh", "head", TrainingStep(Phase("head", 3), 6)),
        ("hhh", "head", TrainingStep(Phase("top", 2), 6)),
        # Those of the head that were asked for later do not come back.
        ("hht", "top", TrainingStep(Phase("top", 2), 5)),
        ("hhhtt", "top", TrainingStep(Phase("all", 1), 6)),
        ("hhhtta", "all", TrainingStep(None)),
    ],
)
def test_phases_follow_each_other(history, phase, expected):
    assert next_step(_make_course(history, phase=phase, fine_tune_epochs=3, **LITE)) == expected


@pytest.mark.parametrize(("gpu", "asked", "epochs"), [(True, None, 6), (False, None, 0), (1, 0, 0)])
def test_a_gpu_fine_tunes_without_being_asked(gpu, asked, epochs):
    course = _make_course("hhh", phase="head", gpu=gpu, fine_tune_epochs=asked, **LITE)
    assert course.choose_fine_tuning() == epochs
    assert next_step(course).phase == (Phase("top", 3) if epochs else None)


def test_a_phase_ends_early_and_says_how_to_train_on():
    course = _make_course("www", epochs=9, early_stopping_patience=2)
    for entry in course.history[1:]:
        entry["val_loss"] = 1.0
    assert next_step(course) == TrainingStep(
        None,
        end="Ended after epoch 3: no lower val_loss in 2 epochs. To train on: "
        "--early-stopping-patience 9.",
    )


def test_a_head_ends_where_its_loss_stays(monkeypatch):
    monkeypatch.setattr("darkroom.training.state.course._HEAD_PATIENCE", 2)

    def find_next(**values):
        flat = _make_course("hhh", phase="head", **{**LITE, "epochs": 9, **values})
        for entry in flat.history:
            entry["val_loss"] = 1.0
        return next_step(flat)

    assert find_next(fine_tune_epochs=1).phase == Phase("top", 1)
    ended = find_next(fine_tune_epochs=0)
    assert ended.phase is None
    assert ended.end == (
        "Ended after epoch 3: no lower val_loss in 2 epochs. To train on: "
        "--early-stopping-patience 9."
    )
    # What the user says counts more; and the last epoch may be wanted whatever its loss.
    for more in ({"early_stopping_patience": 6}, {"export": "last"}):
        assert find_next(fine_tune_epochs=0, **more).phase == Phase("head", 9)


@pytest.mark.parametrize(
    ("asked", "view_seconds", "text"),
    [
        # An epoch of the last layers is thought to take 22 s, one of all 37 s.
        (None, 0.1, "fine-tuning for 6 epochs would take about 3 min 17 s: --fine-tune-epochs 6"),
        # Features are all known, so nothing was measured.
        (None, 0.0, "fine-tuning may make the model better: --fine-tune-epochs 6"),
        (0, 0.1, ""),
    ],
)
def test_fine_tuning_that_is_left_out_is_suggested(asked, view_seconds, text):
    course = _make_course("hhh", phase="head", fine_tune_epochs=asked, **LITE)
    course.budget.view_seconds = view_seconds
    assert course.suggest_fine_tuning() == text


@pytest.mark.parametrize(
    ("history", "step", "ends"),
    [("", 0, False), ("w", 0, True), ("w", 2, False)],
)
def test_there_is_always_a_model_and_an_epoch_that_began_is_ended(history, step, ends):
    course = _make_course(history, step=step, minutes=1, spent=55.0, epochs=9)
    course.budget.epoch_seconds[""] = 10.0
    found = next_step(course)
    assert (found.phase is None) == ends
    if ends:
        assert found.end == (
            "Ends after epoch 1: another one takes 10.0 s, more than is left of --fit-minutes 1."
        )


# An epoch of the last layers is thought to take 0.1 * (100 * 2 + 20) = 22 s, one of all 37 s.
@pytest.mark.parametrize(("spent", "epochs"), [(0.0, 3), (70.0, 1), (100.0, 0), (500.0, 0)])
def test_fine_tuning_takes_the_time_that_is_left(spent, epochs):
    course = _make_course("hhh", phase="head", minutes=2, spent=spent, **LITE)
    assert course.choose_fine_tuning() == epochs
    assert (next_step(course).phase is None) == (epochs == 0)
    assert "2 minutes have time for" in course.suggest_fine_tuning()


def test_time_that_is_over_in_a_phase_ends_the_training():
    course = _make_course("hhht", phase="top", minutes=2, spent=90.0, **LITE)
    course.budget.fine_tune_epochs = 4
    course.budget.epoch_seconds["top"] = 31.0  # longer than one of all is thought to take
    course.budget.view_seconds = 0.001
    assert next_step(course).end.startswith("Ends after epoch 4: another one takes 31.0 s")
