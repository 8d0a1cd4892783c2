"""`darkroom.validate`: the checks, the report and the gate of the pipeline, without TFX."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from darkroom import storage
from darkroom.dataset import layout
from darkroom.dataset.layout import INDEX_FOLDER
from darkroom.dataset.named import find_named_data
from darkroom.dataset.opening import check_index_files, check_outside, open_dataset
from darkroom.errors import UsageError
from darkroom.options.checks import DEFAULT_MAX_REJECTS
from darkroom.options.validation import OFF, ValidationOptions
from darkroom.runtime import progress
from darkroom.runtime.process import begin_at_call
from darkroom.runtime.result import Fact, Outcome, Result, format_rows, list_facts
from darkroom.storage import ledger
from darkroom.targets.boxes.results import OF_DETECTOR, DetectorFiles, check_boxes
from darkroom.targets.checks import list_result_checks
from darkroom.validation.gate import check_blessed
from darkroom.validation.judge import JudgedFiles, judge_dataset
from darkroom.validation.report.dataset_report import (
    DIFF_TITLE,
    DatasetReport,
    describe_contents,
    format_accounting,
    format_scope,
    format_table,
    format_verdict,
)
from darkroom.validation.report.findings import Finding, format_finding_row
from darkroom.validation.report.pictures import RecordFolders, show_pictures
from darkroom.validation.report.write import (
    GALLERY_FILE,
    REPORT_FILES,
    REPORT_HTML,
    write_report,
)

# Of each finding in a notebook.
_MAX_CARD_ROWS = 3


@dataclass(frozen=True, repr=False)
class ValidationResult(Result):
    """The result of `validate`.

    Attributes:
        directory: The dataset.
        report: Its counts, and the findings of the checks.
        report_path: The report's page for people; None when none was written.
        gallery_path: The gallery; None when none was written.
    """

    directory: str
    report: DatasetReport
    report_path: str | None = None
    gallery_path: str | None = None

    @property
    def blessed(self) -> bool:
        """Whether the gate lets the dataset pass: no finding has the policy `fail`."""
        return self.report.blessed

    @property
    def verdict(self) -> str:
        """The verdict in a word: "stopped", "passed with warnings" or "passed"."""
        return self.report.verdict

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings; those that stop a run come first."""
        return self.report.findings

    @begin_at_call
    def check(self) -> None:
        """Does the same as the gate of the pipeline.

        Raises:
            GateError: The dataset is not blessed; a `DataError`.
        """
        check_blessed(self.report, self.report_path)

    def to_dict(self) -> dict[str, Any]:
        """Returns the result as values that JSON knows, without histograms and samples."""
        report = self.report
        return {
            "blessed": self.blessed,
            "verdict": self.verdict,
            "directory": self.directory,
            "rows": report.rows,
            "written": report.written,
            "rejected": dict(report.rejected),
            "deduplicated": report.deduplicated,
            "ignored": report.ignored,
            "splits": dict(report.splits),
            "classes": {split: dict(counts) for split, counts in report.classes.items()},
            "policies": dict(report.policies),
            "findings": [asdict(finding) for finding in report.findings],
            "read_as": asdict(report.read_as) if report.read_as else None,
            "report": self.report_path,
            "gallery": self.gallery_path,
        }

    def __repr__(self) -> str:
        return (
            f"ValidationResult(directory={self.directory!r}, verdict={self.verdict!r}, "
            f"findings={len(self.findings)}, report_path={self.report_path!r})"
        )

    def describe(self) -> Outcome:
        """Returns verdict, counts, and the first rows of each finding."""
        report = self.report
        findings = [
            Fact(f"{each.policy.upper()} {each.check}", _format_finding(each))
            for each in report.findings
        ]
        rows = [
            format_accounting(report),
            format_scope(report),
            *findings,
            *describe_contents(report),
            *self._list_places(),
        ]
        return Outcome(format_verdict(report), rows, report.tone)

    def to_text(self, *, bars: bool = False) -> str:
        """Returns it as text for a terminal; the gate says the findings in the same form."""
        is_diff = self.report.title == DIFF_TITLE
        contents = [] if is_diff else [*describe_contents(self.report), ""]
        places = self._list_places()
        rows = [*contents, format_table(self.report), *([""] if places else []), *places]
        return "\n".join(format_rows(rows, bars=bars))

    def _repr_html_(self) -> str:
        """Returns it as a notebook shows it, with images of findings, which are read for that."""
        records = RecordFolders(self.directory, storage.join(self.directory, INDEX_FOLDER))
        # The images of two datasets that are compared are not in one place.
        is_diff = self.report.title == DIFF_TITLE
        shown = None if is_diff else show_pictures(self.report, records)
        return self.describe()._replace(more=[shown]).to_card()

    def _list_places(self) -> list[Fact]:
        return list_facts({"Report": self.report_path or "", "Gallery": self.gallery_path or ""})


def _format_finding(finding: Finding) -> str:
    rows = [format_finding_row(row) for row in finding.rows[:_MAX_CARD_ROWS]]
    more = finding.count - len(rows)
    also = [f"and {more:,} more"] if rows and more > 0 else []
    return "\n".join(filter(None, (finding.message, finding.hint, *rows, *also)))


@storage.report_failures
@progress.shown
def validate(
    directory: str | os.PathLike[str],
    *,
    policies: Mapping[str, str] | None = None,
    max_rejects: float | None = None,
    required_splits: tuple[str, ...] = ("train", "eval"),
    min_class_images: int = 10,
    expected_labels: tuple[str, ...] | None = None,
    baseline: str | os.PathLike[str] | None = None,
    gallery: bool = False,
    schema: str | os.PathLike[str] | None = None,
    results: str | os.PathLike[str] | None = None,
    annotations: str | os.PathLike[str] | None = None,
    report_dir: str | os.PathLike[str] | None = None,
) -> ValidationResult:
    """Checks a dataset by its index, as the pipeline does, and writes the report.

    Args:
        directory: A folder that `darkroom.convert` wrote; local or remote.
        policies: Effect of each check's findings on the run: fail, warn or off. A check
            that is not named keeps its default: `darkroom.options.validation.VALIDATION_POLICIES`.
        max_rejects: Share of rejected rows that is allowed. None: that of the conversion if it was
            given one below 1, else 0.01.
        required_splits: Splits that must have records.
        min_class_images: Number of training images that every class needs.
        expected_labels: The only labels that may occur. None: those of the label map.
        baseline: An earlier dataset, from which this one must not differ: the check drift.
        gallery: Write gallery.html, too: findings and images to look through, and to decide about.
        schema: A schema of TFDV as text (`schema.pbtxt`), which needs the extra `tfx`. None: the
            check `anomalies` is off.
        results: What a detector says of the images, as for `darkroom.evaluate`: findings say where
            it speaks against the boxes of the list. None: the checks for that are off.
        annotations: The file of COCO that the detector had, or `labels.txt`, as for
            `darkroom.evaluate`.
        report_dir: Folder for `report.html`, `report.md` and `report.json`; made if it does not
            exist. A report that is there is replaced, another file is not. None: no report is
            written.

    Returns:
        The report. Bad data is a finding in it: `result.blessed` says whether it passes, and
        `result.check()` raises where the gate of the pipeline stops.

    Raises:
        DataError: The folder is not a dataset, or its index or rejects are missing or damaged.
        UsageError: An option is wrong.
        OutputError: `report_dir` is the dataset, or has files that are not a report.
        MissingExtraError: `schema` is given, and TFDV is not installed.
        OSError: Something cannot be read or written.
    """
    options = ValidationOptions(
        policies={} if policies is None else policies,
        max_rejects=DEFAULT_MAX_REJECTS if max_rejects is None else max_rejects,
        required_splits=required_splits,
        min_class_images=min_class_images,
        expected_labels=expected_labels,
        baseline=None if baseline is None else os.fspath(baseline),
        gallery=gallery,
    )
    if schema is None:
        if (policies or {}).get("anomalies", OFF) != OFF:
            raise UsageError("The check anomalies needs a schema.", "Give one: schema (--schema).")
        options = replace(options, policies={**options.policies, "anomalies": OFF})
    detector = _check_results(results, annotations, policies or {})
    root = find_named_data(directory)
    folder = _find_report_folder(report_dir, root, gallery=gallery)
    path = None if schema is None else storage.absolute(schema)
    if path is not None and not storage.exists(path):
        raise storage.build_missing_error(path, "The schema")
    records = RecordFolders(root, storage.join(root, layout.INDEX_FOLDER))
    report = _judge(records, options, path, detector, is_agreed=max_rejects is None)
    if folder is None:
        return ValidationResult(root, report)
    with progress.step("Report"):
        write_report(report, folder, records, gallery=gallery)
    page = storage.join(folder, GALLERY_FILE) if gallery else None
    return ValidationResult(root, report, storage.join(folder, REPORT_HTML), page)


def _find_report_folder(
    report_dir: str | os.PathLike[str] | None, root: str, *, gallery: bool
) -> str | None:
    """Returns the folder of the report, if there is one, before anything is computed.

    Raises:
        UsageError: There is none, and the gallery needs it.
        OutputError: It is the dataset, or has files that are not a report.
    """
    if report_dir is None:
        if gallery:
            raise UsageError(
                "The gallery is written beside the report.",
                "Name its folder: report_dir (--report). Or write it alone with darkroom gallery.",
            )
        return None
    folder = storage.absolute(report_dir)
    check_outside(root, folder, "The report")
    files = (*REPORT_FILES, GALLERY_FILE)
    ledger.check_alone(folder, files, "Choose a new folder for the report.")
    ledger.check_owned_files(folder, files)
    return folder


def _check_results(
    results: str | os.PathLike[str] | None,
    annotations: str | os.PathLike[str] | None,
    policies: Mapping[str, str],
) -> DetectorFiles | None:
    """Returns what a detector wrote and had.

    Raises:
        UsageError: Annotations or policies are given that need results.
    """
    if results is not None:
        return DetectorFiles.of(results, annotations)
    wanted = [name for name in list_result_checks() if policies.get(name, OFF) != OFF]
    if annotations is not None or wanted:
        what = f"The check {wanted[0]} needs" if wanted else "annotations need"
        raise UsageError(f"{what} results of a detector.", "Give them: results (--results).")
    return None


def _judge(
    records: RecordFolders,
    options: ValidationOptions,
    schema: str | None,
    results: DetectorFiles | None,
    *,
    is_agreed: bool,
) -> DatasetReport:
    """Judges a dataset with its own files, after a check of their hashes.

    Args:
        records: Where the dataset and its index are.
        options: Policies and limits.
        schema: The path of TFDV's schema, if there is one.
        results: What a detector says of the images, if there is something.
        is_agreed: Take the share of rejects that the conversion was given, if it was given one.
    """
    root = records.examples
    dataset = open_dataset(root)
    if is_agreed and dataset.max_rejects is not None:
        options = replace(options, max_rejects=dataset.max_rejects)
    # A flipped bit may be another value, which no reader of Parquet notices.
    check_index_files(root, dataset, layout.REJECTS_FILE)
    files = JudgedFiles(
        index_dir=records.index_dir,
        rejects_path=storage.join(root, layout.REJECTS_FILE),
        source=dataset,
        records=records,
        uses_cache=True,
        results=results,
    )
    if results is not None:
        check_boxes(dataset, root, OF_DETECTOR, "Validate them without results.")
    if schema is not None:
        with progress.step("Comparing with the schema"):
            # It loads Beam, which takes longer than all the checks of a small dataset.
            from darkroom.validation.anomalies import find_anomalies

            found = find_anomalies(files.index_dir, schema)
            files = replace(files, anomalies=tuple(found))
    with progress.step("Statistics and checks"):
        return judge_dataset(files, options)
