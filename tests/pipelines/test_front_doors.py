"""Each way to a compiled pipeline checks the configuration and searches its values once."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from darkroom.cli import main
from darkroom.options.compiled import credentials
from darkroom.pipelines.compilation import checks
from darkroom.pipelines.compilation.files import run_compile
from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.submission.submit import submit_pipeline

from .compiled import format_pipeline

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
    count(checks, "check_places", lambda *_: "check")
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


def test_run_compile_checks_once(values, counts, tmp_path):
    given = {**values, "target": "kubeflow", "output": str(tmp_path / "p.yaml")}
    assert run_compile(given, as_json=True) == 0
    _check_counts(counts)


def test_submit_checks_once(flags, server, counts):
    assert main(["submit", "--target=kubeflow", f"--host={server.url}", *flags]) == 0
    assert len(server.runs) == 1
    _check_counts(counts)


def test_submit_pipeline_checks_once(values, server, counts):
    given = {**values, "target": "kubeflow", "host": server.url, "wait": False}
    assert submit_pipeline(given, as_json=True) == 0
    assert len(server.runs) == 1
    _check_counts(counts)


def test_submit_writes_the_spec_once_and_only_the_client_parses_it(flags, server, monkeypatch):
    calls: Counter[str] = Counter()
    dump_all, load_all = yaml.dump_all, yaml.load_all

    def count_dumps(documents: Any, *arguments: Any, **options: Any) -> Any:
        # TFX writes schemas of artifacts as YAML, too.
        calls["dumps"] += "deploymentSpec" in documents[0]
        return dump_all(documents, *arguments, **options)

    def count_loads(*arguments: Any, **options: Any) -> Any:
        calls["loads"] += 1
        return load_all(*arguments, **options)

    monkeypatch.setattr(yaml, "dump_all", count_dumps)
    monkeypatch.setattr(yaml, "load_all", count_loads)
    assert main(["submit", "--target=kubeflow", f"--host={server.url}", *flags]) == 0
    assert calls == {"dumps": 1, "loads": 1}


def test_run_makes_the_configuration_once_and_a_pinned_copy(flags, monkeypatch, tmp_path):
    from darkroom.pipelines.local import run, runner

    made: list[PipelineConfig] = []
    original = run.make_config
    monkeypatch.setattr(run, "make_config", lambda given: made.append(original(given)) or made[0])
    monkeypatch.setattr(runner, "run_locally", made.append)
    (tmp_path / "images.csv").write_text("TRAIN,a.png,cat\n")
    flags = ["run", flags[0], f"--data={tmp_path}/images.csv", f"--root={tmp_path}/run"]
    assert main([*flags, "--model=small_cnn"]) == 1  # no model was pushed
    config, pinned = made
    assert pinned == dataclasses.replace(config, checkpoint_dir=f"{tmp_path}/run/checkpoints")


def test_a_small_number_stays_a_number_in_both_files_and_in_a_submitted_run(server, values):
    values["learning_rate"] = 1e-5

    def find_default(spec: dict[str, Any]) -> Any:
        return spec["root"]["inputDefinitions"]["parameters"]["learning_rate"]["defaultValue"]

    config = PipelineConfig(**values)
    assert find_default(next(yaml.safe_load_all(format_pipeline(config, "kubeflow")))) == 1e-5
    text = format_pipeline(config, "vertex")
    # Google's client reads the file as YAML.
    for job in (yaml.safe_load(text), json.loads(text)):
        assert find_default(job["pipelineSpec"]) == 1e-5
    given = {**values, "target": "kubeflow", "host": server.url, "wait": False}
    assert submit_pipeline(given, as_json=True) == 0
    [run] = server.runs.values()
    assert find_default(run["pipeline_spec"].get("pipeline_spec", run["pipeline_spec"])) == 1e-5
