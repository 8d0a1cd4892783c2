"""The components of datasets, run as Kubeflow's launcher runs them, without kfp."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import darkroom
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.index import read_index
from darkroom.decisions.lines import Decision, format_decisions
from darkroom.decisions.saved import FORM
from darkroom.options.validation import CHECK_NAMES, OFF
from darkroom.runtime import streams
from darkroom.steps.known import STEPS
from darkroom.validation import statistics

from ..html_page import Page
from ..pictures import encode, make_scene
from ..trees import read_files
from .tasks import ROOT, Artifact


@pytest.fixture
def dataset(cluster, converted_jpegs):
    """What the task of a conversion would hand over."""
    commit = read_dataset(str(converted_jpegs))
    shards = [converted_jpegs / shard.file for shard in commit.shards]
    metadata = {
        "fingerprint": commit.fingerprint,
        "records": 40,
        "shards": len(shards),
        "bytes": sum(path.stat().st_size for path in shards),
    }
    made = Artifact(f"{ROOT}/convert/1/dataset", metadata)
    shutil.copytree(converted_jpegs, cluster.find(made))
    return made


def test_a_conversion_writes_what_the_core_writes(cluster, faulty_set, tmp_path):
    done = cluster.run("convert_images", data=str(faulty_set.csv), max_rejects=0.5, seed=3)
    here = darkroom.convert(faulty_set.csv, tmp_path / "here", max_rejects=0.5, seed=3)
    found = read_files(cluster.find(done.artifacts["dataset"]))
    expected = read_files(tmp_path / "here")
    # Hashes of files that name the images, and so this machine, are in this file.
    assert found.keys() == expected.keys()
    assert found == expected
    assert done.parameters == {
        "dataset_uri": done.artifacts["dataset"].uri.replace("minio://", "s3://"),
        "rows": 47,
        "written": here.written,
        "rejected": here.num_rejected,
        "fingerprint": here.fingerprint,
    }
    assert (here.written, here.num_rejected, here.deduplicated) == (39, 7, 1)
    assert done.artifacts["dataset"].metadata == {
        "fingerprint": here.fingerprint,
        "rows": 47,
        "records": 39,
        "rejected": 7,
        "deduplicated": 1,
        "labels": 3,
        "shards": here.shards,
        "bytes": sum(len(data) for name, data in found.items() if name.startswith("Split-")),
        "train_records": here.splits["train"],
        "eval_records": here.splits["eval"],
        "test_records": 0,
    }
    rejects = cluster.find(done.artifacts["rejects"])
    assert read_files(rejects).keys() == {"rejects.parquet", "rejects.jsonl"}
    lines = [json.loads(line) for line in (rejects / "rejects.jsonl").read_text().splitlines()]
    assert len(lines) == pq.read_table(rejects / "rejects.parquet").num_rows == 7
    assert done.artifacts["rejects"].metadata == {"rejected": 7, **here.rejected}
    summary = cluster.find(done.artifacts["summary"]).read_text()
    assert summary.startswith(f"# 39 records in {here.shards} shards\n")
    assert "| Rejected | 7 |" in summary
    # KFP's UI shows two tables without a heading between them as one.
    assert "|\n\n## Splits and classes\n\n| label | train |" in summary
    assert "| cat | " in summary
    assert "gone.jpg" in summary


def test_a_summary_says_which_decisions_were_applied(cluster, jpeg_set, converted_jpegs, tmp_path):
    row = read_index(f"{converted_jpegs}/index").to_pylist()[0]
    applied = Decision(action="drop", key=row["key"], sha256=row["sha256"])
    path = tmp_path / "decisions.jsonl"
    path.write_bytes(
        format_decisions([applied, Decision(action="move", split="eval", key="0" * 32)])
    )
    done = cluster.run("convert_images", data=str(jpeg_set.csv), decisions=str(path))
    summary = cluster.find(done.artifacts["summary"]).read_text()
    assert "| Decisions: drop | 1 |\n| Decisions: gone | 1 |\n" in summary
    assert "| Decisions: move" not in summary


def test_a_summary_counts_objects(cluster, jpeg_set, tmp_path):
    boxes = [{"label": "cat", "box": [0, 0, 4, 4]}, {"label": "dog", "box": [0, 0, 4, 999]}]
    image = next(jpeg_set.csv.parent.rglob("*.jpg"))
    path = tmp_path / "boxes.jsonl"
    path.write_text(json.dumps({"image_uri": str(image), "objects": boxes}))
    done = cluster.run("convert_images", data=str(path), max_rejects=1)
    summary = cluster.find(done.artifacts["summary"]).read_text()
    assert "| Objects in | 2 |\n| Objects written | 1 |\n| Objects cut" in summary
    assert "| Objects rejected: outside\\_image | 1 |\n" in summary
    assert "is not inside the image" in summary
    assert done.artifacts["dataset"].metadata["objects"] == 1
    assert done.artifacts["rejects"].metadata["rejected_objects"] == 1


def test_a_training_on_boxes_names_the_component_for_them_before_it_loads_tensorflow(
    cluster, jpeg_set, tmp_path, monkeypatch
):
    images, path = sorted(jpeg_set.csv.parent.rglob("*.jpg"))[:2], tmp_path / "boxes.jsonl"
    boxes = [{"label": "cat", "box": [0, 0, 4, 4]}]
    lines = [
        json.dumps({"image_uri": str(image), "objects": boxes, "split": split})
        for image, split in zip(images, ("train", "eval"), strict=True)
    ]
    path.write_text("\n".join(lines))
    dataset = cluster.run("convert_images", data=str(path)).artifacts["dataset"]
    monkeypatch.setattr(streams, "quiet_tensorflow", lambda: pytest.fail("TensorFlow was loaded"))
    done = cluster.run("train_classifier", {"dataset": dataset})
    assert (done.code, done.error["code"]) == (1, "data")
    assert "The images are labelled with boxes" in done.error["message"]
    assert "train_with_function" in done.error["hint"]


def test_decisions_of_a_gallery_go_into_the_next_run_night_after_night(cluster, jpeg_set, tmp_path):
    path = tmp_path / "decisions.jsonl"
    path.touch()
    given = {"data": str(jpeg_set.csv), "output_dir": str(tmp_path / "photos"), "update": True}
    for night in range(3):
        done = cluster.run("convert_images", **given, decisions=str(path))
        assert done.parameters["written"] == 40 - night
        judged = cluster.run(
            "validate_dataset", {"dataset": done.artifacts["dataset"]}, gallery=True
        )
        page = Page(cluster.find(judged.artifacts["gallery_page"]).read_text())
        facts = page.blocks["facts"]
        assert facts["place"] == {"records": str(tmp_path / "photos")}
        # As the page makes it in a frame, to be added to the file.
        line = {"form": FORM, "dataset": facts["fingerprint"], **facts["place"]}
        line["decisions"] = [{"action": "drop", "places": [night]}]
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def test_options_reach_the_conversion(cluster, jpeg_set, tmp_path):
    labels = tmp_path / "labels.txt"
    labels.write_text("owl\ndog\ncat\n")
    done = cluster.run(
        "convert_images",
        data=str(jpeg_set.csv),
        label_map=str(labels),
        columns={"split": "split", "image_uri": "image", "label": "string_label"},
        allowed_roots=[str(jpeg_set.folder)],
        num_shards=2,
        resize_short_side=4,
        compression="gzip",
        exclude="",  # as a pipeline carries none
    )
    found = read_files(cluster.find(done.artifacts["dataset"]))
    assert found["labels.txt"] == b"owl\ndog\ncat\n"
    assert "Split-train/data_tfrecord-00001-of-00002.gz" in found
    commit = json.loads(found["dataset.json"])
    assert commit["written"] == 40
    index = pq.read_table(cluster.find(done.artifacts["dataset"]) / "index").to_pylist()
    assert {min(row["height"], row["width"]) for row in index} == {4}


def test_a_conversion_with_too_many_rejects_names_them_and_fails(cluster, faulty_set):
    done = cluster.run("convert_images", data=str(faulty_set.csv))
    assert done.code == 1
    assert done.error["code"] == "data"
    assert done.error["component"] == "convert_images"
    assert done.error["message"].startswith("7 of 47 rows were rejected, more than the 1.00%")
    assert "gone.jpg" in done.error["message"]


def test_a_dataset_in_a_folder_of_the_users_is_found_by_its_artifact(cluster, jpeg_set, tmp_path):
    place = tmp_path / "kept"
    first = cluster.run("convert_images", data=str(jpeg_set.csv), output_dir=str(place))
    dataset = first.artifacts["dataset"]
    named = f"{place}#{first.parameters['fingerprint']}"
    assert first.parameters["dataset_uri"] == dataset.metadata["location"] == named
    assert read_files(cluster.find(dataset)).keys() == {"dataset.json"}
    verified = cluster.run("verify_dataset", {"dataset": dataset})
    assert verified.parameters == {"passed": True, "fingerprint": first.parameters["fingerprint"]}
    again = cluster.run("convert_images", data=str(jpeg_set.csv), output_dir=str(place))
    assert again.parameters == first.parameters
    for uri in (named, str(place)):
        assert cluster.run("verify_dataset", dataset_uri=uri).parameters == verified.parameters


def test_a_task_reads_only_the_dataset_that_it_was_told_of(cluster, jpeg_set, tmp_path):
    place = str(tmp_path / "kept")
    values = {"data": str(jpeg_set.csv), "output_dir": place, "overwrite": True}
    first, second = (cluster.run("convert_images", **values, seed=seed) for seed in (1, 2))
    fingerprints = [each.parameters["fingerprint"] for each in (first, second)]
    names = [name for name in STEPS if name.endswith("_dataset")]
    refused = [
        cluster.run(name, {"dataset": first.artifacts["dataset"]})
        for name in (*names, "dataset_statistics", "find_duplicates")
    ]
    by_uri = {"dataset_uri": first.parameters["dataset_uri"]}
    for done in (*refused, cluster.run("verify_dataset", **by_uri)):
        assert (done.code, done.error["code"]) == (3, "environment"), done.error
        assert all(each in done.error["message"] for each in (place, *fingerprints))
        assert "caching off" in done.error["hint"]
    assert cluster.run("verify_dataset", {"dataset": second.artifacts["dataset"]}).code == 0


def test_an_artifact_with_the_files_of_another_dataset_is_not_read(cluster, jpeg_set, tmp_path):
    first = cluster.run("convert_images", data=str(jpeg_set.csv)).artifacts["dataset"]
    shutil.rmtree(cluster.find(first))
    darkroom.convert(jpeg_set.csv, cluster.find(first), seed=2)
    done = cluster.run("validate_dataset", {"dataset": first})
    assert (done.code, done.error["code"]) == (3, "environment")
    assert first.metadata["fingerprint"] in done.error["message"]
    assert first.uri in done.error["message"]


def test_a_dataset_that_passes(cluster, dataset):
    done = cluster.run("validate_dataset", {"dataset": dataset})
    assert done.parameters == {"passed": True}
    report = cluster.find(done.artifacts["validation_report"])
    found = json.loads((report / "report.json").read_text())
    assert (found["blessed"], found["written"]) == (True, 40)
    passed = cluster.run("validation_gate", {"report": done.artifacts["validation_report"]})
    assert (passed.code, passed.parameters) == (0, {})
    assert passed.artifacts.keys() == {"executor-logs"}  # Kubeflow's own
    page = cluster.find(done.artifacts["validation_page"])
    assert page.read_bytes() == (report / "report.html").read_bytes()
    # Each output has a file, so that another task can take it.
    gallery = cluster.find(done.artifacts["gallery_page"]).read_text()
    assert "No gallery was asked for" in gallery
    assert "gallery" not in page.read_text()
    # Of each class there are 32 images or fewer, so nothing but a warning is found.
    assert done.artifacts["validation_report"].metadata == {
        "passed": 1, "verdict": found_verdict(found),
        "rows": 40, "records": 40, "rejected": 0, "deduplicated": 0,
        "train_records": 32, "eval_records": 8,
        "findings": len(found["findings"]), "stopping_findings": 0,
    }  # fmt: skip


def found_verdict(report):
    return "passed with warnings" if report["findings"] else "passed"


def test_a_finding_stops_or_is_an_output(cluster, dataset):
    kept = cluster.run("validate_dataset", {"dataset": dataset}, min_class_images=20.0,
                       policies={"small_classes": "fail"}, fail=False, gallery=True)  # fmt: skip
    assert kept.code == 0
    assert kept.parameters == {"passed": False}
    facts = kept.artifacts["validation_report"].metadata
    assert (facts["passed"], facts["verdict"], facts["stopping_findings"]) == (0, "stopped", 1)
    page = cluster.find(kept.artifacts["validation_page"]).read_text()
    assert "Stopped" in page
    where = f"darkroom gallery {dataset.uri.replace('minio://', 's3://')}."
    assert f"All images and findings: the output gallery_page, or {where}" in page
    gallery = cluster.find(kept.artifacts["gallery_page"]).read_text()
    # The name by which the next run finds the dataset.
    assert f'"place":{{"records":"{where.split()[-1][:-1]}"}}' in gallery
    report = cluster.find(kept.artifacts["validation_report"])
    assert "gallery.html" not in {path.name for path in report.iterdir()}
    stopped = cluster.run("validate_dataset", {"dataset": dataset}, min_class_images=20,
                          policies={"small_classes": "fail"})  # fmt: skip
    assert (stopped.code, stopped.error["code"]) == (1, "data")
    # The text comes before the line of JSON.
    lines = [each for text in stopped.error.values() for each in str(text).splitlines()]
    assert {*stopped.printed[-4:-1]} <= {*lines}
    assert json.loads(stopped.printed[-1]) == {"error": stopped.error}
    assert "small_classes" in stopped.error["message"]
    assert "20" in stopped.error["message"]
    assert "fail=False" in stopped.error["hint"]
    gate = cluster.run("validation_gate", {"report": kept.artifacts["validation_report"]})
    assert (gate.code, gate.error["code"]) == (1, "data")
    assert gate.error["message"] == stopped.error["message"]
    assert gate.error["hint"] == "The report: output validation_page of the task that made it."


def test_a_gate_names_the_output_that_it_needs(cluster, dataset):
    gate = cluster.run("validation_gate", {"report": dataset})
    assert (gate.code, gate.error["message"]) == (2, "The input report has no report.json.")
    assert gate.error["hint"] == (
        "Give the output validation_report of validate_dataset, or diff_report of diff_datasets."
    )


def test_what_an_update_changed_stops_the_task(cluster, jpeg_set, tmp_path):
    """tests/kfp/test_nightly.py has the pipeline; tests/conversion/test_updates.py the update."""
    place = {"data": str(jpeg_set.csv), "output_dir": str(tmp_path / "kept"), "update": True}
    first = cluster.run("convert_images", **place)
    assert read_files(cluster.find(first.artifacts["previous"])).keys() == {"no-dataset.txt"}
    removed = jpeg_set.rows.pop()
    assert jpeg_set.csv.exists()  # it is written with its rows of now
    second = cluster.run("convert_images", **place)
    previous = second.artifacts["previous"]
    assert previous.metadata["fingerprint"] == first.parameters["fingerprint"]
    kept = read_files(cluster.find(previous))
    assert "dataset.json" in kept
    assert not [name for name in kept if name.startswith("Split-")]
    given = {"old": previous, "new": second.artifacts["dataset"]}
    passed = cluster.run("diff_datasets", given, policies={"class_loss": "off"})
    assert passed.parameters == {"passed": True}
    assert passed.artifacts["diff_metrics"].metadata["removed"] == 1
    page = cluster.find(passed.artifacts["diff_page"]).read_text()
    assert removed[1] in page
    stopped = cluster.run("diff_datasets", given, max_class_loss=0.0)
    assert (stopped.code, stopped.error["code"]) == (1, "data")
    assert "class_loss" in stopped.error["message"]
    assert stopped.error["hint"].endswith("validation_gate with the output diff_report.")


def test_an_update_needs_the_place_of_the_dataset(cluster, jpeg_set):
    done = cluster.run("convert_images", data=str(jpeg_set.csv), update=True)
    assert (done.code, done.error["code"]) == (2, "usage")
    assert done.error["message"] == (
        "update replaces the dataset in output_dir, and none is given."
    )


def test_statistics_are_those_of_the_report(cluster, dataset, monkeypatch):
    # Where TFDV is installed, its statistics are there, too. They take seconds.
    monkeypatch.setattr("darkroom.steps.statistics.is_installed", lambda _: True)
    monkeypatch.setattr(
        statistics, "write_statistics", lambda _, split, path: Path(path).write_text(split)
    )
    done = cluster.run("dataset_statistics", {"dataset": dataset})
    folder = cluster.find(done.artifacts["statistics"])
    for split in ("train", "eval"):
        assert (folder / f"Split-{split}/FeatureStats.pb").read_text() == split
    counts = json.loads((folder / "statistics.json").read_text())
    policies = dict.fromkeys(CHECK_NAMES, OFF)
    report = darkroom.validate(cluster.find(dataset), policies=policies).report
    assert counts["splits"] == report.splits == {"train": 32, "eval": 8}
    assert counts["classes"] == report.classes
    assert counts["histograms"]["height"]["counts"] == [40]
    page = cluster.find(done.artifacts["statistics_page"]).read_text()
    assert "Content of the dataset" in page
    assert "<td>owl</td>" in page
    assert "Passed" not in page
    numbers = done.artifacts["statistics_metrics"].metadata
    assert (numbers["labels"], numbers["height_least"], numbers["height_most"]) == (3, 9.0, 9.0)


def test_a_sound_dataset(cluster, dataset):
    done = cluster.run("verify_dataset", {"dataset": dataset})
    fingerprint = dataset.metadata["fingerprint"]
    assert done.parameters == {"passed": True, "fingerprint": fingerprint}
    page = cluster.find(done.artifacts["verification_page"]).read_text()
    assert "The dataset is sound" in page
    assert f"<td>{dataset.uri} is sound</td>" in page
    metrics = done.artifacts["verification_metrics"].metadata
    counts = {name: dataset.metadata[name] for name in ("records", "shards", "bytes")}
    assert metrics == {**counts, "findings": 0}


def test_a_damaged_dataset(cluster, dataset):
    shard = next((cluster.find(dataset) / "Split-eval").iterdir())
    shard.write_bytes(shard.read_bytes()[:-3])
    kept = cluster.run("verify_dataset", {"dataset": dataset}, fail=False)
    assert kept.parameters["passed"] is False
    assert shard.name in cluster.find(kept.artifacts["verification_page"]).read_text()
    stopped = cluster.run("verify_dataset", {"dataset": dataset})
    assert stopped.code == 1
    assert shard.name in stopped.error["message"]
    (cluster.find(dataset) / "dataset.json").write_text("{}")
    kept = cluster.run("verify_dataset", {"dataset": dataset}, fail=False)
    assert (kept.code, kept.parameters["passed"]) == (0, False)


def test_duplicates_are_a_list_for_the_next_conversion(cluster, jpeg_set):
    first = (jpeg_set.folder / "00.jpg").read_bytes()
    jpeg_set.add("TRAIN", "again.jpg", "cat", first)
    made = cluster.run("convert_images", data=str(jpeg_set.csv)).artifacts["dataset"]
    done = cluster.run("find_duplicates", {"dataset": made})
    path = cluster.find(done.artifacts["duplicates"]) / "duplicates.parquet"
    assert {row["uri"].rpartition("/")[2] for row in pq.read_table(path).to_pylist()} == {
        "00.jpg",
        "again.jpg",
    }
    uri = done.artifacts["duplicates"].uri.replace("minio://", "s3://")
    assert done.parameters == {"duplicates_uri": f"{uri}/duplicates.parquet", "surplus": 1}
    assert done.artifacts["duplicates_metrics"].metadata["surplus"] == 1
    assert "again.jpg" in cluster.find(done.artifacts["duplicates_page"]).read_text()
    without = cluster.run("convert_images", data=str(jpeg_set.csv), exclude=str(path))
    assert without.parameters["written"] == 40


def test_images_that_look_alike_are_in_one_split_of_the_next_conversion(cluster, tmp_path):
    (tmp_path / "a").mkdir()
    for number in range(12):
        data = encode(make_scene(number % 6), "JPEG", quality=90 - number)
        (tmp_path / f"a/{number}.jpg").write_bytes(data)
    made = cluster.run("convert_images", data=str(tmp_path)).artifacts["dataset"]
    done = cluster.run("find_duplicates", {"dataset": made}, near=True)
    groups = cluster.find(done.artifacts["duplicates"]) / "duplicates.parquet"
    again = cluster.run("convert_images", data=str(tmp_path), groups=str(groups))
    rows = read_index(str(cluster.find(again.artifacts["dataset"]) / "index")).to_pylist()
    splits = {row["id"]: row["split"] for row in rows}
    assert [splits[f"a/{n}.jpg"] for n in range(6)] == [splits[f"a/{n}.jpg"] for n in range(6, 12)]


def test_the_first_records_are_shown(cluster, dataset):
    done = cluster.run("inspect_dataset", {"dataset": dataset}, split="val", num_records=3)
    page = cluster.find(done.artifacts["inspection_page"]).read_text()
    assert "A sample of val: 3 records" in page
    assert "data:image/png;base64," in page
    assert page.count("<tr>") == 4


def test_files_that_the_store_has_lost_are_named(cluster):
    gone = Artifact("minio://mlpipeline/v2/artifacts/images/run-0/convert/1/dataset")
    done = cluster.run("verify_dataset", {"dataset": gone})
    assert (done.code, done.error["code"]) == (3, "environment")
    assert done.error["message"] == (f"The store no longer has any file of the input {gone.uri}.")


@pytest.mark.parametrize("lost", ["Split-eval", "dataset.json"])
def test_files_of_a_dataset_that_the_store_has_lost_are_named(cluster, dataset, lost):
    path = cluster.find(dataset) / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    done = cluster.run("validate_dataset", {"dataset": dataset})
    assert (done.code, done.error["code"]) == (3, "environment")
    assert done.error["message"].startswith(
        f"The store no longer has all files of the input {dataset.uri}: {lost}"
    )
    assert done.error["hint"].startswith("Run again with caching off to make it again")
