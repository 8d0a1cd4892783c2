"""A command, an option or a name that this release no longer has says what to do instead."""

from __future__ import annotations

import json
import re

import pytest

import darkroom
from darkroom import withdrawn
from darkroom.cli.commands import COMMANDS
from darkroom.cli.program import main
from darkroom.cli.shared.flags import PIPELINE_CLASSES
from darkroom.errors import UsageError
from darkroom.options.checks import check_known
from darkroom.options.fields import list_options
from darkroom.runtime import lazy_names

INSTEAD = "The servers of pipelines have schedules."


@pytest.fixture
def _withdrawn(monkeypatch):
    monkeypatch.setitem(withdrawn.WITHDRAWN_COMMANDS, "wait", INSTEAD)
    monkeypatch.setitem(withdrawn.OPTIONS, "every_night", INSTEAD)
    monkeypatch.setitem(withdrawn.WITHDRAWN_FLAGS, "darkroom verify --at", INSTEAD)
    monkeypatch.setitem(withdrawn.WITHDRAWN_NAMES, "darkroom.Night", INSTEAD)


@pytest.mark.usefixtures("_withdrawn")
@pytest.mark.parametrize(
    "arguments",
    [
        ["wait", "x"],
        ["verify", "x", "--every-night"],
        ["verify", "x", "--every-night=2"],
        ["verify", "x", "--at", "night"],
        ["compile", "--target=kubeflow", "-o=x", "--config=x", "--set=every_night=2"],
    ],
)
def test_the_command_line_says_what_to_do_instead(arguments, capsys):
    assert main([*arguments, "--json"]) == 2
    assert INSTEAD in " ".join(json.loads(capsys.readouterr().out)["error"].values())


@pytest.mark.usefixtures("_withdrawn")
def test_python_says_what_to_do_instead():
    with pytest.raises(UsageError) as error:
        check_known(["every_night"], ["every_day"], "Training has no option")
    assert error.value.hint == INSTEAD
    with pytest.raises(AttributeError, match=INSTEAD):
        _ = darkroom.Night
    with pytest.raises(TypeError, match=INSTEAD):
        darkroom.verify("x", every_night=2)


def test_what_is_withdrawn_is_gone_and_listed_for_readers(pytestconfig):
    page = (pytestconfig.rootpath / "docs/guides/from-0.2.md").read_text("utf-8")
    options = {each.name for each in list_options(*PIPELINE_CLASSES)}
    assert not options & set(withdrawn.OPTIONS)
    assert not set(COMMANDS) & set(withdrawn.WITHDRAWN_COMMANDS)
    for name in withdrawn.WITHDRAWN_NAMES:
        package, _, attribute = name.rpartition(".")
        with pytest.raises(AttributeError):
            lazy_names.load_name(package, attribute, {})
    for name in withdrawn.OPTIONS:
        # A key of a table of the file has no flag.
        assert f"--{name.replace('_', '-')}" in page or f"`{name}`" in page
    for name in (*withdrawn.WITHDRAWN_COMMANDS, *withdrawn.WITHDRAWN_NAMES):
        assert name in page
    for name in withdrawn.WITHDRAWN_FLAGS:
        _, command, flag = name.split()
        assert re.search(rf"darkroom {command} .*`?{flag}`", page)
        assert main([command, f"{flag}=x"]) == 2
