"""The workflow of the public CI runs targets of the Makefile, on the systems in the README."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from darkroom.version import __version__

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
JOBS: dict[str, Any] = WORKFLOW["jobs"]
RELEASE = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
TARGETS = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))


def list_commands(job: str) -> list[str]:
    return [step["run"] for step in JOBS[job]["steps"] if "run" in step]


@pytest.mark.parametrize("job", JOBS)
def test_each_job_runs_targets_of_the_makefile_and_nothing_else(job: str) -> None:
    commands = [command.split() for command in list_commands(job)]
    assert commands
    assert {words[0] for words in commands} == {"make"}
    assert {word for words in commands for word in words[1:2]} <= TARGETS


@pytest.mark.parametrize("job", [*JOBS.values(), *RELEASE["jobs"].values()])
def test_each_action_is_pinned_by_commit_and_keeps_no_credentials(job: dict[str, Any]) -> None:
    actions = [step for step in job["steps"] if "uses" in step]
    assert [
        step["uses"] for step in actions if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"])
    ] == []
    checkouts = [step for step in actions if step["uses"].startswith("actions/checkout@")]
    assert [step["with"]["persist-credentials"] for step in checkouts] == [False]


def test_the_token_may_only_read() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert [job for job in JOBS.values() if "permissions" in job] == []


def test_only_what_was_checked_under_its_tag_is_published() -> None:
    check, publish = RELEASE["jobs"]["check"], RELEASE["jobs"]["publish"]
    assert (RELEASE["permissions"], check.get("permissions")) == ({"contents": "read"}, None)
    assert (publish["needs"], publish["environment"]) == ("check", "pypi")
    assert publish["permissions"] == {"contents": "read", "id-token": "write"}
    compare, make = [step["run"] for step in check["steps"] if "run" in step]
    assert make.startswith("make release-check ")
    for tag, is_right in ((f"v{__version__}", True), ("v0.0.1", False), (__version__, False)):
        environment = {"GITHUB_REF_NAME": tag, "PATH": "/usr/bin:/bin"}
        done = subprocess.run(["sh", "-c", compare], cwd=ROOT, env=environment, check=False)
        assert (done.returncode == 0) == is_right


def test_the_core_runs_on_every_python_that_the_package_supports() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    expected = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)
    assert f'requires-python = ">={expected[0]}"' in text
    assert JOBS["core"]["strategy"]["matrix"]["python"] == expected


def test_the_workflow_runs_everything_that_a_change_must_pass() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    demanded = set(re.findall(r"^(?:if ! )?make ([a-z-]+)", script, re.MULTILINE))
    assert demanded == {"lint", "typecheck", "docs", "test", "test-newest"}
    run = {command.split()[1] for job in JOBS for command in list_commands(job)}
    assert demanded <= run


@pytest.mark.parametrize(("failing", "code"), [("test", 2), ("test-newest", 0)])
def test_newest_packages_that_fail_are_said_loudly_and_stop_nobody(
    tmp_path: Path, failing: str, code: int
) -> None:
    make = tmp_path / "make"
    make.write_text(
        "#!/bin/sh\necho target $1\n"
        f'[ "$1" != {failing} ] || {{ echo "FAILED tests/test_x.py::test_y"; exit 2; }}\n'
    )
    make.chmod(0o755)
    done = subprocess.run(
        [ROOT / ".ci/run"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert ("target test-newest" in done.stdout) == (failing != "test")
    last = done.stdout.partition("WARNING: make test-newest failed")[2]
    assert ("FAILED tests/test_x.py::test_y" in last) == (failing == "test-newest")
