"""Components without TFX write the records of the TFX pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..components.conftest import beam_context, convert_source, new_artifact, own_argv  # noqa: F401
from .tasks import list_files

pytestmark = pytest.mark.tfx


def test_records_and_index_are_those_of_tfx(
    cluster,
    faulty_set,
    new_artifact,  # noqa: F811
    beam_context,  # noqa: F811
):
    source = str(faulty_set.csv)
    made = convert_source(source, new_artifact, beam_context)
    done = cluster.run("convert_images", data=source, max_rejects=1.0)
    native = list_files(cluster.find(done.artifacts["dataset"]))
    tfx = list_files(Path(made["examples"].uri))
    records = [name for name in tfx if name.startswith("Split-")]
    assert len(records) >= 2
    for name in (*records, "labels.txt", "dataset.json"):
        assert native[name] == tfx[name], name
    fingerprint = made["examples"].get_string_custom_property("fingerprint")
    assert done.parameters["fingerprint"] == fingerprint
    index = list_files(Path(made["index"].uri))
    for name in (each for each in index if each.endswith(".parquet")):
        assert native[f"index/{name}"] == index[name]
