"""Whole flows: convert from and to a store, look into the result, reject damaged images."""

from __future__ import annotations

import csv
import os
import re

import pytest

import darkroom
from darkroom import storage
from darkroom.cli import main
from darkroom.conversion.beam.versions import list_pins
from darkroom.dataset.rejects import read_rejects
from darkroom.errors import OutputError
from darkroom.options.conversion import ConversionOptions

from ..pictures import encode, make_noise
from ..trees import read_files
from .conftest import Fault

pytestmark = pytest.mark.heavy

NUM_IMAGES = 4
SHARDS = {"train": 2, "test": 1}


def make_image(seed: int) -> bytes:
    return encode(make_noise(seed, 9, 7), "JPEG")


def write_source(root: str) -> str:
    """Writes some images and a CSV beside them, and returns the path of the CSV."""
    lines = ["split,image_uri,label"]
    for number in range(NUM_IMAGES):
        uri = f"{root}/images/{number}.jpg"
        storage.write_bytes(uri, make_image(number))
        lines.append(f"{'TEST' if number % 4 == 3 else 'TRAIN'},{uri},{'ab'[number % 2]}")
    storage.write_bytes(f"{root}/images.csv", "\n".join(lines).encode())
    return f"{root}/images.csv"


@pytest.mark.parametrize("store", ["s3", pytest.param("gs", marks=pytest.mark.long)], indirect=True)
def test_a_dataset_is_converted_from_store_to_store_and_inspected(store, tmp_path):
    proxy, root = store
    source = write_source(root)
    changes: list[str] = []
    is_write = re.compile(r"(PUT|POST .*upload.*) ?.*").match
    proxy.on_request = lambda line: changes.append(line) if is_write(line) else None
    result = darkroom.convert(source, f"{root}/data", num_shards=SHARDS)
    assert result.written == NUM_IMAGES
    # The folder of the files is complete before the output names it, in the last request.
    data = result.data_dir.rpartition("/")[2]
    *before, last = [line for line in changes if "dataset.json" in line]
    assert "data/dataset.json" in last
    assert last == changes[-1]
    assert [f"data/{data}/dataset.json" in line for line in before] == [True]

    # In it, the same bytes as on a local disk.
    local = darkroom.convert(source, tmp_path / "local", num_shards=SHARDS)
    assert result.fingerprint == local.fingerprint
    expected = read_files(tmp_path / "local")
    names = storage.walk_files(result.data_dir)
    assert {name: storage.read_bytes(f"{result.data_dir}/{name}") for name in names} == expected
    assert {*storage.walk_files(f"{root}/data")} == {
        "dataset.json",
        *(f"{data}/{name}" for name in expected),
    }

    assert result.classes == local.classes == {"train": {"a": 2, "b": 1}, "test": {"b": 1}}
    judged = darkroom.validate(f"{root}/data", report_dir=f"{root}/report")
    assert [finding.check for finding in judged.findings][:1] == ["missing_splits"]
    darkroom.validate(tmp_path / "local", report_dir=tmp_path / "report")
    for name, data in read_files(tmp_path / "report").items():
        assert storage.read_bytes(f"{root}/report/{name}") == data

    seen = darkroom.inspect(f"{root}/data", n=3, output_dir=tmp_path / "seen")
    with open(seen.csv, newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3
    names = {f"{root}/images/{number}.jpg" for number in range(NUM_IMAGES)}
    assert {row["image/filename"] for row in rows} <= names | {
        f"images/{number}.jpg" for number in range(NUM_IMAGES)
    }

    # The list and its images are in the store, which says their versions.
    changes.clear()
    again = darkroom.convert(source, f"{root}/data", num_shards=SHARDS)
    assert again.already_complete
    assert again.fingerprint == result.fingerprint
    assert changes == []
    assert darkroom.convert(source, tmp_path / "local", num_shards=SHARDS).already_complete
    storage.write_bytes(f"{root}/images/0.jpg", make_image(9))
    changes.clear()
    with pytest.raises(OutputError, match=rf"{root}/data holds another dataset"):
        darkroom.convert(source, f"{root}/data", num_shards=SHARDS)
    assert changes == []
    assert os.listdir(tmp_path / "temporary") == []


def test_an_image_of_which_the_store_says_no_version_is_read_again(s3):
    source = write_source("s3://photos")
    s3.fail("HEAD /photos/images/2.jpg", 403)
    first = darkroom.convert(source, "s3://photos/data")
    assert first.written == NUM_IMAGES
    for number, is_same in [(2, True), (7, False)]:
        storage.write_bytes("s3://photos/images/2.jpg", make_image(number))
        s3.requests.clear()
        again = darkroom.convert(source, "s3://photos/data")
        assert not again.already_complete
        assert (again.fingerprint == first.fingerprint) is is_same
        assert {line for line in s3.requests if line.startswith("GET /photos/images/")} == {
            "GET /photos/images/2.jpg"
        }
    assert darkroom.verify("s3://photos/data").is_sound


def test_an_image_that_may_be_read_by_now_comes_into_a_finished_dataset(s3):
    source = write_source("s3://photos")
    s3.fail("GET /photos/images/2.jpg", 403)
    first = darkroom.convert(source, "s3://photos/data", max_rejects=0.5)
    assert first.rejected == {"permission_denied": 1}
    assert darkroom.convert(source, "s3://photos/data", max_rejects=0.5).already_complete
    s3.faults.clear()
    again = darkroom.convert(source, "s3://photos/data")
    assert (again.written, again.num_rejected) == (NUM_IMAGES, 0)


# tests/conversion/beam/test_dataflow_dry_run.py has what the job is.
@pytest.mark.long
def test_a_dry_run_of_dataflow_prints_the_job_and_writes_nothing(gs, capsys):
    apiclient = "apache_beam.runners.dataflow.internal.apiclient"
    pytest.importorskip(apiclient, reason="needs the extra [dataflow]", exc_type=ImportError)
    source = write_source("gs://photos")
    gs.requests.clear()
    place = ["--runner", "DataflowRunner", "--project", "my-project", "--region", "europe-west4"]
    options = ["--beam-option", "dry_run=true", "--beam-option", "num_workers=3"]
    code = main(["convert", source, "--output-dir", "gs://photos/data", *place, *options])
    printed = capsys.readouterr()
    assert (code, printed.out) == (
        0,
        "Submitted nothing (a dry run): 4 rows to gs://photos/data.\n",
    )
    [installed] = re.findall(r"The workers install this darkroom with (.*)\.", printed.err)
    assert installed == ", ".join(list_pins())
    [sent] = re.findall(r"Nothing was sent\. .* 2 shards with: (.*)\.", printed.err)
    assert re.search(r"\bjob_name=darkroom-[0-9a-f]{8}, .*num_workers=3, .*project=my-proj", sent)
    assert {line.split()[0] for line in gs.requests} == {"GET"}


def test_a_second_run_on_local_images_is_already_complete(s3, tmp_path):
    (tmp_path / "images").mkdir()
    for number in range(2):
        (tmp_path / "images" / f"{number}.jpg").write_bytes(make_image(number))
    rows = [f"TRAIN,images/{number}.jpg,a\n" for number in range(2)]
    source = tmp_path / "images.csv"
    source.write_text("split,image_uri,label\n" + "".join(rows))
    first = darkroom.convert(source, "s3://photos/data")
    s3.requests.clear()
    again = darkroom.convert(source, "s3://photos/data")
    assert again.already_complete
    assert again.fingerprint == first.fingerprint
    assert {line.split()[0] for line in s3.requests} <= {"GET", "HEAD"}
    # Other options mean other data, which only overwriting replaces.
    with pytest.raises(OutputError, match="holds another dataset"):
        darkroom.convert(
            source, "s3://photos/data", options=ConversionOptions(image_check="header")
        )


@pytest.mark.fault(34, "an image that gs:// or s3:// does not have", "rejected", code="`missing`")
@pytest.mark.fault(
    28, "a single image that a store refuses", "rejected", code="`permission_denied`"
)
@pytest.mark.fault(37, "an image that is cut off at the first attempt", "read again, written")
def test_missing_and_denied_images_are_rejected(s3):
    source = write_source("s3://photos")
    storage.delete("s3://photos/images/1.jpg")
    s3.fail("images/2.jpg", 403)
    s3.fail("images/0.jpg", 503, times=2)
    s3.fail("images/3.jpg", "cut", times=2)
    result = darkroom.convert(source, "s3://photos/data", max_rejects=0.5)
    assert result.num_rejected == 2
    assert result.written == NUM_IMAGES - 2
    found = {r.uri: r for r in read_rejects(f"{result.data_dir}/rejects.parquet")}
    assert found["s3://photos/images/1.jpg"].reason == "missing"
    refused = found["s3://photos/images/2.jpg"]
    assert refused.reason in ("permission_denied", "unreadable")
    assert refused.row == 3
    # Once in the check of some images before the start, once for its row.
    assert s3.count("GET /photos/images/2.jpg") <= 2


@pytest.mark.fault(
    35,
    "an image that a store repeatedly fails to return",
    "the run ends with exit code 3, without a dataset: the row is not rejected",
)
@pytest.mark.parametrize("when", ["before the start", "while shards are written"])
def test_a_store_that_is_down_rejects_no_row(s3, capsys, when):
    source = write_source("s3://photos")
    # Some images are checked first; a worker's first request looks for an earlier run's work.
    begin = "images.csv" if when == "before the start" else "/shard-"
    down = Fault("images/2.jpg", 503)
    s3.on_request = lambda line: begin not in line or s3.faults.append(down)
    code = main(["convert", source, "--output-dir", "s3://photos/data", "--json"])
    printed = capsys.readouterr().out
    assert "s3://photos/images/2.jpg failed 4 times" in printed
    assert "the store or the network, not the data" in printed
    assert code == 3
    assert not storage.exists("s3://photos/data/dataset.json")


@pytest.mark.fault(35, "a store that fails while the dataset is written", "exit code 3, no dataset")
def test_an_output_that_cannot_be_written_is_not_committed(s3, capsys):
    source = write_source("s3://photos")
    s3.fail("/Split-test/", 503)
    assert main(["convert", source, "--output-dir", "s3://photos/data", "--json"]) == 3
    printed = capsys.readouterr().out
    assert re.search("Writing s3://photos/data/data-[0-9a-f]{8}/Split-test/", printed)
    assert not storage.exists("s3://photos/data/dataset.json")


def test_a_store_that_denies_everything_is_reported_at_once(s3, capsys):
    s3.fail("photos", 403)
    assert (
        main(["convert", "s3://photos/images.csv", "--output-dir", "s3://photos/data", "--json"])
        == 3
    )
    printed = capsys.readouterr().out
    assert "may not be read or written" in printed
    assert "Check the AWS credentials" in printed
    assert len(s3.requests) == 1


@pytest.mark.parametrize(
    "first",
    [
        "data/dataset.json",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("labels.txt", "images.csv")),
    ],
)
def test_a_store_that_is_away_at_the_beginning_is_waited_for(s3, go_away, first):
    source = write_source("s3://photos")
    storage.write_bytes("s3://photos/labels.txt", b"a\nb\n")
    is_back = go_away(first)
    result = darkroom.convert(source, "s3://photos/data", label_map="s3://photos/labels.txt")
    assert result.written == NUM_IMAGES
    assert is_back()
