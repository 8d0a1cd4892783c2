"""`darkroom.validate` and `darkroom validate`: the checks, the report and the gate without TFX."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import darkroom
from darkroom.cli import main
from darkroom.dataset.checksums import read_sums, sum_bytes, write_sums
from darkroom.errors import DataError, MissingExtraError, OutputError, UsageError
from darkroom.options.validation import ValidationFields
from darkroom.validation.gate import GateError
from darkroom.validation.validate import validate

from ..image_set import make_images
from ..signatures import find_differences
from ..trees import read_files

REPORT = [".darkroom-files.json", "report.html", "report.json", "report.md"]
MILD = {"leakage": "warn", "small_classes": "off"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images with one that is in two splits, and a row without its image, and their dataset."""
    folder = tmp_path_factory.mktemp("made")
    images = make_images(folder / "images", "jpg")
    images.add("VALIDATION", "copy.jpg", "cat", (images.folder / "00.jpg").read_bytes())
    images.add("TRAIN", "gone.jpg", "dog", None)
    darkroom.convert(images.csv, folder / "records", max_rejects=1)
    return folder


@pytest.fixture
def records(made: Path, tmp_path: Path) -> Path:
    """A copy of the dataset."""
    return shutil.copytree(made / "records", tmp_path / "records")


def test_the_options_are_those_of_the_pipeline():
    # A default of a function must not be a table, which somebody could change.
    assert find_differences(validate, ValidationFields) == [
        "policies is Mapping[str, str] | None",
        "policies has the default None",
        # That of the conversion.
        "max_rejects is float | None",
        "max_rejects has the default None",
        "baseline is str | os.PathLike[str] | None",
    ]


def test_the_share_that_the_conversion_allowed_is_not_asked_for_again(
    made: Path, records: Path, tmp_path: Path
):
    def find_rejects(directory: Path, **options) -> list[str]:
        found = darkroom.validate(directory, **options).findings
        return [each.message for each in found if each.check == "rejects"]

    # 1 leaves it to the checks, as the pipelines do.
    assert re.search(r"2\.38%, allowed 1\.00%", find_rejects(records)[0])
    source = made / "images/images.csv"
    agreed = tmp_path / "agreed"
    darkroom.convert(source, agreed, max_rejects=0.03)
    assert find_rejects(agreed) == []
    assert re.search(r"allowed 2\.00%", find_rejects(agreed, max_rejects=0.02)[0])
    assert find_rejects(agreed, max_rejects=0.0)
    # The records are the same, and so is what identifies them.
    fields = [json.loads((each / "dataset.json").read_text()) for each in (records, agreed)]
    assert fields[1].pop("max_rejects") == 0.03
    assert fields[0] == fields[1]
    assert darkroom.convert(source, agreed).already_complete


def test_a_dataset_is_judged_and_its_page_is_written(records: Path, tmp_path: Path):
    result = darkroom.validate(records, report_dir=tmp_path / "report", max_rejects=0.1)
    assert not result.blessed
    assert [(each.check, each.policy, each.count) for each in result.findings] == [
        ("leakage", "fail", 1)
    ]
    [leak] = result.findings[0].rows
    assert {Path(leak["uri"]).name, Path(leak["other_uri"]).name} == {"00.jpg", "copy.jpg"}
    report = result.report
    assert (report.rows, report.written, report.rejected) == (42, 41, {"missing": 1})
    assert report.splits == {"train": 32, "eval": 9}
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == REPORT
    assert result.report_path == f"{tmp_path}/report/report.html"
    page = (tmp_path / "report" / "report.html").read_text()
    assert "Stopped by 1 finding." in page
    assert "data:image/jpeg;base64," in page
    assert "<code>anomalies</code></td><td>Data that does not match the schema</td>" in page
    with pytest.raises(GateError, match=r"leakage +1  1 image is in more than one split") as stop:
        result.check()
    assert isinstance(stop.value, DataError)
    assert [frame.name for frame in stop.traceback][1:] == ["call"]
    assert stop.value.hint == f"\nThe whole report: {tmp_path}/report/report.html"


def test_policies_decide_what_passes(records: Path):
    result = darkroom.validate(records, policies=MILD, max_rejects=0.1)
    assert result.blessed
    result.check()
    assert repr(result) == (
        f"ValidationResult(directory='{records}', verdict='passed with warnings', findings=1, "
        "report_path=None)"
    )
    assert result.report.policies["anomalies"] == "off"


def test_the_core_alone_is_loaded(records: Path):
    script = """
import sys, darkroom
result = darkroom.validate(sys.argv[1], max_rejects=0.1)
heavy = ("apache_beam", "tensorflow", "tensorflow_data_validation", "tfx")
print(result.verdict, [name for name in heavy if name in sys.modules])
"""
    command = [sys.executable, "-c", script, str(records)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "stopped []\n", done.stderr


def test_nothing_is_written_into_the_dataset(records: Path):
    before = read_files(records)
    darkroom.validate(records)
    assert read_files(records) == before


def test_the_command_stops_with_exit_code_one_and_prints_the_findings(records: Path, capsys):
    arguments = ["validate", str(records), "--max-rejects", "0.1"]
    assert main(arguments) == 1
    out, error = capsys.readouterr()
    assert out.splitlines()[:6] == [
        "Labels     3  train  eval",
        "  cat            11     4",
        "  dog            10     3",
        "  owl            11     2",
        "",
        "Stopped by 1 finding.",
    ]
    with pytest.raises(GateError) as stop:
        darkroom.validate(records, max_rejects=0.1).check()
    said = error[error.index("darkroom: ") :]
    assert said == f"darkroom: Stopped by 1 finding.\n{stop.value.hint.lstrip()}\n"
    assert f"\n{stop.value.message}\n" in out
    assert "--report FOLDER" in stop.value.hint
    assert main([*arguments, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["blessed"], found["verdict"], found["report"]) == (False, "stopped", None)
    assert found["findings"][0]["check"] == "leakage"
    assert found["error"] == stop.value.to_dict()
    more = ["--required-split", "train", "--required-split", "test", "--expected-label", "cat"]
    assert main([*arguments, *more, "--min-class-images", "11", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    checks = [finding["check"] for finding in found["findings"]]
    assert checks == ["leakage", "missing_splits", "unknown_labels", "small_classes"]


def test_the_command_prints_the_classes_and_the_verdict(records: Path, tmp_path: Path, capsys):
    options = ["--max-rejects", "0.1", "--policy", "leakage=warn", "--report"]
    assert main(["validate", str(records), *options, str(tmp_path / "report")]) == 0
    out, _ = capsys.readouterr()
    assert out.splitlines()[:7] == [
        "Labels     3  train  eval",
        "  cat            11     4",
        "  dog            10     3",
        "  owl            11     2",
        "",
        "Passed with 1 warning.",
        "42 rows in the source: 41 written, 1 rejected, 0 deduplicated.",
    ]
    assert out.splitlines()[-1] == f"Report     {tmp_path}/report/report.html"
    assert main(["validate", str(records), *options, str(tmp_path / "report"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["classes"]["eval"] == {"cat": 4, "dog": 3, "owl": 2}
    assert found["blessed"] is True


def _write_index(records: Path, path: Path, table: pa.Table) -> None:
    """Replaces an index file, with the hash that fits."""
    pq.write_table(table, path)
    name = path.relative_to(records).as_posix()
    write_sums(str(records), {**read_sums(str(records)), name: sum_bytes(path.read_bytes())})


def test_a_lost_row_is_found_without_a_manifest(records: Path):
    [path, *_] = sorted((records / "index").glob("*.parquet"))
    table = pq.read_table(path)
    _write_index(records, path, table.slice(1))
    [finding] = [each for each in darkroom.validate(records).findings if each.check == "accounting"]
    assert (finding.policy, finding.count) == ("fail", 1)
    _write_index(records, path, pa.concat_tables([table.slice(1), table.slice(1, 1)]))
    [finding] = [each for each in darkroom.validate(records).findings if each.check == "accounting"]
    assert finding.rows[0]["problem"] == "written or rejected 2 times"
    # It may be billions of rows.
    _write_index(records, path, pa.concat_tables([table, table.slice(0, 1)]))
    for read in (darkroom.validate, darkroom.inspect, lambda folder: darkroom.diff(None, folder)):
        with pytest.raises(DataError, match=f"{path.name} has 16 rows, expected 15"):
            read(records)


def test_a_report_replaces_a_report_and_nothing_else(records: Path, tmp_path: Path):
    folder = tmp_path / "report"
    for _ in range(2):
        darkroom.validate(records, report_dir=folder)
    (folder / "report.md").write_text("my own notes")
    with pytest.raises(OutputError, match=r"did not write, or that changed since: report\.md"):
        darkroom.validate(records, report_dir=folder, policies=MILD)
    assert (folder / "report.md").read_text() == "my own notes"
    for place in (records, records / "report"):
        with pytest.raises(OutputError, match="would be in the dataset"):
            darkroom.validate(records, report_dir=place)
    with pytest.raises(OutputError, match="is a file"):
        darkroom.validate(records, report_dir=folder / "report.md")


def test_a_wrong_option_is_named_before_anything_is_read(tmp_path: Path):
    with pytest.raises(UsageError, match="Unknown check 'leaks'"):
        darkroom.validate(tmp_path / "nothing", policies={"leaks": "fail"})


def test_what_is_not_a_dataset_is_named(records: Path, tmp_path: Path):
    with pytest.raises(DataError, match=r"is not a dataset: it has no dataset\.json"):
        darkroom.validate(tmp_path)
    shutil.rmtree(records / "index")
    with pytest.raises(DataError, match=r"index/index-.*\.parquet is damaged: it is missing"):
        darkroom.validate(records)


def test_the_check_of_anomalies_needs_a_schema(records: Path):
    with pytest.raises(UsageError, match="anomalies needs a schema"):
        darkroom.validate(records, policies={"anomalies": "warn"})
    assert darkroom.validate(records, policies={"anomalies": "off"}).findings


def test_a_schema_that_does_not_exist_is_an_error_before_tfdv_is_loaded(
    records: Path, tmp_path: Path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "darkroom.validation.anomalies", None)
    with pytest.raises(FileNotFoundError, match=r"The schema .*/nope does not exist\."):
        darkroom.validate(records, schema=tmp_path / "nope")


def test_without_tfdv_a_schema_says_which_extra_is_missing(
    records: Path, tmp_path: Path, monkeypatch, capsys
):
    # Nor Beam, which `tfx` brings.
    for name in ("darkroom.validation.anomalies", "darkroom.validation.statistics"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in ("tensorflow_data_validation", "apache_beam", "darkroom.runtime.plain_beam"):
        monkeypatch.setitem(sys.modules, name, None)
    schema = tmp_path / "schema.pbtxt"
    schema.touch()
    with pytest.raises(MissingExtraError, match="needs the extra 'tfx'"):
        darkroom.validate(records, schema=schema)
    assert main(["validate", str(records), "--schema", str(schema), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "missing-extra"
