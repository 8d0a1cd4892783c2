"""The tasks of the components of datasets: they call darkroom, and write KFP's outputs.

Each task writes its outputs before it fails: on Vertex they stay, and on Kubeflow the log
explains the failure.
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any

from darkroom import storage
from darkroom.audit.contact_sheet import inspect
from darkroom.audit.duplicates import find_duplicates as list_duplicates
from darkroom.conversion.base import find_base
from darkroom.conversion.convert import convert
from darkroom.conversion.result import ConversionResult
from darkroom.dataset import layout
from darkroom.dataset.commit import read_dataset, read_output
from darkroom.dataset.index import find_index_files
from darkroom.dataset.named import name_dataset
from darkroom.dataset.pointer import find_output
from darkroom.errors import DataError, StorageError, UsageError, convert_error
from darkroom.kfp import pages, webhook
from darkroom.kfp.execution import LOCATION_KEY, Execution
from darkroom.kfp.interfaces import DIRECT
from darkroom.kfp.places import name_place, name_uris
from darkroom.options.conversion import ConversionOptions
from darkroom.options.validation import CHECK_NAMES, FAIL, OFF
from darkroom.proof.findings import FILE_HINTS, UNREADABLE, format_findings
from darkroom.proof.verify import verify
from darkroom.runtime import progress
from darkroom.runtime.lazy_names import is_installed
from darkroom.validation.diff import IMAGE_CHANGES, OBJECT_CHANGES, diff
from darkroom.validation.gallery.encode import encode_gallery
from darkroom.validation.gate import GateError
from darkroom.validation.report.dataset_report import DIFF_TITLE, DatasetReport, format_table
from darkroom.validation.report.page import make_statistics_page
from darkroom.validation.report.pictures import RecordFolders
from darkroom.validation.report.write import REPORT_HTML, REPORT_JSON, write_report
from darkroom.validation.validate import ValidationResult, validate

# What Kubeflow calls the states; where a pod was lost, its records go on saying that a task runs.
_UNKNOWN = "UNKNOWN"
_STATES = {"COMPLETE": "SUCCEEDED", "RUNNING": _UNKNOWN}
_STATISTICS_FILE = "statistics.json"
# The name that TFX's components look for.
TFDV_FILE = "FeatureStats.pb"
# The file of the artifact of a dataset that was not there; of one without files KFP keeps nothing.
_NONE_FILE = "no-dataset.txt"
_KEEP_HINT = (
    "\nTo keep the report as an artifact: fail=False, and validation_gate with the output "
    "{}_report."
)
_PAGE_HINT = "\nThe report: output {}_page of the task that made it."


def convert_images(execution: Execution) -> None:
    """Converts a source, into the artifact or into a folder that the user names."""
    options = dict(execution.parameters)
    data, output_dir = options.pop("data"), options.pop("output_dir")
    transfer = options.pop("transfer")
    del options["source_fingerprint"]  # for the cache
    dataset = execution.outputs["dataset"]
    place = output_dir or (dataset.remote if transfer == DIRECT else dataset.path)
    limits = {name: options.pop(name) for name in ("max_rejects", "overwrite")}
    made = ConversionOptions(**options)
    with storage.be_patient(made.store_patience_seconds):
        _keep_previous(execution, made.base or (output_dir if made.update else ""))
        result = convert(data, place, **limits, options=made)
    # The next run may put another dataset there.
    named = name_dataset(result.output_dir, result.fingerprint) if output_dir else dataset.remote
    if output_dir:
        # Whoever gets the artifact finds the dataset by its metadata.
        storage.make_folder(dataset.path)
        commit = storage.join(result.data_dir, layout.DATASET_FILE)
        storage.copy_file(commit, storage.join(dataset.path, layout.DATASET_FILE))
        dataset.describe({LOCATION_KEY: named})
    dataset.describe(_describe_dataset(result))
    rejects = execution.outputs["rejects"]
    storage.make_folder(rejects.path)
    for name in (layout.REJECTS_FILE, layout.REJECTS_LIST_FILE):
        storage.copy_file(storage.join(result.data_dir, name), storage.join(rejects.path, name))
    rejects.describe({"rejected": result.num_rejected, **result.rejected})
    if result.objects:
        rejects.describe({"rejected_objects": result.objects.rejected})
    execution.outputs["summary"].write(pages.encode_summary(result).encode())
    execution.results = {
        "dataset_uri": named,
        "rows": result.rows,
        "written": result.written,
        "rejected": result.num_rejected,
        "fingerprint": result.fingerprint,
    }
    execution.write_output()


def _keep_previous(execution: Execution, place: str) -> None:
    """Copies what can be compared of a dataset before it is replaced: all but its shards."""
    previous = execution.outputs["previous"]
    storage.make_folder(previous.path)
    found = find_base(place) if place else None
    if found is None:
        storage.write_bytes(storage.join(previous.path, _NONE_FILE), b"There was none before.\n")
        return
    folder = found.examples
    dataset = read_dataset(folder)
    storage.make_folder(storage.join(previous.path, layout.INDEX_FOLDER))
    for name in (layout.DATASET_FILE, *dataset.files):
        storage.copy_file(storage.join(folder, name), storage.join(previous.path, name))
    previous.describe({"fingerprint": dataset.fingerprint, "records": dataset.written})


def _describe_dataset(result: ConversionResult) -> dict[str, Any]:
    """Returns the metadata of the artifact, by name: fingerprint, counts and bytes."""
    _, commit = read_output(result.output_dir)
    return {
        "fingerprint": result.fingerprint,
        "rows": result.rows,
        "records": result.written,
        "rejected": result.num_rejected,
        "deduplicated": result.deduplicated,
        "labels": len(result.labels),
        "shards": result.shards,
        "bytes": sum(shard.bytes for shard in commit.shards),
        **({"objects": result.objects.written} if result.objects else {}),
        **{f"{split}_records": count for split, count in result.splits.items()},
    }


def validate_dataset(execution: Execution) -> None:
    """Judges a dataset, and fails if it does not pass and was told to fail."""
    place, outputs = execution.find_dataset(), execution.outputs
    options = dict(execution.parameters)
    fail, gallery = options.pop("fail"), options.pop("gallery")
    report = outputs["validation_report"]
    result = validate(place, **options)
    records = RecordFolders(result.directory, storage.join(result.directory, layout.INDEX_FOLDER))
    named = RecordFolders(*map(name_place, records))
    page = pages.encode_missing_gallery()
    if gallery:
        page = encode_gallery(result.report, records, place=named)
    outputs["gallery_page"].write(page.encode())
    command = f"darkroom gallery {find_output(named.examples)}"
    elsewhere = f"All images and findings: the output gallery_page, or {command}."
    write_report(result.report, report.path, records, elsewhere=elsewhere if gallery else "")
    report.describe(_count_rows(result.report))
    _hand_over(execution, result, "validation", fail)


def _hand_over(execution: Execution, result: ValidationResult, name: str, fail: bool) -> None:
    """Writes the outputs of a verdict, and fails if it stops the run and was told to fail."""
    report = execution.outputs[f"{name}_report"]
    execution.copy_outputs(report.path, {f"{name}_page": REPORT_HTML})
    stopping = sum(each.policy == FAIL for each in result.findings)
    report.describe({"passed": int(result.blessed), "verdict": result.verdict})
    report.describe({"findings": len(result.findings), "stopping_findings": stopping})
    execution.results = {"passed": result.blessed}
    execution.write_output()
    if fail and not result.blessed:
        raise GateError(format_table(result.report), _KEEP_HINT.format(name))


def diff_datasets(execution: Execution) -> None:
    """Compares two datasets, and fails if something changed that must not and was told to fail."""
    places = [execution.find_dataset(name) for name in ("old", "new")]
    options = dict(execution.parameters)
    fail = options.pop("fail")
    old = None if storage.exists(storage.join(places[0], _NONE_FILE)) else places[0]
    result = diff(old, places[1], report_dir=execution.outputs["diff_report"].path, **options)
    changes = [*IMAGE_CHANGES, *(OBJECT_CHANGES if result.report.objects else ())]
    execution.outputs["diff_metrics"].write_facts(result.report.count_findings(changes))
    _hand_over(execution, result, "diff", fail)


def validation_gate(execution: Execution) -> None:
    """Fails if a report says that its dataset did not pass."""
    path = storage.join(execution.inputs["report"].path, REPORT_JSON)
    if not storage.exists(path):
        raise UsageError(
            f"The input report has no {REPORT_JSON}.",
            "Give the output validation_report of validate_dataset, or diff_report of "
            "diff_datasets.",
        )
    report = DatasetReport.from_json(storage.read_bytes(path).decode())
    execution.write_output()
    if not report.blessed:
        name = "diff" if report.title == DIFF_TITLE else "validation"
        stop = GateError(format_table(report), _PAGE_HINT.format(name))
        if webhook.find_url(execution.parameters):
            try:
                webhook.tell(execution.parameters, "STOPPED", name_uris(stop.message))
            except Exception as error:  # noqa: BLE001  nothing may take the place of the findings
                progress.note(f"Warning: {convert_error(error).message}")
        raise stop


def notify(execution: Execution) -> None:
    """Tells a webhook how a run ended. Only Vertex gives a reason."""
    status = execution.parameters["status"]
    state, error = str(status.get("state") or ""), status.get("error")
    reason = str((error.get("message") if isinstance(error, dict) else error) or "")
    webhook.tell(execution.parameters, _STATES.get(state, state or _UNKNOWN), name_uris(reason))
    execution.write_output()


def _count_rows(report: DatasetReport) -> dict[str, float]:
    return {
        "rows": report.rows,
        "records": report.written,
        "rejected": report.num_rejected,
        "deduplicated": report.deduplicated,
        **{f"{split}_records": count for split, count in report.splits.items()},
    }


def dataset_statistics(execution: Execution) -> None:
    """Counts the content of a dataset; where TFDV is installed, its statistics are beside that."""
    place, outputs = execution.find_dataset(), execution.outputs
    result = validate(place, policies=dict.fromkeys(CHECK_NAMES, OFF))
    report, folder = result.report, outputs["statistics"].path
    counts = {
        **_count_rows(report),
        "splits": dict(report.splits),
        "classes": {split: dict(each) for split, each in report.classes.items()},
        "histograms": {name: vars(each) for name, each in report.histograms.items()},
    }
    storage.make_folder(folder)
    text = json.dumps(counts, indent=2) + "\n"
    storage.write_bytes(storage.join(folder, _STATISTICS_FILE), text.encode())
    if is_installed("tensorflow_data_validation"):
        _write_tfdv(storage.join(result.directory, layout.INDEX_FOLDER), folder)
    outputs["statistics_page"].write(make_statistics_page(report).to_html().encode())
    numbers: dict[str, float] = {"labels": len(report.list_classes())}
    for name, histogram in report.histograms.items():
        numbers |= {f"{name}_least": histogram.low, f"{name}_most": histogram.high}
    outputs["statistics_metrics"].write_facts(_count_rows(report) | numbers)
    execution.write_output()


def _write_tfdv(index_dir: str, folder: str) -> None:
    """Writes TFDV's statistics of each split, in the layout of TFX's ExampleStatistics."""
    from darkroom.validation.statistics import list_splits_with_records, write_statistics

    files = find_index_files(index_dir)
    for split in list_splits_with_records(files):
        path = storage.join(folder, layout.split_folder(split), TFDV_FILE)
        storage.make_folder(os.path.dirname(path))
        write_statistics(files, split, path)


def verify_dataset(execution: Execution) -> None:
    """Reads a whole dataset, and fails if it is damaged and was told to fail."""
    result = verify(execution.find_dataset())
    if result.findings and not result.is_damaged:
        lines = format_findings(result.findings)
        raise StorageError(f"Not all could be verified:{lines}", FILE_HINTS[UNREADABLE])
    page = pages.encode_card("Verification", result)
    execution.outputs["verification_page"].write(page.encode())
    numbers = {"records": result.records, "shards": result.files, "bytes": result.bytes}
    numbers["findings"] = len(result.findings)
    execution.outputs["verification_metrics"].write_facts(numbers)
    execution.results = {"passed": result.is_sound, "fingerprint": result.fingerprint}
    execution.write_output()
    if execution.parameters["fail"] and not result.is_sound:
        lines = format_findings(result.findings)
        raise DataError(f"The dataset is damaged:{lines}", result.findings[0].hint)


def find_duplicates(execution: Execution) -> None:
    """Lists the images that are in a dataset more than once."""
    place, duplicates = execution.find_dataset(), execution.outputs["duplicates"]
    storage.make_folder(duplicates.path)
    # The folder is the task's: the files of a first try go.
    path = storage.join(duplicates.path, layout.DUPLICATES_FILE)
    found = list_duplicates(place, path, overwrite=True, near=execution.parameters["near"])
    numbers = {name: value for name, value in found.to_dict().items() if type(value) is int}
    duplicates.describe(numbers)
    execution.outputs["duplicates_page"].write(pages.encode_card("Duplicates", found).encode())
    execution.outputs["duplicates_metrics"].write_facts(numbers)
    execution.results = {
        "duplicates_uri": storage.join(duplicates.remote, layout.DUPLICATES_FILE),
        "surplus": found.surplus,
    }
    execution.write_output()


def inspect_dataset(execution: Execution) -> None:
    """Shows some records of a split on a page."""
    place, asked = execution.find_dataset(), execution.parameters
    with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
        found = inspect(
            place, asked["split"], asked["num_records"], os.path.join(scratch, "inspection")
        )
        sheet = storage.read_bytes(found.sheet) if found.sheet else None
        table = storage.read_bytes(found.csv).decode()
    page = pages.encode_inspection(asked["split"], sheet, table)
    execution.outputs["inspection_page"].write(page.encode())
    execution.write_output()
