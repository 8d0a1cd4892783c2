"""Each way to a compiled pipeline checks the configuration and searches its values once."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from darkroom.cli import main
from darkroom.options.compiled import credentials
from darkroom.pipelines.compilation import check
from darkroom.pipelines.config import PipelineConfig

pytestmark = pytest.mark.tfx

LABELS = ("a label of the map", "another label")


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a configuration was made, checked, and each of its texts searched."""
    counted: Counter[str] = Counter()

    def count(place: Any, name: str, key: Callable[..., str]) -> None:
        original = getattr(place, name)

        def counting(*arguments: Any) -> Any:
            counted[key(*arguments)] += 1
            return original(*arguments)

        monkeypatch.setattr(place, name, counting)

    count(credentials, "find_credential", lambda text: text)
    count(check, "check_cluster", lambda *_: "check")
    count(PipelineConfig, "__post_init__", lambda _: "make")
    return counted


@pytest.fixture
def values(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "labels.txt").write_text("".join(f"{label}\n" for label in LABELS))
    return {
        "data": "gs://photos/images.csv",
        "root": "gs://artifacts/run",
        "image": "registry/darkroom:1",
        "label_map": str(tmp_path / "labels.txt"),
        "model": "my.models:build",
        "cache": False,
        "env": {"SIZE": "value of a variable"},
        "resources": {"Trainer": {"node_selector": {"zone": "north-of-here"}}},
    }


@pytest.fixture
def flags(values: dict[str, Any], tmp_path: Path) -> list[str]:
    """Options of a command: some by name, the others in a file."""
    given = {name: values.pop(name) for name in ("data", "root", "model")}
    path = tmp_path / "run.toml"
    tables = {name: values.pop(name) for name in ("env", "resources")}
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    lines += ["[env]", f"SIZE = {json.dumps(tables['env']['SIZE'])}"]
    lines += ["[resources.Trainer.node_selector]", 'zone = "north-of-here"']
    path.write_text("\n".join(lines))
    return [f"--config={path}", *(f"--set={name}={value}" for name, value in given.items())]


def _check_counts(counts: Counter[str]) -> None:
    assert (counts["make"], counts["check"]) == (1, 1)
    searched = (
        *("gs://photos/images.csv", "gs://artifacts/run", "registry/darkroom:1"),
        *("my.models:build", "value of a variable", "north-of-here", *LABELS),
    )
    assert {text: counts[text] for text in searched} == dict.fromkeys(searched, 1)


@pytest.mark.parametrize("target", ["kubeflow", "vertex"])
def test_compile_checks_once(flags, counts, tmp_path, target):
    output = tmp_path / {"kubeflow": "p.yaml", "vertex": "p.json"}[target]
    assert main(["compile", f"--target={target}", *flags, f"--output={output}"]) == 0
    _check_counts(counts)


def test_submit_checks_once(flags, server, counts):
    assert main(["submit", "--target=kubeflow", f"--host={server.url}", *flags]) == 0
    assert len(server.runs) == 1
    _check_counts(counts)


def test_run_makes_the_configuration_once_and_a_pinned_copy(flags, monkeypatch, tmp_path):
    from darkroom.pipelines import pipeline
    from darkroom.pipelines.local import run, runner

    made: list[PipelineConfig] = []
    original = run.make_config
    monkeypatch.setattr(run, "make_config", lambda given: made.append(original(given)) or made[0])
    create = pipeline.create_pipeline
    monkeypatch.setattr(pipeline, "create_pipeline", lambda c: made.append(c) or create(c))
    monkeypatch.setattr(runner, "launch", lambda _: None)
    (tmp_path / "images.csv").write_text("TRAIN,a.png,cat\n")
    flags = ["run", flags[0], f"--data={tmp_path}/images.csv", f"--root={tmp_path}/run"]
    assert main([*flags, "--model=small_cnn"]) == 1  # no model was pushed
    config, pinned = made
    assert pinned == dataclasses.replace(config, checkpoint_dir=f"{tmp_path}/run/checkpoints")
