"""Compares two datasets by their indexes, and says whether what changed may change."""

from __future__ import annotations

from darkroom.options.diff import DiffFields, DiffOptions
from darkroom.steps import parts
from darkroom.steps.command import Command, Options, flag
from darkroom.steps.step import Artifact, Given, Made, Paths, Step, take_options


def run(paths: Paths, options: Given) -> Made:
    """Compares two datasets; where there was none before, the new one passes."""
    from darkroom import storage
    from darkroom.dataset.manifest import read_manifest
    from darkroom.steps.places import NONE_FILE
    from darkroom.steps.verdict import find_parts, make_verdict
    from darkroom.validation.diff import (
        IMAGE_CHANGES,
        OBJECT_CHANGES,
        compare_datasets,
        diff,
        find_files,
    )
    from darkroom.validation.report.write import write_report
    from darkroom.validation.validate import ValidationResult

    if "manifest" in paths:  # of TFX: it names the dataset that was updated
        after, base = find_parts(paths), read_manifest(paths["manifest"]).find_base()
        before = find_files(base) if base else None
        result = ValidationResult(
            after.index_dir, compare_datasets(before, after, DiffOptions(**options))
        )
        write_report(result.report, paths["diff_report"], after.records)
    else:
        is_first = storage.exists(storage.join(paths["old"], NONE_FILE))
        old = None if is_first else paths["old"]
        result = diff(old, paths["new"], report_dir=paths.get("diff_report"), **options)
    report = result.report
    changes = [*IMAGE_CHANGES, *(OBJECT_CHANGES if report.objects else ())]
    return make_verdict(result, paths, "diff", report.count_findings(changes))


STEP = Step(
    "diff_datasets",
    "Compares two datasets by their indexes, and says whether what changed may change.",
    run,
    (parts.name_uri("old"), parts.name_uri("new"), *take_options(DiffFields), parts.FAIL_PARAMETER),
    inputs=(
        Artifact(
            "old",
            "Dataset",
            "The output previous of convert_images, or a dataset; or give old_uri. Before the "
            "first update there is none, and the new one passes.",
            optional=True,
        ),
        Artifact(
            "new",
            "Dataset",
            "The dataset that convert_images made; or give new_uri.",
            optional=True,
        ),
    ),
    outputs=(
        Artifact(
            "diff_report",
            "Artifact",
            "The report for programs, for people and as Markdown. Its metadata has the verdict.",
        ),
        parts.name_page("diff", file="report.html"),
        parts.name_metrics("diff"),
    ),
    results=(parts.PASSED,),
    checks=(DiffOptions,),
    command=Command(
        "diff",
        "Say what changed between two datasets, by their indexes.",
        (
            flag("old", group="data", metavar="OLD", help="The older dataset"),
            flag("new", group="data", metavar="NEW", help="The newer dataset"),
            flag(
                "--report", group="data", dest="diff_report", metavar="DIR", help=parts.REPORT_HELP
            ),
            Options((DiffFields,)),
        ),
        usage="darkroom diff OLD NEW [options]",
        examples=(
            "darkroom diff records-1 records-2",
            "darkroom diff records-1 records-2 --report changes --policy test_frozen=warn",
        ),
        epilog="Exit codes: 0 nothing that should not change; 1 stopped by a finding, or not a "
        "dataset; 4 the folder of the report has other files.",
        is_quiet=True,
    ),
)
