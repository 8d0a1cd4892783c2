"""What one part of darkroom asks of another that it does not import.

The parts share a dataset, and nothing else, so that each can be read, and kept, by itself. Where
one takes a list of images in place of a dataset, it finds what makes one by its name, here. So does
a command find what few of those who use it need: who changes the command need not read that.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# A name for what is asked, and where it is.
PLACES = {
    # Lists of images in place of a dataset.
    "write_manifest": "darkroom.manifest.writer:write_manifest",
    # Networks, for `convert --embed` alone.
    "follow_with_features": "darkroom.conversion.embed:follow_with_features",
    # Beam, for `convert --runner` alone.
    "run_job": "darkroom.conversion.beam.run:run_job",
    "check_runner": "darkroom.conversion.beam.run:check_runner",
    "DataflowJob": "darkroom.conversion.beam.dataflow:DataflowJob",
    # What is not to be as in the list, for `convert --exclude` and `--decisions` alone.
    "change_rows": "darkroom.manifest.changes:change_rows",
    "make_lasting": "darkroom.decisions.lasting:make_lasting",
    # Rows that stay together, for `--groups`, `--group-column`, `--stratify` and `--folds` alone.
    "check_placement": "darkroom.manifest.placement:check_placement",
    "place_rows": "darkroom.manifest.placement:place_rows",
    # Files for other readers, for `convert --describe` alone.
    "list_sidecars": "darkroom.sidecars.readers:list_sidecars",
    "build_sidecars": "darkroom.sidecars.readers:build_sidecars",
    "add_missing": "darkroom.conversion.describe:add_missing",
    # Annotations: a table with a row for each object, and what boxes of any list may tell.
    "ObjectRows": "darkroom.manifest.formats.object_rows:ObjectRows",
    "find_odd_groups": "darkroom.targets.boxes.odd_boxes:find_odd_groups",
    # The clients of stores: each needs an extra, and whoever has a disk needs none.
    "GcsStore": "darkroom.storage.stores.gcs:GcsStore",
    "S3Store": "darkroom.storage.stores.s3:S3Store",
    # What a notebook shows: everywhere else progress is a line, and a result a text.
    "CellProgress": "darkroom.runtime.notebook:CellProgress",
    "make_card": "darkroom.runtime.card:make_card",
    "show_records": "darkroom.images.strip:show_records",
}


def find(name: str) -> Any:
    """Returns what has a name in `PLACES`; its module is loaded by the first who asks."""
    return load_place(PLACES[name])


def load_place(place: str) -> Any:
    """Returns what is at a place, as `package.module:name`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
