from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tensorflow_metadata.proto.v0 import anomalies_pb2
from tfx.types import standard_artifacts

import darkroom
from darkroom.components.artifacts import ValidationReport
from darkroom.components.image_validator.executor import Executor
from darkroom.components.system_artifacts import HTML
from darkroom.components.validation_gate.executor import Executor as GateExecutor
from darkroom.errors import UsageError
from darkroom.options.validation import ValidationOptions
from darkroom.steps.places import MOUNTS_VARIABLE
from darkroom.storage.ledger import LEDGER_FILE
from darkroom.validation.anomalies import read_anomalies
from darkroom.validation.gate import GateError
from darkroom.validation.report.findings import Anomaly

from .conftest import convert_source, read_csv, write_csv

pytestmark = pytest.mark.tfx


@pytest.fixture
def anomalies(new_artifact):
    artifact = new_artifact(standard_artifacts.ExampleAnomalies)
    artifact.split_names = json.dumps(["train", "eval"])
    for split in ("train", "eval"):
        _write_anomalies(artifact, split, anomalies_pb2.Anomalies())
    return artifact


def _write_anomalies(artifact, split: str, found) -> None:
    folder = Path(artifact.uri, f"Split-{split}")
    folder.mkdir(exist_ok=True)
    (folder / "SchemaDiff.pb").write_bytes(found.SerializeToString())


def _judge(made, anomalies, new_artifact, given=("index", "rejects", "manifest"), **options):
    report, page = new_artifact(ValidationReport), new_artifact(HTML)
    inputs = {name: [made[name]] for name in given}
    properties = {"options": ValidationOptions(**options).to_json()}
    outputs = {"report": [report], "validation_html": [page]}
    if options.get("gallery"):
        outputs["gallery_html"] = [new_artifact(HTML)]
    Executor().Do({**inputs, "anomalies": [anomalies]}, outputs, properties)
    # What a UI shows is the file at the URI itself, and the same as in the report.
    assert Path(page.uri).read_bytes() == Path(report.uri, "report.html").read_bytes()
    return report


def _pass_gate(report) -> None:
    GateExecutor().Do({"report": [report]}, {}, {})


def test_pictures_come_from_the_examples(images: Path, converted, anomalies, new_artifact):
    for path in images.parent.glob("*.jpg"):
        path.unlink()
    given = ("index", "rejects", "manifest", "examples")
    for names, count in ((given, 3), (given[:3], 0)):
        report = _judge(converted, anomalies, new_artifact, names)
        page = Path(report.uri, "report.html").read_text()
        assert page.count("<img ") == count
        said = "3 of 3 pictures are missing: their images cannot be read."
        assert (said in page) == (count == 0)


def test_a_gallery_is_a_page_of_its_own_and_no_page_has_a_link(converted, anomalies, new_artifact):
    made = []
    given = ("index", "rejects", "manifest", "examples")
    keep = lambda kind: made.append(new_artifact(kind)) or made[-1]  # noqa: E731
    _judge(converted, anomalies, keep, given, gallery=True)
    report, page, gallery = made
    assert "gallery.html" not in {path.name for path in Path(report.uri).iterdir()}
    text = Path(page.uri).read_text()
    assert "All images and findings: the output gallery_html." in text
    shown = Path(gallery.uri).read_text()
    assert Path(gallery.uri).name == "gallery.html"
    place = {"records": converted["examples"].uri, "index": converted["index"].uri}
    assert f'"place":{json.dumps(place, separators=(",", ":"))}' in shown
    # In a frame of a UI, even a link to a part of the page leads to another page.
    assert "href=" not in text + shown


def test_good_data_is_blessed_and_passes(converted, anomalies, new_artifact):
    report = _judge(converted, anomalies, new_artifact, min_class_images=5)
    assert report.get_int_custom_property("blessed") == 1
    assert sorted(path.name for path in Path(report.uri).iterdir()) == [
        LEDGER_FILE,
        "report.html",
        "report.json",
        "report.md",
    ]
    found = json.loads(Path(report.uri, "report.json").read_text())
    assert (found["blessed"], found["rows"], found["written"]) == (True, 30, 30)
    assert found["findings"] == []
    _pass_gate(report)


def test_without_tfx_the_verdict_and_the_report_are_the_same(
    converted, images: Path, anomalies, new_artifact, tmp_path: Path
):
    policies = {"anomalies": "off"}
    report = _judge(converted, anomalies, new_artifact, policies=policies)
    darkroom.convert(images, tmp_path / "records")
    result = darkroom.validate(tmp_path / "records", report_dir=tmp_path / "report")
    assert [finding.check for finding in result.findings] == ["small_classes"]
    for path in (tmp_path / "report").iterdir():
        assert path.read_bytes() == Path(report.uri, path.name).read_bytes(), path.name


def test_without_tfx_a_schema_finds_anomalies(images: Path, tmp_path: Path):
    schema = tmp_path / "schema.pbtxt"
    schema.write_text('feature { name: "image/height" type: INT int_domain { max: 5 } }')
    # TFDV takes seconds for each split.
    write_csv(images, [row for row in read_csv(images) if row[0] != "VALIDATION"])
    darkroom.convert(images, tmp_path / "records")
    result = darkroom.validate(tmp_path / "records", schema=schema)
    [finding] = [each for each in result.findings if each.check == "anomalies"]
    [row] = [row for row in finding.rows if row["feature"] == "image/height"]
    assert (row["split"], row["severity"]) == ("train", "ERROR")
    assert row["short"].startswith("Out-of-range")
    assert not result.blessed


def test_a_file_that_is_not_a_schema_is_wrong_usage(images: Path, tmp_path: Path):
    darkroom.convert(images, tmp_path / "records")
    (tmp_path / "schema.pbtxt").write_text("feature { nome: 'x' }")
    with pytest.raises(UsageError, match=r"schema.pbtxt is not a schema of TFDV: .*nome"):
        darkroom.validate(tmp_path / "records", schema=tmp_path / "schema.pbtxt")
    with pytest.raises(FileNotFoundError):
        darkroom.validate(tmp_path / "records", schema=tmp_path / "nothing.pbtxt")


def test_leakage_is_reported_by_a_component_that_succeeds_and_stopped_by_the_gate(
    images: Path, anomalies, new_artifact, beam_context, tmp_path: Path, monkeypatch
):
    shutil.copy(images.parent / "00.jpg", images.parent / "copy.jpg")
    write_csv(images, [*read_csv(images), ("VALIDATION", "copy.jpg", "cat")])
    made = convert_source(str(images), new_artifact, beam_context)
    report = _judge(made, anomalies, new_artifact)
    assert report.get_int_custom_property("blessed") == 0
    with pytest.raises(GateError) as error:
        _pass_gate(report)
    text = str(error.value)
    assert "leakage" in text
    assert "00.jpg" in text
    assert "copy.jpg" in text
    assert f"{report.uri}/report.html" in text
    # In a cluster, the folder of the task is gone when somebody reads it.
    monkeypatch.setenv(MOUNTS_VARIABLE, str(tmp_path))
    (tmp_path / "minio").symlink_to(Path(report.uri).parent)
    report.uri = str(tmp_path / "minio" / Path(report.uri).name)
    with pytest.raises(GateError) as error:
        _pass_gate(report)
    assert str(error.value).endswith("The whole report: output validation_html of ImageValidator")
    assert error.value.exit_code == 1

    warned = _judge(made, anomalies, new_artifact, policies={"leakage": "warn"})
    assert warned.get_int_custom_property("blessed") == 1
    _pass_gate(warned)


def test_anomalies_are_read_with_split_feature_and_text(anomalies):
    found = anomalies_pb2.Anomalies()
    found.anomaly_info["camera"].severity = anomalies_pb2.AnomalyInfo.ERROR
    found.anomaly_info["camera"].short_description = "Unexpected string values"
    found.anomaly_info["camera"].description = "Examples contain values missing from the schema: x"
    found.dataset_anomaly_info.severity = anomalies_pb2.AnomalyInfo.WARNING
    found.dataset_anomaly_info.short_description = "Low num examples"
    found.dataset_anomaly_info.description = "Only 6"
    _write_anomalies(anomalies, "eval", found)
    assert list(read_anomalies(anomalies.uri)) == [
        Anomaly("eval", "", "WARNING", "Low num examples", "Only 6"),
        Anomaly(
            "eval",
            "camera",
            "ERROR",
            "Unexpected string values",
            "Examples contain values missing from the schema: x",
        ),
    ]
