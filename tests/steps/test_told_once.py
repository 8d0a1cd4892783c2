"""A step that only this file has is a command, a task of Kubeflow and a component of TFX."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from darkroom.cli.shared.steps import add_step
from darkroom.errors import DataError
from darkroom.runtime.result import Fact, Outcome, Result
from darkroom.steps import known, parts
from darkroom.steps.command import Command, flag
from darkroom.steps.step import Artifact, Made, Parameter, Step

from ..kfp import tasks


class _Words(Result, NamedTuple("Words", [("words", int)])):
    def describe(self):
        return Outcome("The words", [Fact("Words", f"{self.words}")])

    def to_dict(self):
        return self._asdict()


def run(paths, options):
    """Counts the words of a text, and writes them in capitals."""
    text = Path(paths["text"]).read_text()
    Path(paths["capitals"]).write_text(text.upper())
    found = _Words(len(text.split()))
    error = None
    if found.words < options["least"]:
        error = DataError(f"There are {found.words} words, expected {options['least']}.")
    return Made(found, found.to_dict(), results={"first": text.split()[0]}, error=error)


STEP = Step(
    "count_words",
    "Counts words.",
    run,
    (Parameter("least", int, "The least number of words.", 0), parts.FAIL_PARAMETER),
    inputs=(Artifact("text", "Artifact", "A text."),),
    outputs=(
        Artifact("capitals", "Dataset", "The text.", file="capitals.txt"),
        parts.name_page("words", "Words"),
        parts.name_metrics("words"),
    ),
    results=(parts.PASSED, Parameter("first", str, "The first word.")),
    command=Command(
        "words",
        "Count words.",
        (
            flag("text", metavar="FILE", help="A text"),
            flag("--output", dest="capitals", default="capitals.txt", help="Where it goes"),
            flag("--least", type=int, default=0, help="The least number of words"),
        ),
    ),
)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("to be or not")
    return path


def _call(*words: object) -> int:
    parser = argparse.ArgumentParser()
    add_step(parser.add_subparsers(dest="command"), STEP)
    arguments = parser.parse_args([str(word) for word in words])
    code: int = arguments.run(arguments)
    return code


def test_it_is_a_command(text, tmp_path, capsys):
    assert _call("words", text, "--output", tmp_path / "out.txt") == 0
    assert (tmp_path / "out.txt").read_text() == "TO BE OR NOT"
    assert capsys.readouterr().out == "Words      4\n"


def test_a_command_says_why_its_data_did_not_pass(text, tmp_path, capsys):
    output = tmp_path / "out.txt"
    assert _call("words", text, "--least", 5, "--output", output, "--json") == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["words"], said["error"]["message"]) == (4, "There are 4 words, expected 5.")


@pytest.fixture
def cluster(tmp_path, monkeypatch, capfd):
    monkeypatch.setitem(known.STEPS, STEP.name, STEP)
    return tasks.Cluster(tmp_path / "cluster", monkeypatch, capfd)


def _put(cluster: tasks.Cluster, text: Path) -> tasks.Artifact:
    artifact = tasks.Artifact(f"{tasks.ROOT}/text.txt")
    tasks.copy(text, cluster.find(artifact))
    return artifact


def test_it_is_a_task_of_kubeflow(cluster, text):
    done = cluster.run("count_words", {"text": _put(cluster, text)})
    assert (cluster.find(done.artifacts["capitals"]) / "capitals.txt").read_text() == "TO BE OR NOT"
    assert done.artifacts["words_metrics"].metadata == {"words": 4}
    assert done.parameters == {"passed": True, "first": "to"}
    assert "The words" in cluster.find(done.artifacts["words_page"]).read_text()


def test_a_task_fails_where_its_data_did_not_pass_unless_told_not_to(cluster, text):
    given = {"text": _put(cluster, text)}
    failed = cluster.run("count_words", given, least=5)
    assert (failed.code, failed.error["message"]) == (1, "There are 4 words, expected 5.")
    assert cluster.run("count_words", given, least=5, fail=False).parameters["passed"] is False


@pytest.mark.tfx
def test_it_is_a_component_of_tfx(text, tmp_path):
    from darkroom.components.artifacts import RecordIndex
    from darkroom.components.step_executor import StepExecutor

    names = {"STEP": STEP, "NAMES": {"source": "text"}}
    executor = type("Executor", (StepExecutor,), names)()
    source, capitals = RecordIndex(), RecordIndex()
    source.uri, capitals.uri = str(text), str(tmp_path)
    options = json.dumps({"least": 5})
    executor.Do({"source": [source]}, {"capitals": [capitals]}, {"options": options})
    assert Path(capitals.uri, "capitals.txt").read_text() == "TO BE OR NOT"
    assert capitals.get_int_custom_property("words") == 4
    assert capitals.get_int_custom_property("blessed") == 0


def test_help_loads_nothing_that_a_step_needs_when_it_runs():
    code = (
        "import sys; from darkroom.cli.parser import build_parser; build_parser(); "
        "print(*{'darkroom.storage', 'numpy', 'pyarrow', 'kfp', 'tfx'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
