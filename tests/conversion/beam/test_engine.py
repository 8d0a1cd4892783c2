"""The hook for engines: what becomes of a conversion whose job runs elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.pictures import write_label_folders
from tests.trees import read_files

from darkroom.conversion.beam import engine as hook
from darkroom.conversion.beam.transforms import CommitFn
from darkroom.conversion.convert import convert
from darkroom.errors import MissingPathError, OutputError, StorageError
from darkroom.options.conversion import ConversionOptions

pytestmark = pytest.mark.heavy


class Elsewhere:
    """An engine in this process, which does something around the job."""

    # Beam makes a runner of this name.
    name, runner = "", "PortableRunner"

    def __init__(self) -> None:
        self.around: Callable[[Callable[[], object]], object] = lambda run: run()
        self.checked: list[dict[str, Any]] = []
        self.names: list[str] = []

    def check(self, options: Any) -> None:
        self.checked.append(options.get_all_options(retain_unknown_options=True))

    def find_address(self, options: Mapping[str, Any]) -> str:
        return ""

    def run(self, pipeline: Any, job_name: str) -> None:
        from apache_beam.options.pipeline_options import PipelineOptions
        from apache_beam.runners.portability.fn_api_runner import FnApiRunner

        self.names.append(job_name)
        run = FnApiRunner().run_pipeline
        self.around(lambda: run(pipeline, PipelineOptions([])).wait_until_finish())


@pytest.fixture
def engine(monkeypatch):
    """The only engine that exists."""
    found = Elsewhere()
    monkeypatch.setattr(hook, "_load", lambda: (found,))
    return found


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_label_folders(tmp_path / "src", 3)
    return tmp_path / "src"


def _convert(source: Path, **options: object):
    how = ConversionOptions(beam_options=options)
    return convert(source, source.parent / "out", runner="portablerunner", options=how)


def test_an_engine_writes_the_same_bytes(engine, source):
    assert _convert(source, retries=3).written == 6
    assert engine.checked[0]["retries"] == "3"
    assert engine.names[0].startswith("darkroom-")
    convert(source, source.parent / "here")
    assert read_files(source.parent / "out") == read_files(source.parent / "here")


def _without(path: Path) -> Callable[[Callable[[], object]], None]:
    def run_elsewhere(run: Callable[[], object]) -> None:
        aside = path.parent / "aside"
        path.rename(aside)
        try:
            run()
        finally:
            shutil.rmtree(path, ignore_errors=True)
            aside.rename(path)

    return run_elsewhere


def test_workers_that_do_not_share_the_output_are_named(engine, source):
    engine.around = _without(source.parent / "out")
    with pytest.raises(StorageError, match="workers do not see the output folder") as stop:
        _convert(source)
    assert type(stop.value) is StorageError
    assert "a shared file system" in stop.value.hint


def test_workers_that_do_not_see_the_images_reject_none(engine, source):
    """The client sees them, so that they are not missing: the workers are on other machines."""
    engine.around = _without(source)
    with pytest.raises(StorageError, match="The engine's workers do not see the images: ") as stop:
        _convert(source)
    assert f"{source}/" in stop.value.message
    assert not [*source.parent.glob("out/**/shard-*")]


def test_an_output_that_a_later_run_has_taken_is_not_called_unshared(engine, source):
    def lose_output(run: Callable[[], object]) -> None:
        shutil.rmtree(source.parent / "out/.attempt")
        run()

    engine.around = lose_output
    with pytest.raises(OutputError, match=f"A later run has taken {source.parent / 'out'}"):
        _convert(source)


def test_an_interrupted_job_resumes_after_its_shards(engine, source, monkeypatch):
    def lose_commit(run: Callable[[], object]) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(CommitFn, "process", lambda *_: None)
            run()
        raise KeyboardInterrupt

    engine.around = lose_commit
    with pytest.raises(KeyboardInterrupt):
        _convert(source)
    kept = _read_times(source.parent / "out")
    assert len(kept) >= 1
    engine.around = lambda run: run()
    assert _convert(source).written == 6
    assert _read_times(source.parent / "out") == kept


def _read_times(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.glob("Split-*/*")}


def test_an_engine_that_does_not_answer_stops_before_the_source_is_read(engine, tmp_path):
    def refuse(options: object) -> None:
        raise StorageError("The engine is down.")

    engine.check = refuse
    with pytest.raises(StorageError, match="The engine is down"):
        convert(tmp_path / "missing", tmp_path / "out", runner="PortableRunner")
    assert not (tmp_path / "out").exists()


def test_an_error_on_a_worker_keeps_its_class(engine, source, monkeypatch):
    def fail(*_: object) -> None:
        raise MissingPathError("s3://in/a.jpg does not exist.", "Check the list.")

    monkeypatch.setattr("darkroom.conversion.shards.writing.write_shard", fail)
    with pytest.raises(MissingPathError, match=r"s3://in/a\.jpg does not exist\. Check the list"):
        _convert(source)
