"""Executor of ImageValidator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorflow_metadata.proto.v0 import anomalies_pb2
from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from darkroom import storage
from darkroom.dataset import layout
from darkroom.kfp.places import name_place
from darkroom.options.validation import ValidationOptions
from darkroom.validation.anomalies import list_anomalies
from darkroom.validation.gallery.encode import encode_gallery
from darkroom.validation.judge import JudgedFiles, judge_dataset
from darkroom.validation.report.dataset_report import DatasetReport
from darkroom.validation.report.findings import Anomaly
from darkroom.validation.report.pictures import RecordFolders
from darkroom.validation.report.write import GALLERY_FILE, REPORT_HTML, write_report

INDEX_KEY = "index"
REJECTS_KEY = "rejects"
MANIFEST_KEY = "manifest"
ANOMALIES_KEY = "anomalies"
EXAMPLES_KEY = "examples"
OPTIONS_KEY = "options"
REPORT_KEY = "report"
HTML_KEY = "validation_html"
GALLERY_KEY = "gallery_html"
BLESSED_KEY = "blessed"
# The name that ExampleValidator gives to the anomalies of a split.
ANOMALIES_FILE = "SchemaDiff.pb"


class Executor(base_executor.BaseExecutor):
    """Judges a dataset."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Writes the report and marks it as blessed or not.

        Args:
            input_dict: `index`: a RecordIndex; `rejects`: Rejects; `manifest`: an ImageManifest;
                `anomalies`: ExampleAnomalies; if given, `examples`: Examples.
            output_dict: `report`: a ValidationReport; `validation_html`: HTML; and with the option
                `gallery` `gallery_html`: HTML.
            exec_properties: `options`: `ValidationOptions` as JSON.
        """
        anomalies = artifact_utils.get_single_instance(input_dict[ANOMALIES_KEY])
        rejects_uri = artifact_utils.get_single_uri(input_dict[REJECTS_KEY])
        index_dir = artifact_utils.get_single_uri(input_dict[INDEX_KEY])
        records = find_record_folders(input_dict, index_dir)
        files = JudgedFiles(
            index_dir=index_dir,
            rejects_path=storage.join(rejects_uri, layout.REJECTS_FILE),
            source=artifact_utils.get_single_uri(input_dict[MANIFEST_KEY]),
            anomalies=tuple(read_anomalies(anomalies)),
            records=records,
        )
        options = ValidationOptions.from_json(exec_properties[OPTIONS_KEY])
        verdict = judge_dataset(files, options)
        write_verdict(verdict, records, output_dict, HTML_KEY, gallery=options.gallery)
        if options.gallery and records:
            place = RecordFolders(*map(name_place, records))
            page = artifact_utils.get_single_instance(output_dict[GALLERY_KEY])
            page.uri = storage.join(page.uri, GALLERY_FILE)
            storage.write_bytes(page.uri, encode_gallery(verdict, records, place=place).encode())


def find_record_folders(input_dict: dict[str, list[Any]], index_dir: str) -> RecordFolders | None:
    """Returns where the records of an index are, if a component has Examples."""
    examples = input_dict.get(EXAMPLES_KEY)
    return RecordFolders(examples[0].uri, index_dir) if examples else None


def write_verdict(
    verdict: DatasetReport,
    records: RecordFolders | None,
    output_dict: dict[str, list[Any]],
    html_key: str,
    *,
    gallery: bool = False,
) -> None:
    """Writes a report and its page, and marks it as blessed or not.

    Args:
        verdict: The report.
        records: The records with the pictures; without them they are made of the source.
        output_dict: `report`: a ValidationReport; `html_key`: HTML.
        html_key: The output for the page.
        gallery: Whether there is a gallery in an output of its own.
    """
    report = artifact_utils.get_single_instance(output_dict[REPORT_KEY])
    elsewhere = f"All images and findings: the output {GALLERY_KEY}." if gallery else ""
    write_report(verdict, report.uri, records, elsewhere=elsewhere)
    report.set_int_custom_property(BLESSED_KEY, int(verdict.blessed))
    page = artifact_utils.get_single_instance(output_dict[html_key])
    page.uri = storage.join(page.uri, REPORT_HTML)
    storage.copy_file(storage.join(report.uri, REPORT_HTML), page.uri)


def read_anomalies(artifact: Any) -> Iterator[Anomaly]:
    """Yields the anomalies in an ExampleAnomalies artifact, split by split."""
    for split in artifact_utils.decode_split_names(artifact.split_names):
        folder = artifact_utils.get_split_uri([artifact], split)
        found = anomalies_pb2.Anomalies()
        found.ParseFromString(storage.read_bytes(storage.join(folder, ANOMALIES_FILE)))
        yield from list_anomalies(split, found)
