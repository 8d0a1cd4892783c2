from __future__ import annotations

import numpy as np
import pytest

from darkroom.options.training import TrainingOptions
from darkroom.training.recipe.hints import format_hints, list_hints

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
    return list_hints(options, _history(accuracies), sum(counts), labels, np.array(counts))


def test_more_epochs_are_named_where_accuracy_rises():
    assert _list(RISING) == ["accuracy on the eval split still rises: --epochs 18"]
    assert _list(FLAT) == []
    assert _list([0.1, 0.9]) == []
    # It was stopped because nothing got better.
    assert _list(RISING, epochs=20) == []
    # Of images that it knows by heart, it learns little.
    options = TrainingOptions(model=LITE, epochs=9)
    assert list_hints(options, _history(RISING, 0.99), 160, ["cat", "dog"], None) == []


def test_balance_is_named_where_a_label_is_rare():
    assert _list(FLAT, (400, 12)) == [
        "a label has fewer than 50 images, dog has 12: --balance prior"
    ]
    assert _list(FLAT, (400, 51)) == []
    # All are rare alike.
    assert _list(FLAT, (40, 12)) == []
    assert _list(FLAT, (400, 12), balance="weights") == []
    assert _list(FLAT, (400, 0)) == []
    assert list_hints(TrainingOptions(model=LITE), _history(FLAT), 412, ["cat", "dog"], None) == []


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


def test_a_model_without_accuracy_gets_no_hint_of_it():
    options = TrainingOptions(model=LITE, epochs=2)
    assert list_hints(options, [{"epoch": 1, "val_loss": 1.0}], 9, [], None) == []


@pytest.mark.parametrize(
    ("hints", "text"),
    [([], ""), (["a"], "\nNext       a"), (["a", "b"], "\nNext       a\n           b")],
)
def test_hints_are_lines_below_the_result(hints, text):
    assert format_hints(hints) == text
