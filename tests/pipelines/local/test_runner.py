"""LocalRunner: what it prints of a pipeline of one's own, and where the rest goes.

TFX reads the annotations of its components, so they are not texts here.
"""

import io
import shutil
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from absl import logging as absl_logging
from tfx.dsl.component.experimental.annotations import OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.orchestration.pipeline import Pipeline
from tfx.types.standard_artifacts import Model

from darkroom.components import ImageToTFRecord, ManifestGen
from darkroom.errors import DataError, OutputError, UsageError
from darkroom.options.validation import FAIL
from darkroom.pipelines import LocalRunner
from darkroom.pipelines.config import METADATA_FILE
from darkroom.pipelines.local import lineage, runner
from darkroom.pipelines.local.lineage import read_summary
from darkroom.pipelines.local.summary import RunSummary
from darkroom.pipelines.pipeline import make_connection_config
from darkroom.validation.gate import GateError, check_blessed
from darkroom.validation.report.dataset_report import DatasetReport
from darkroom.validation.report.findings import Finding

pytestmark = pytest.mark.tfx


@component
def Speak(text: Parameter[str]):  # noqa: N802
    """A component of the user's own, which prints."""
    print("printed:", text)
    absl_logging.warning("logged: %s", text)
    if text == "fail":
        raise ValueError("the reason")


@pytest.fixture
def console() -> io.StringIO:
    """Standard output as in a notebook: not that of the process."""
    return io.StringIO()


def _run(pipeline: Pipeline, console: io.StringIO, log: Path | None = None) -> RunSummary:
    with redirect_stdout(console):
        return LocalRunner(log).run(pipeline)


def _make_pipeline(folder: Path, *components: Any, **options: Any) -> Pipeline:
    given = {"metadata_connection_config": make_connection_config(str(folder)), **options}
    return Pipeline(
        pipeline_name="own",
        pipeline_root=f"{folder}/artifacts",
        components=list(components),
        enable_cache=True,
        beam_pipeline_args=["--runner=FnApiRunner", "--sdk_container_image=local"],
        **given,
    )


def _lines(console: io.StringIO) -> list[str]:
    return [line for line in console.getvalue().splitlines() if line]


def test_each_node_has_a_line_and_the_rest_is_in_the_log(tmp_path: Path, console):
    pipeline = _make_pipeline(tmp_path, Speak(text="hello"))
    before = absl_logging.get_verbosity()
    summary = _run(pipeline, console)
    node, log, time = _lines(console)
    assert node.startswith("Speak [1/1] done in ")
    assert log == f"Log        {tmp_path}/artifacts/log.txt"
    assert time.startswith("Time ")
    text = (tmp_path / "artifacts/log.txt").read_text()
    assert "printed: hello" in text
    assert absl_logging.get_verbosity() == before
    assert (summary.reused, summary.log_path) == ((), f"{tmp_path}/artifacts/log.txt")

    again = _run(pipeline, console, tmp_path / "again.txt")
    assert again.reused == ("Speak",)
    assert "Speak [1/1] done in 0." in _lines(console)[3]
    assert _lines(console)[3].endswith("reused: nothing has changed")
    assert _lines(console)[-1].endswith(", 1 step reused")
    assert "printed" not in (tmp_path / "again.txt").read_text()


@component
def Write(made: OutputArtifact[Model]):  # noqa: N802
    """A component of the user's own, which makes two files."""
    for name in ("weights", "deep/labels"):
        path = Path(made.uri, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def test_an_output_that_was_damaged_is_made_again(tmp_path: Path, console):
    _run(_make_pipeline(tmp_path, Write()), console)
    made = tmp_path / "artifacts/Write/made"
    # A file that is not the component's changes nothing.
    (made / "1/notes.txt").write_text("mine")
    assert _run(_make_pipeline(tmp_path, Write()), console).reused == ("Write",)
    file = made / "1/deep/labels"
    file.write_text("deep/labelt")
    console.truncate(0)
    assert _run(_make_pipeline(tmp_path, Write()), console).reused == ()
    assert (
        f"{file} does not have the hash in SHA256SUMS, so Write runs again." in console.getvalue()
    )
    assert sorted(path.name for path in made.iterdir()) == ["1", "3"]
    assert (made / "3/deep/labels").read_text() == "deep/labels"


def test_damaged_or_lost_hashes_of_an_output_do_not_stop_a_run(tmp_path: Path, console):
    _run(_make_pipeline(tmp_path, Write()), console)
    hashes = tmp_path / "artifacts/Write/.system/darkroom_outputs"
    [sums] = hashes.glob("made/1/*")
    sums.write_bytes(sums.read_bytes()[1:])
    assert _run(_make_pipeline(tmp_path, Write()), console).reused == ()
    assert f"{sums} is damaged" in console.getvalue()
    shutil.rmtree(hashes)
    assert _run(_make_pipeline(tmp_path, Write()), console).reused == ("Write",)


def test_damaged_metadata_are_named(tmp_path: Path, console):
    _run(_make_pipeline(tmp_path, Speak(text="hello")), console)
    path = tmp_path / METADATA_FILE
    data = path.read_bytes()
    page = 4096
    damaged = data[: 3 * page] + bytes(6 * page) + data[9 * page :]
    path.write_bytes(damaged)
    with pytest.raises(DataError, match=f"{path} is damaged: ") as error:
        _run(_make_pipeline(tmp_path, Speak(text="hello")), console)
    assert "choose another root" in error.value.hint
    assert path.read_bytes() == damaged


def test_without_its_metadata_an_earlier_run_is_kept(tmp_path: Path, console):
    """TFX numbers the folders again, and deletes those of a node that fails."""
    _run(_make_pipeline(tmp_path, Write()), console)
    made = tmp_path / "artifacts/Write/made/1"
    (made / "notes.txt").write_text("mine")
    (tmp_path / METADATA_FILE).unlink()
    with pytest.raises(OutputError, match=f"{made} has files of an earlier run") as error:
        _run(_make_pipeline(tmp_path, Write()), console)
    assert "choose another root" in error.value.hint
    assert (made / "notes.txt").read_text() == "mine"
    assert (made / "weights").read_text() == "weights"


@component
def Check(text: Parameter[str]):  # noqa: N802
    """A component that rejects its data."""
    raise DataError(f"{text} is damaged.", "Look at it.")


def test_damage_in_what_was_reused_names_the_way_out(tmp_path: Path, console):
    for text, hint in (
        ("new", "Look at it."),
        ("old", "Look at it. Without the cache (--no-cache), all results are made again."),
    ):
        write, check = Write(), Check(text=text)
        check.add_upstream_node(write)
        pipeline = _make_pipeline(tmp_path, write, check)
        with pytest.raises(DataError, match=f"{text} is damaged") as error:
            _run(pipeline, console)
        assert error.value.hint == hint


def test_what_a_pipeline_does_not_make_is_not_in_its_summary(tmp_path: Path, console, jpeg_set):
    manifest = ManifestGen(str(jpeg_set.csv))
    records = ImageToTFRecord(manifest.outputs["manifest"], manifest.outputs["list_rejects"])
    renamed = records.with_id("records")
    summary = _run(_make_pipeline(tmp_path, manifest, renamed), console)
    # A node that takes long has more lines.
    words = dict.fromkeys(line.split()[0] for line in _lines(console))
    assert [*words] == ["ManifestGen", "records", "Records", "Log", "Time"]
    assert summary.examples == f"{tmp_path}/artifacts/records/examples/2"
    assert Path(summary.examples, "dataset.json").exists()


def test_an_error_of_a_node_is_raised_after_the_place_of_the_log(tmp_path: Path, console):
    with pytest.raises(ValueError, match="the reason"):
        _run(_make_pipeline(tmp_path, Speak(text="fail")), console)
    node, log = _lines(console)
    assert node.startswith("Speak [1/1] failed after ")
    assert log == f"Log        {tmp_path}/artifacts/log.txt"
    assert "printed: fail" in (tmp_path / "artifacts/log.txt").read_text()


def test_a_stop_of_the_gate_names_its_findings_once(tmp_path: Path, console, monkeypatch):
    finding = Finding("leakage", FAIL, 3, "3 images are in two splits.", "Delete one.")
    report = DatasetReport(9, 9, 0, {}, ("cat",), {"train": 9}, {}, {}, findings=(finding,))

    def stop(_: Pipeline) -> GateError:
        with pytest.raises(GateError) as caught:
            check_blessed(report)
        return caught.value

    def summarize(*given: Any, makes: Any) -> RunSummary:
        return replace(read_summary(*given, makes=makes), report=report)

    monkeypatch.setattr(lineage, "read_run", lambda *_: {})
    monkeypatch.setattr(lineage, "read_summary", summarize)
    monkeypatch.setattr(runner, "launch", stop)
    with pytest.raises(GateError) as caught:
        _run(_make_pipeline(tmp_path, Speak(text="hello")), console)
    assert "3 images are in two splits." in str(caught.value)
    assert "two splits" not in console.getvalue()
    assert "Gate       Stopped by 1 finding." in _lines(console)


def test_a_pipeline_without_a_place_for_its_metadata_or_its_log_is_rejected(tmp_path: Path):
    with pytest.raises(UsageError, match="no metadata_connection_config"):
        LocalRunner().run(
            _make_pipeline(tmp_path, Speak(text="a"), metadata_connection_config=None)
        )
    pipeline = Pipeline("own", "gs://bucket/root", components=[Speak(text="a")])
    with pytest.raises(UsageError, match="cannot be written to gs://bucket/root"):
        LocalRunner().run(pipeline)
