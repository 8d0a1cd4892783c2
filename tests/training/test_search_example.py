"""The example that searches for better options with KerasTuner."""

from __future__ import annotations

import json

import pytest

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.usefixtures("own_models", "quick_loop", "quick_export"),
]
pytest.importorskip("keras_tuner")


def test_the_best_options_are_those_of_the_best_training(
    helpers, write_dataset, tmp_path, monkeypatch, pytestconfig
):
    monkeypatch.syspath_prepend(pytestconfig.rootpath / "examples")
    import search_options

    rows = helpers.make_rows(40)
    records = str(write_dataset({"train": rows[:16], "eval": rows[16:24], "test": rows[24:32]}))
    options = {"model": "own_models:tiny", "image_size": 8, "epochs": 1}
    monkeypatch.setattr(search_options, "OPTIONS", options)

    values, training = search_options.search(records, str(tmp_path), 2)
    found = {}
    for path in tmp_path.rglob("training.json"):
        saved = json.loads(path.read_text())
        found[str(path.parent)] = (
            saved["result"]["metrics"]["val_accuracy"],
            {name: saved["plan"]["options"][name] for name in values},
        )
    assert len(found) == 2
    assert found[training] == (max(score for score, _ in found.values()), values)

    # A search that ended is read back.
    monkeypatch.setattr(search_options.Search, "run_trial", lambda *_: pytest.fail("trained"))
    assert search_options.search(records, str(tmp_path), 2) == (values, training)
