"""Jobs that a stand-in for an engine takes: what the client does with what it is told."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.pictures import write_label_folders

from darkroom.conversion.convert import convert
from darkroom.conversion.result import ConversionResult
from darkroom.errors import DarkroomError

from .standin import StandIn, State, run_here, serve

DAY = 24 * 3600


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_label_folders(tmp_path / "src", 1)
    return tmp_path / "src"


def _submit(service: StandIn, source: Path, **more: object) -> ConversionResult:
    with serve(service) as options:
        return convert(
            source,
            source.parent / "out",
            runner="PortableRunner",
            beam_options={**options, **more},
        )


def _fail(source: Path, *messages: str) -> DarkroomError:
    """Returns the error of a job that fails after the engine said this."""
    with pytest.raises(DarkroomError) as stop:
        _submit(StandIn(State.FAILED, messages), source)
    assert len(str(stop.value).splitlines()) <= 10
    for log in re.findall(r"said is in (\S+\.log)\.", stop.value.hint):
        assert messages[-1] in Path(log).read_text()
        os.unlink(log)
    return stop.value


def test_a_job_may_run_for_days(source):
    service = StandIn(run=run_here)
    assert _submit(service, source).written == 2
    assert service.stream_seconds is None or service.stream_seconds > DAY
    assert service.options["job_server_timeout"].string_value
