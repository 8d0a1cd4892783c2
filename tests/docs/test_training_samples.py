"""The samples of the guides that train with a loop, or a `run_fn`, of one's own: they run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from .test_docs import list_blocks

pytestmark = pytest.mark.tensorflow

# So few images, and so small ones, train in seconds.
_SMALLER = {
    "(96, 96)": "(8, 8)",
    "batch_size=32": "batch_size=4",
    "epochs=5": "epochs=1",
    "((3, 20), (4, 0))": "((0, 1), (1, 0))",
}


@pytest.mark.parametrize("page", ["own-pipeline", "training-loop"])
def test_the_sample_runs(page, write_dataset, helpers, tmp_path, monkeypatch, capsys):
    rows = helpers.make_rows(12)
    root = write_dataset({"train": rows[:8], "eval": rows[8:]})
    found = (text for name, text in list_blocks("python") if name == f"{page}.md")
    (text,) = [each for each in found if "build_model(" in each]
    for part, smaller in _SMALLER.items():
        text = text.replace(part, smaller)
    names: dict = {}
    exec(text.replace("records/Split-train/*", f"{root}/Split-train/*"), names)
    if page == "training-loop":
        assert [line[:2] for line in capsys.readouterr().out.splitlines()] == ["0 ", "1 "]
        return
    args = SimpleNamespace(
        train_files=[f"{root}/Split-train/*"],
        eval_files=[f"{root}/Split-eval/*"],
        serving_model_dir=str(tmp_path / "serving"),
    )
    names["run_fn"](args)
    assert Path(args.serving_model_dir, "saved_model.pb").exists()
