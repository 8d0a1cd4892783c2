"""Three nights on a growing list, by the components: see also tests/components/test_nightly.py.

Without `from __future__ import annotations`: kfp reads the types of a user's component as they are.
"""

import pytest
from kfp import dsl

from darkroom.kfp import make_component

from ..nights import SHARD_BYTES, Nights, check_like_from_nothing, read_shards
from .test_stories import kubeflow, list_states

pytestmark = pytest.mark.tfx

IMAGE = "registry.example.com/darkroom:1"
convert_images, diff_datasets, verify_dataset, validation_gate = (
    make_component(name, IMAGE)
    for name in ("convert_images", "diff_datasets", "verify_dataset", "validation_gate")
)
__all__ = ["kubeflow"]


@dsl.pipeline(name="nightly")
def nightly(folder: str, place: str):
    """The dataset stays in its place, and a gate stops the night."""
    made = convert_images(
        data=f"{folder}/list.csv", output_dir=f"{place}/records", update=True,
        shard_bytes=SHARD_BYTES,
    )  # fmt: skip
    changes = diff_datasets(
        old=made.outputs["previous"], new_uri=made.outputs["dataset_uri"], fail=False
    )
    gate = validation_gate(report=changes.outputs["diff_report"])
    verify_dataset(dataset=made.outputs["dataset"]).after(gate)


def test_a_pipeline_pays_for_what_changed_and_stops_when_test_changes(kubeflow, tmp_path, capfd):
    nights = Nights(tmp_path / "source")
    given = {"folder": str(nights.folder), "place": str(tmp_path / "kept")}
    dataset = tmp_path / "kept/records"
    nothing = dict.fromkeys(("added", "removed", "moved", "relabelled", "redrawn", "encoded"), 0)

    def run():
        runs = kubeflow.run(nightly, **given)
        compared = runs["diff-datasets"].outputs["diff_metrics"]["metadata"]
        return runs, {name: int(compared[name]) for name in nothing}

    nights.first()
    runs, counts = run()
    assert list_states(runs) == ["SUCCEEDED"] * 4
    assert counts == nothing
    assert runs["diff-datasets"].parameters == {"passed": True}
    uri = runs["diff-datasets"].outputs["diff_page"]["uri"]
    page = tmp_path / "buckets" / uri.replace("://", "/")
    assert "There is no earlier dataset to compare with" in page.read_text()
    first = read_shards(dataset)

    nights.second()
    runs, counts = run()
    assert list_states(runs) == ["SUCCEEDED"] * 4
    assert counts == {**nothing, "added": 2, "relabelled": 2}
    assert runs["convert-images"].parameters["rejected"] == 0
    second = read_shards(dataset)
    same = first.keys() & second.keys()
    assert len(first) - 2 <= len(same) < len(first)
    assert {name: second[name] for name in same} == {name: first[name] for name in same}

    # Nothing changed: the place is looked at, and its artifacts are new ones for the cache.
    runs, counts = run()
    assert list_states(runs) == ["SUCCEEDED"] * 4
    assert counts == nothing

    nights.third()
    runs, counts = run()
    assert counts == {**nothing, "redrawn": 1}
    assert [runs[name].state for name in ("validation-gate", "verify-dataset")] == [
        "FAILED",
        "NOT_TRIGGERED",
    ]
    said = capfd.readouterr().err
    assert "test_frozen" in said
    assert "output diff_page of the task" in said
    check_like_from_nothing(dataset, nights, tmp_path)
