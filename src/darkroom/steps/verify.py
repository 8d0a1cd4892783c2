"""Reads a whole dataset and compares every byte with its commit."""

from __future__ import annotations

from darkroom.steps import parts
from darkroom.steps.command import Command
from darkroom.steps.step import Given, Made, Parameter, Paths, Step


def run(paths: Paths, options: Given) -> Made:
    """Verifies a dataset.

    Raises:
        StorageError: Nothing is wrong, but not all could be read.
    """
    from darkroom.errors import DataError, StorageError
    from darkroom.proof.findings import FILE_HINTS, UNREADABLE, format_findings
    from darkroom.proof.verify import verify

    found = verify(paths["dataset"])
    lines = format_findings(found.findings)
    if found.findings and not found.is_damaged:
        raise StorageError(f"Not all could be verified:{lines}", FILE_HINTS[UNREADABLE])
    counts = found.records, found.files, found.bytes, len(found.findings)
    numbers = dict(zip(("records", "shards", "bytes", "findings"), counts, strict=True))
    error = None
    if found.findings:
        error = DataError(f"Found in {found.directory}:{lines}", found.findings[0].hint)
    return Made(found, numbers, results={"fingerprint": found.fingerprint}, error=error)


STEP = Step(
    "verify_dataset",
    "Reads a whole dataset, and compares every byte with its commit.",
    run,
    (parts.DATASET_URI, parts.FAIL_PARAMETER),
    inputs=(parts.DATASET,),
    outputs=(parts.name_page("verification", "Verification"), parts.name_metrics("verification")),
    results=(parts.PASSED, Parameter("fingerprint", str, "Fingerprint of the dataset.")),
    command=Command(
        "verify",
        "Read a whole dataset and compare every byte with its commit.",
        (parts.DATASET_FLAG,),
        page="guides/verify",
        epilog="Exit codes: 0 sound, 1 damaged or not a dataset, 3 nothing exists there, or "
        "something cannot be read.",
    ),
)
