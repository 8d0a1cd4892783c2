"""What a run says of its data on the console."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from darkroom.options.validation import FAIL, OFF, WARN
from darkroom.pipelines.local.summary import RunSummary, format_summary
from darkroom.training.state.history import Exported
from darkroom.validation.report.dataset_report import DatasetReport
from darkroom.validation.report.findings import Finding

pytestmark = pytest.mark.tfx


@pytest.mark.parametrize(("count", "more"), [(2, []), (3, ["       and 1 more"])])
def test_rows_of_a_finding_that_are_not_shown_are_counted(count: int, more: list[str]):
    rows = tuple(
        {"row": n, "uri": f"{n}.png", "split": None, "label": None, "reason": "empty"}
        for n in range(1, count + 1)
    )
    finding = Finding(
        "rejects", FAIL, count, "Some rows were rejected.", rows=rows, hint="Fix them.\nOr not."
    )
    report = DatasetReport(
        rows=9,
        written=9 - count,
        deduplicated=0,
        rejected={"empty": count},
        labels=("cat",),
        splits={"train": 9 - count},
        classes={"train": {"cat": 9 - count}},
        policies={"rejects": FAIL},
        findings=(finding,),
    )
    summary = _make_summary(report, report_path="report.html", min_accuracy=0.0)
    trained = replace(
        summary,
        epochs=Exported(6, 7, 6),
        score=0.5,
        pushed="/runs/first/pushed/1",
        model="/runs/first/m",
    )
    assert format_summary(trained).splitlines()[-7:-4] == [
        "Epoch      6 of 7 (lowest val_loss)",
        "Accuracy   0.5000 on the eval split (no minimum is set)",
        "Pushed to  /runs/first/pushed/1",
    ]
    assert (trained.to_dict()["best_epoch"], trained.to_dict()["epochs"]) == (6, 7)
    assert "error" not in trained.to_dict()
    assert summary.to_dict()["error"] == {
        "code": "data",
        "message": "The data did not pass. Stopped by 1 finding.",
        "hint": "Report: report.html",
    }
    lines = format_summary(summary).splitlines()
    start = lines.index("Gate       Stopped by 1 finding.")
    assert lines[start + 1 : lines.index("", start)] == [
        "  FAIL rejects: Some rows were rejected.",
        "       row 1 1.png: empty",
        "       row 2 2.png: empty",
        *more,
        "       Fix them.",
        "       Or not.",
    ]


def test_the_gate_says_what_it_looked_for():
    report = DatasetReport(1, 1, 0, {}, ("cat",), {"train": 1}, {"train": {"cat": 1}}, {})
    judged = replace(report, policies={"leakage": FAIL, "near_leakage": WARN})
    equal = replace(report, policies={"leakage": FAIL, "near_leakage": OFF})
    assert "Gate       Passed." in format_summary(_make_summary(report)).splitlines()
    assert (
        "Gate       Passed. Looked for: equal pixels and small changes; crops and turned copies "
        "need features: option embed, or darkroom embed."
        in format_summary(_make_summary(judged)).splitlines()
    )
    assert (
        "Gate       Passed. Looked for: equal pixels only; near copies are not found."
        in format_summary(_make_summary(equal)).splitlines()
    )


def test_a_model_that_did_not_pass_says_what_was_missed_besides_its_accuracy():
    report = DatasetReport(9, 9, 0, {}, ("cat",), {"train": 9}, {"train": {"cat": 9}}, {})
    failures = (
        "the accuracy is 0.5000 (needed at least 0.6)",
        "the recall of cat is 0.1000 (needed at least 0.5)",
        "the accuracy differs by -0.2000 from the model before (needed at least -0.1)",
    )
    summary = _make_summary(
        report, score=0.5, min_accuracy=0.6, model="m", page="model.html", failures=failures
    )
    lines = format_summary(summary).splitlines()
    start = lines.index("Accuracy   0.5000 on the eval split (needed 0.60)")
    assert lines[start + 1 :][:4] == [
        "Page       model.html",
        "Pushed to  nowhere: the model did not pass its evaluation",
        *(f"  {each}" for each in failures[1:]),
    ]
    found = summary.to_dict()
    assert found["failures"] == list(failures)
    assert found["error"]["message"] == f"The model did not pass: {'; '.join(failures[1:])}."
    only = replace(summary, failures=failures[:1]).to_dict()["error"]["message"]
    assert only == "The model did not pass: its accuracy is 0.5000 (needed 0.60)."


def test_excluded_rows_are_not_shown_as_duplicates():
    report = DatasetReport(
        rows=9,
        written=4,
        deduplicated=5,
        rejected={},
        labels=("cat",),
        splits={"train": 4},
        classes={"train": {"cat": 4}},
        policies={},
        excluded=3,
    )
    lines = _format_rows(report)
    assert lines[3:] == ["Duplicates 2", "Excluded   3"]
    assert _format_rows(replace(report, excluded=0))[3:] == ["Duplicates 5"]


def _make_summary(report: DatasetReport, **values: Any) -> RunSummary:
    """Returns the summary of a run that ended at the gate."""
    ended = {"report_path": None, "epochs": None, "score": None, "min_accuracy": None}
    return RunSummary(
        root="runs/first",
        report=report,
        pushed=None,
        examples=None,
        changed={},
        reused=(),
        log_path="log.txt",
        seconds=1.0,
        **{**ended, **values},
    )


def _format_rows(report: DatasetReport) -> list[str]:
    lines = format_summary(_make_summary(report)).splitlines()
    return lines[1 : lines.index("", 1)]
