"""`darkroom validate --results`: what results of a detector say against the boxes of a list."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import darkroom
from darkroom.cli import main
from darkroom.errors import DataError, UsageError
from darkroom.kfp.execution import parse_parameters
from darkroom.steps.validate import STEP
from darkroom.validation.report.dataset_report import DatasetReport, format_scope
from darkroom.validation.report.findings import format_finding_row

from .test_boxes import CAT, DOG, HEIGHT, WIDTH, find_rows, write_dataset

CHECKS = ("missing_boxes", "wrong_classes", "shifted_boxes", "false_boxes")
LISTED = {
    "right": [CAT, DOG],
    "missing": [CAT],
    "class": [{**CAT, "label": "dog"}, DOG],
    "shifted": [{**DOG, "box": [130, 20, 170, 90]}],
    "false": [CAT, DOG],
    "empty": [],
    "unknown": None,
}
# What is there, and with which score the detector finds it.
RESULTS = [
    ("right", CAT, 0.9),
    ("right", DOG, 0.8),
    ("missing", CAT, 0.9),
    ("missing", DOG, 0.6),
    ("class", CAT, 0.7),
    ("class", DOG, 0.9),
    ("shifted", DOG, 0.5),
    ("false", CAT, 0.9),
    ("empty", DOG, 0.7),
    ("empty", CAT, 0.2),
    ("unknown", CAT, 0.9),
]


def make_result(name, found, score):
    left, top, right, bottom = found["box"]
    box = [left, top, right - left, bottom - top]
    number = ["cat", "dog"].index(found["label"]) + 1
    return {"image_id": name, "category_id": number, "bbox": box, "score": score}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("detector"), LISTED)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("results") / "results.json"
    path.write_text(json.dumps([make_result(*each) for each in RESULTS]))
    return path


@pytest.fixture(scope="module")
def report(records: Path, results: Path) -> DatasetReport:
    return darkroom.validate(records, required_splits=("train",), results=results).report


def get_finding(report: DatasetReport, check: str):
    [found] = [each for each in report.findings if each.check == check]
    return found


def test_the_step_of_a_pipeline_takes_results(records, results, tmp_path):
    outputs = {each.name: str(tmp_path / each.name) for each in STEP.outputs}
    options = parse_parameters({}, STEP)
    del options["fail"], options["dataset_uri"]
    STEP.run({"dataset": str(records), "results": str(results), **outputs}, options)
    report = json.loads((tmp_path / "validation_report" / "report.json").read_text())
    assert {*CHECKS} <= {each["check"] for each in report["findings"]}


def test_each_kind_of_doubt_is_a_finding_with_the_highest_scores_first(report):
    assert find_rows(report, "missing_boxes") == [("empty", "dog"), ("missing", "dog")]
    assert find_rows(report, "wrong_classes") == [("class", "dog")]
    assert find_rows(report, "shifted_boxes") == [("shifted", "dog")]
    assert find_rows(report, "false_boxes") == [("false", "dog")]
    told = {name: format_finding_row(get_finding(report, name).rows[0]) for name in CHECKS}
    assert ": a result from (100, 20) to (140, 90): score 0.70" in told["missing_boxes"]
    assert ": object 1 from (10, 10) to (60, 60): score 0.70" in told["wrong_classes"]
    # That of the list, not of the result.
    assert ": object 1 from (130, 20) to (170, 90): score 0.50" in told["shifted_boxes"]
    assert ": object 2 from (100, 20) to (140, 90): 80% of" in told["false_boxes"]
    [row] = get_finding(report, "wrong_classes").rows
    assert (row["suggested"], row["detail"]) == ("cat", "score 0.70, 1.00 of both in common")
    assert row["box"] == [10 / WIDTH, 10 / HEIGHT, 60 / WIDTH, 60 / HEIGHT]
    [row] = get_finding(report, "shifted_boxes").rows
    assert row["detail"] == "score 0.50, 0.14 of both in common"
    [row] = get_finding(report, "false_boxes").rows
    # The box of the list, of the five dogs that images with results have.
    assert (row["detail"], row["box"][0]) == ("80% of the objects of this class have a result", 0.5)


def test_without_results_the_report_says_that_nothing_looks_into_boxes(records):
    report = darkroom.validate(records, required_splits=("train",)).report
    assert {report.policies[name] for name in CHECKS} == {"off"}
    assert "Not looked for without results of a detector: missing" in format_scope(report)


def test_with_results_the_report_says_that_they_were_asked(report):
    assert {report.policies[name] for name in CHECKS} == {"warn"}
    assert "Not looked for without results" not in format_scope(report)
    assert "the detector did not look" not in format_scope(report)


def test_images_without_results_count_if_the_detector_looked_at_them(tmp_path):
    """It did if their split has results, and if the annotations that it had have them."""
    names = ("seen", "found", "alone", "other")
    listed = {name: [CAT] for name in names}
    splits = {"other": "eval"}
    records = write_dataset(tmp_path, listed, lambda name: splits.get(name, "train"))
    (tmp_path / "results.json").write_text(json.dumps([make_result("seen", CAT, 0.9)]))
    images = [{"id": name, "file_name": f"{name}.png"} for name in ("seen", "alone", "other")]
    categories = [{"id": 1, "name": "cat"}]
    (tmp_path / "coco.json").write_text(json.dumps({"images": images, "categories": categories}))
    for had, alone, count in (
        (None, ["alone", "found"], "1 annotated image"),
        (records / "labels.txt", ["alone", "found"], "1 annotated image"),
        (tmp_path / "coco.json", ["alone"], "2 annotated images"),
    ):
        given = {"results": tmp_path / "results.json", "annotations": had}
        report = darkroom.validate(records, **given).report
        assert sorted(name for name, _ in find_rows(report, "false_boxes")) == alone
        said = f"Not compared with results, as the detector did not look at them: {count}."
        assert said in format_scope(report)


def test_report_and_gallery_draw_both_boxes(records, results, tmp_path, capsys):
    arguments = ["--required-split", "train", "--results", str(results)]
    arguments += ["--report", str(tmp_path / "report"), "--gallery"]
    assert main(["validate", str(records), *arguments]) == 0
    assert "WARN  wrong_classes" in capsys.readouterr().out
    page = (tmp_path / "report/report.html").read_text()
    assert 'stroke="#fff" x="10" y="10" width="50" height="50" stroke-dasharray="5 4"' in page
    assert "<title>cat (result)</title>" in page
    assert "<title>dog (no result)</title>" in page
    gallery = (tmp_path / "report/gallery.html").read_text()
    assert '["cat (result)",0.05,0.1,0.3,0.6,null]' in gallery
    assert '"object":"object 1 from (130, 20) to (170, 90)"' in gallery


def test_a_policy_of_these_checks_holds(records, results):
    given = {"required_splits": ("train",), "results": results}
    found = darkroom.validate(records, policies={"wrong_classes": "fail"}, **given)
    assert not found.blessed
    off = darkroom.validate(records, policies=dict.fromkeys(CHECKS, "off"), **given)
    assert not {*CHECKS} & {each.check for each in off.findings}


def test_what_cannot_be_is_said_before_any_check(records, results, tmp_path):
    with pytest.raises(UsageError, match="The check wrong_classes needs results of a detector"):
        darkroom.validate(records, policies={"wrong_classes": "warn"})
    with pytest.raises(UsageError, match="annotations need results"):
        darkroom.validate(records, annotations=results)
    (tmp_path / "strange.json").write_text(json.dumps([make_result("strange", CAT, 1)]))
    with pytest.raises(DataError, match="1 of 1 image is not in the dataset: strange"):
        darkroom.validate(records, results=tmp_path / "strange.json")


def test_images_with_labels_have_no_results(results, tmp_path):
    (tmp_path / "list.csv").write_text("image_uri,label\n")
    source = write_dataset(tmp_path, {"one": [CAT]}).parent / "one.png"
    (tmp_path / "list.csv").write_text(f"split,image_uri,label\ntrain,{source},cat\n")
    darkroom.convert(tmp_path / "list.csv", tmp_path / "labels")
    with pytest.raises(UsageError, match=r"the images in .* are labelled with label"):
        darkroom.validate(tmp_path / "labels", results=results)
