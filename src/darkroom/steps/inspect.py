"""Shows some records of a split, a random sample, with their labels."""

from __future__ import annotations

import os
import tempfile

from darkroom.steps import parts
from darkroom.steps.step import Given, Made, Parameter, Paths, Step


def run(paths: Paths, options: Given) -> Made:
    """Shows some records of a split on a page."""
    from darkroom import storage
    from darkroom.audit.contact_sheet import inspect
    from darkroom.steps.pages import encode_inspection

    with tempfile.TemporaryDirectory(prefix="darkroom-") as scratch:
        folder = os.path.join(scratch, "inspection")
        found = inspect(paths["dataset"], options["split"], options["num_records"], folder)
        sheet = storage.read_bytes(found.sheet) if found.sheet else None
        table = storage.read_bytes(found.csv).decode()
    page = encode_inspection(options["split"], sheet, table)
    return Made(found, files={"inspection_page": page.encode()})


STEP = Step(
    "inspect_dataset",
    "Shows some records of a split, a random sample, with their labels.",
    run,
    (
        parts.DATASET_URI,
        Parameter("split", str, "Split to show: train, eval or test.", "train"),
        Parameter("num_records", int, "Number of records.", 32),
    ),
    inputs=(parts.DATASET,),
    outputs=(parts.name_page("inspection"),),
)
