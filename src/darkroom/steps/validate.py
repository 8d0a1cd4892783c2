"""Checks a dataset by its index, and says whether it is fit for training."""

from __future__ import annotations

from dataclasses import replace

from darkroom.options.validation import ValidationFields, ValidationOptions
from darkroom.steps import parts
from darkroom.steps.command import Command, Options, flag
from darkroom.steps.step import Artifact, Given, Made, Parameter, Paths, Step, take_options


def run(paths: Paths, options: Given) -> Made:
    """Judges a dataset. A command has the gallery beside the report, all others apart from it."""
    from darkroom import storage
    from darkroom.dataset.layout import INDEX_FOLDER
    from darkroom.dataset.pointer import find_output
    from darkroom.steps.pages import encode_missing_gallery
    from darkroom.steps.places import name_place
    from darkroom.steps.verdict import count_report_rows, find_parts, make_verdict
    from darkroom.validation.anomalies import read_anomalies
    from darkroom.validation.gallery.encode import encode_gallery
    from darkroom.validation.judge import judge_dataset
    from darkroom.validation.report.pictures import RecordFolders
    from darkroom.validation.report.write import write_report
    from darkroom.validation.validate import ValidationResult, validate

    detector: Given = {name: paths.get(name) for name in ("results", "annotations")}
    if not paths.keys() & {"gallery_page", "manifest"}:
        report_dir = paths.get("validation_report")
        result = validate(paths["dataset"], report_dir=report_dir, **options, **detector)
        return make_verdict(result, paths, "validation")
    has_gallery = options["gallery"]
    if "manifest" in paths:  # of TFX
        files = find_parts(paths, read_anomalies(paths["anomalies"]))
        records, report = files.records, judge_dataset(files, ValidationOptions(**options))
        result = ValidationResult(files.index_dir, report)
    else:
        result = validate(paths["dataset"], **{**options, **detector, "gallery": False})
        root, report = result.directory, result.report
        records = RecordFolders(root, storage.join(root, INDEX_FOLDER))
    page, elsewhere = encode_missing_gallery(), ""
    if has_gallery and records:
        named = RecordFolders(*map(name_place, records))
        page = encode_gallery(report, records, place=named)
        elsewhere = "All images and findings: the output gallery_html."
        if "dataset" in paths:
            command = f"darkroom gallery {find_output(named.examples)}"
            elsewhere = f"All images and findings: the output gallery_page, or {command}."
    write_report(report, paths["validation_report"], records, elsewhere=elsewhere)
    made = make_verdict(result, paths, "validation")
    facts = {"validation_report": {**count_report_rows(report), **made.facts["validation_report"]}}
    return made._replace(facts=facts, files={**made.files, "gallery_page": page.encode()})


STEP = Step(
    "validate_dataset",
    "Checks a dataset by its index, and says whether it is fit for training.",
    run,
    (
        parts.DATASET_URI,
        *take_options(ValidationFields),
        Parameter(
            "schema",
            str,
            "A schema of TFDV as text, for an image with TFX. Without one the check anomalies "
            "is off.",
            "",
            optional=True,
        ),
        parts.FAIL_PARAMETER,
    ),
    inputs=(parts.DATASET, replace(parts.RESULTS, optional=True), parts.DETECTOR_ANNOTATIONS),
    outputs=(
        Artifact(
            "validation_report",
            "Artifact",
            "The report for programs, for people and as Markdown. Its metadata has the verdict and "
            "counts.",
        ),
        Artifact("validation_page", "HTML", "The report for people.", file="report.html"),
        Artifact(
            "gallery_page",
            "HTML",
            "Findings and images to look through, and to decide about; without the option gallery "
            "a page that says so.",
            file="gallery.html",
        ),
    ),
    results=(parts.PASSED,),
    checks=(ValidationOptions,),
    command=Command(
        "validate",
        "Check the images and labels of a dataset by its index, and write the report.",
        (
            flag(
                "dataset",
                group="data",
                metavar="RECORDS",
                help="A dataset; gs:// and s3:// work",
            ),
            flag(
                "--report",
                group="data",
                dest="validation_report",
                metavar="DIR",
                help=parts.REPORT_HELP,
            ),
            parts.RESULTS_FLAG,
            parts.ANNOTATIONS_FLAG,
            Options((ValidationFields,)),
            flag(
                "--schema",
                group="checks",
                metavar="FILE",
                help="Schema of TFDV, schema.pbtxt, that the data must match; needs the extra tfx "
                "(default: anomalies are not looked for)",
            ),
        ),
        usage="darkroom validate RECORDS [options]",
        examples=(
            "darkroom validate records --report report",
            "darkroom validate records --policy leakage=warn --required-split train",
        ),
        epilog="Exit codes: 0 passed, also with warnings; 1 stopped by a finding, or not a "
        "dataset; 4 the folder of the report has other files.",
        is_quiet=True,
    ),
)
