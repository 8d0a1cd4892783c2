from __future__ import annotations

import html
from dataclasses import replace

import numpy as np
import pytest

from darkroom.options.training import TrainingOptions
from darkroom.training.recipe.hints import (
    format_for_python,
    list_hints,
    name_other_folder,
)

from ..test_forged_files import RESULT

LITE = "efficientnet-lite0"
RISING = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75]
FLAT = [0.1, 0.5, 0.7, 0.74, 0.75, 0.75, 0.75, 0.76, 0.75]


def _history(accuracies, known=0.9):
    return [
        {"epoch": n, "accuracy": known, "val_accuracy": each}
        for n, each in enumerate(accuracies, 1)
    ]


def _list(accuracies, counts=(80, 80), labels=("cat", "dog"), **values):
    options = TrainingOptions(**{"model": LITE, "epochs": len(accuracies), **values})
    return list_hints(
        options, _history(accuracies), "accuracy", sum(counts), labels, np.array(counts)
    )


def test_more_epochs_are_named_where_accuracy_rises():
    assert _list(RISING) == ["accuracy on the eval split still rises: --epochs 18"]
    assert _list(FLAT) == []
    assert _list([0.1, 0.9]) == []
    # It was stopped because nothing got better.
    assert _list(RISING, epochs=20) == []
    # Of images that it knows by heart, it learns little.
    options = TrainingOptions(model=LITE, epochs=9)
    assert list_hints(options, _history(RISING, 0.99), "accuracy", 160, ["cat", "dog"], None) == []


def test_balance_is_named_where_a_label_is_rare():
    assert _list(FLAT, (400, 12)) == [
        "a label has fewer than 50 images, dog has 12: --balance prior"
    ]
    assert _list(FLAT, (400, 51)) == []
    # All are rare alike.
    assert _list(FLAT, (40, 12)) == []
    assert _list(FLAT, (400, 12), balance="weights") == []
    assert _list(FLAT, (400, 0)) == []
    assert (
        list_hints(
            TrainingOptions(model=LITE), _history(FLAT), "accuracy", 412, ["cat", "dog"], None
        )
        == []
    )


def test_several_rare_labels_are_counted():
    assert _list(FLAT, (9, 300, 30), ("a", "b", "c")) == [
        "2 of 3 labels have fewer than 50 images, a has 9: --balance prior"
    ]
    assert _list(FLAT, (9, 300, 30), ()) == []


def test_another_network_is_named_where_images_are_few():
    [hint] = _list(FLAT, (300, 300), model="small_cnn")
    assert hint.endswith(f"--model {LITE}")
    assert "600 images" in hint
    assert _list(FLAT, (30_000, 30_000), model="small_cnn") == []
    assert _list([0.99, 0.99, 0.99], (300, 300), model="small_cnn") == []
    assert _list(FLAT, (300, 300), model="small_cnn", weights="runs/old") == []
    # A network of Keras starts from nothing, too, if it gets no weights.
    assert _list(FLAT, (300, 300), model="keras.applications:MobileNetV2") == [hint]
    weights = {"model": "keras.applications:MobileNetV2", "weights": "imagenet"}
    assert _list(FLAT, (300, 300), **weights) == []


def _list_tuned(accuracies, tuned, best=None, **values):
    """Of a history whose last epochs are of fine-tuning, and whose best one is the last."""
    history = _history([0.1, 0.3, 0.5, 0.6, 0.7, 0.75, *accuracies])
    for number, entry in enumerate(history):
        entry["phase"] = "head" if number < 6 else "top" if number < 6 + tuned // 2 else "all"
        entry["val_loss"] = 0.0 if number + 1 == best else 9.0 - number / 10
    options = TrainingOptions(model=LITE, epochs=6, **values)
    return list_hints(options, history, "accuracy", 160, ["cat", "dog"], None)


def test_fine_tuning_that_was_left_out_comes_before_epochs():
    options = TrainingOptions(model=LITE, epochs=9)
    history = [{**entry, "phase": "head"} for entry in _history(RISING)]
    assert list_hints(
        options, history, "accuracy", 160, ["cat", "dog"], None, "fine-tuning takes long"
    ) == [
        "fine-tuning takes long",
        "accuracy on the eval split still rises: --epochs 18",
    ]


def test_after_fine_tuning_its_epochs_are_named_and_not_those_of_the_head():
    rising = [0.76, 0.78, 0.8, 0.83, 0.86, 0.9]
    assert _list_tuned(rising, 6) == [
        "accuracy on the eval split still rises: --fine-tune-epochs 12"
    ]
    # It may have stopped early.
    assert _list_tuned(rising, 6, early_stopping_patience=2) == []
    # From the head to now accuracy rose, but no longer.
    assert _list_tuned([0.9, 0.9, 0.9, 0.9, 0.9, 0.9], 6) == []
    assert _list_tuned(rising, 6, best=6) == [
        "fine-tuning did not help, so the head alone is as good: --fine-tune-epochs 0"
    ]


def test_a_model_that_is_always_right_gets_no_hint():
    history = _history([0.5, 0.6, 0.7, 0.8, 0.9, 1.0], known=1.0)
    options = TrainingOptions(model=LITE, epochs=6)
    args = (412, ["cat", "dog"], np.array((400, 12)), "fine-tuning takes long")
    assert list_hints(options, history, "accuracy", *args) == []
    assert len(list_hints(options, history[:-1], "accuracy", *args)) == 2


def test_a_model_without_accuracy_gets_no_hint_of_it():
    options = TrainingOptions(model=LITE, epochs=2)
    assert list_hints(options, [{"epoch": 1, "val_loss": 1.0}], "accuracy", 9, [], None) == []


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        ("it rises: --epochs 60", "it rises: epochs=60"),
        ("it tunes: --fine-tune-epochs 6", "it tunes: fine_tune_epochs=6"),
        ("600 images are few: --model efficientnet-lite0 with another --checkpoint-dir",
         "600 images are few: model='efficientnet-lite0' with another checkpoint_dir"),
    ],
)  # fmt: skip
def test_a_notebook_names_arguments(hint, text):
    assert format_for_python(hint) == text
    card = replace(RESULT, hints=[hint])._repr_html_()
    assert f"<td>Next</td><td>{html.escape(text)}.</td>" in card


@pytest.mark.parametrize(
    ("hint", "is_other"),
    [
        ("600 images are few: --model efficientnet-lite0", True),
        ("a label has fewer than 50 images, dog has 12: --balance prior", True),
        ("it rises: --epochs 60", False),
        ("it tunes: --fine-tune-epochs 6", False),
        ("5 minutes have time for 0: --fit-minutes 9", False),
    ],
)
def test_what_another_training_needs_is_said(hint, is_other):
    elsewhere = " with another --checkpoint-dir" if is_other else ""
    assert name_other_folder(hint) == f"{hint}{elsewhere}"
