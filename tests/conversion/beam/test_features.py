"""Features by workers of Beam, which here are threads of this process."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import darkroom
from darkroom.cli import main
from darkroom.conversion import embed as embedding
from darkroom.conversion.beam import features as workers
from darkroom.dataset.checksums import list_sidecars
from darkroom.errors import (
    MissingExtraError,
    OutputError,
    StorageError,
    UsageError,
    build_missing_extra_error,
)
from darkroom.features import compute
from darkroom.features.networks.network import Network
from darkroom.options import ConversionOptions

from ...trees import read_files
from ..test_embed import SIZE, convert, made, records  # noqa: F401  fixtures

pytestmark = pytest.mark.heavy
BY_BEAM = ConversionOptions(beam_options={"direct_num_workers": 1})


class Means:
    """A network of mean colors, for client and workers.

    Attributes:
        asked: The number of images that it was asked about.
        before: Called before each batch.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.before: Callable[[], object] = lambda: None

    def open(self, model: str) -> Network:
        return Network("means", "1f", SIZE, 3, self.compute)

    def compute(self, images):
        self.before()
        self.asked += len(images)
        return images.mean((1, 2), dtype=np.float32)


@pytest.fixture(autouse=True)
def means(monkeypatch) -> Means:
    network = Means()
    monkeypatch.setattr(embedding, "open_network", network.open)
    monkeypatch.setattr(workers, "open_network", network.open)
    for name, count in {"_BATCH_IMAGES": 1, "_KEPT_IMAGES": 1, "_BATCHES_AHEAD": 0}.items():
        monkeypatch.setattr(compute, name, count)
    return network


@pytest.fixture
def table(records: Path, means: Means, tmp_path: Path) -> bytes:  # noqa: F811
    """The table that is made without Beam; nothing of it is kept."""
    shutil.copytree(records, tmp_path / "here")
    darkroom.embed(tmp_path / "here")
    shutil.rmtree(tmp_path / "cache")
    means.asked = 0
    return (tmp_path / "here/features.parquet").read_bytes()


def test_workers_make_the_same_table_and_fill_the_cache(records, table, means, capsys):  # noqa: F811
    before = read_files(records)
    command = ["embed", str(records), "--runner", "fnapirunner", "--json"]
    assert main([*command, "--beam-option", "direct_num_workers=1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["images"], found["computed"], found["undecodable"]) == (7, 7, 1)
    after = read_files(records)
    assert after.keys() - before.keys() == {"features.parquet"}
    assert after["features.parquet"] == table
    assert darkroom.verify(records).findings == ()
    assert darkroom.embed(records).computed == 0
    assert means.asked == 7


def test_a_conversion_computes_where_it_converts(tmp_path, means, monkeypatch):
    monkeypatch.setenv("DARKROOM_CACHE", str(tmp_path / "cache"))
    transforms = []

    def run(pipeline, transform, name):
        transforms.append(transform.label)
        run_transform(pipeline, transform, name)

    run_transform = embedding.run_transform
    monkeypatch.setattr(embedding, "run_transform", run)
    made = convert(tmp_path, embed=True, beam_options={"direct_num_workers": 1})  # noqa: F811
    assert transforms == ["ComputeFeatures"]
    assert list_sidecars(str(made)) == {"features.parquet", "read-as.json"}


def test_what_workers_have_computed_is_not_computed_again(records, table, means):  # noqa: F811
    before = read_files(records)

    def fill_the_disk():
        if means.asked == 4:
            raise OSError(errno.ENOSPC, "No space left on device")

    means.before = fill_the_disk
    with pytest.raises(StorageError, match=r"\.features/1f/0000\d: No space left on device"):
        darkroom.embed(records, options=BY_BEAM)
    # The dataset is as it was, but for what is done.
    assert {n: c for n, c in read_files(records).items() if n in before} == before
    assert darkroom.verify(records).findings == ()
    parts = sorted(records.glob(".features/1f/*/*.npz"))
    assert len(parts) == 4
    parts[0].write_bytes(b"damaged")
    means.before, means.asked = lambda: None, 0
    assert darkroom.embed(records, options=BY_BEAM).images == 7
    assert means.asked == 4
    after = read_files(records)
    assert (after["features.parquet"], after.keys() - before.keys()) == (
        table,
        {"features.parquet"},
    )


def test_a_conversion_deletes_what_a_killed_run_has_left(records, monkeypatch):  # noqa: F811
    def run(*arguments):
        run_transform(*arguments)
        raise KeyboardInterrupt

    run_transform = embedding.run_transform
    monkeypatch.setattr(embedding, "run_transform", run)
    with pytest.raises(KeyboardInterrupt):
        darkroom.embed(records, options=BY_BEAM)
    assert len([*records.glob(".features/1f/*/*.npz")]) == 7
    convert(records.parent, [(1, 2, 3)] * 4, overwrite=True)
    assert not (records / ".features").exists()


def test_what_another_run_deleted_is_computed_here(records, table, monkeypatch):  # noqa: F811
    def run(*arguments):
        run_transform(*arguments)
        shutil.rmtree(records / ".features/1f/00001")

    run_transform = embedding.run_transform
    monkeypatch.setattr(embedding, "run_transform", run)
    found = darkroom.embed(records, options=BY_BEAM)
    assert (found.images, found.undecodable) == (7, 1)
    assert (records / "features.parquet").read_bytes() == table


def test_a_worker_whose_folder_is_gone_ends(records, means):  # noqa: F811
    means.before = lambda: shutil.rmtree(records / ".features")
    with pytest.raises(StorageError, match=r"\.features/1f/0000\d does not exist"):
        darkroom.embed(records, options=BY_BEAM)
    assert darkroom.verify(records).findings == ()


def test_a_worker_says_what_its_image_lacks(records, monkeypatch):  # noqa: F811
    def fail(model):
        raise build_missing_extra_error(f"The model {model}", "pretrained")

    monkeypatch.setattr(workers, "open_network", fail)
    with pytest.raises(MissingExtraError, match=r"'pretrained', .* container image of the workers"):
        darkroom.embed(records, options=BY_BEAM)


def test_a_network_of_other_numbers_ends_the_workers(records, monkeypatch):  # noqa: F811
    network = Network("net", "2e", SIZE, 1, lambda images: np.full((len(images), 1), np.nan))
    monkeypatch.setattr(embedding, "open_network", lambda _: network)
    monkeypatch.setattr(workers, "open_network", lambda _: network)
    with pytest.raises(UsageError, match="net gives numbers that are not finite"):
        darkroom.embed(records, options=BY_BEAM)


def test_files_of_a_user_stop_workers_before_they_start(records, means):  # noqa: F811
    (records / ".features").mkdir()
    (records / ".features/mine").write_bytes(b"mine")
    with pytest.raises(OutputError, match=r"did not write, .*: \.features/mine"):
        darkroom.embed(records, options=BY_BEAM)
    assert (means.asked, (records / ".features/mine").read_bytes()) == (0, b"mine")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"project": "p"}, "project and region go with runner='DataflowRunner'"),
        ({"runner": "DataflowRunner", "project": "p"}, "Dataflow needs region"),
        (
            {"runner": "spark", "options": ConversionOptions(engine="flink")},
            "cannot be used together",
        ),
    ],
)
def test_flags_that_do_not_go_together_are_an_error(records, given, message):  # noqa: F811
    with pytest.raises(UsageError, match=message):
        darkroom.embed(records, **given)


def test_a_worker_with_another_model_ends(records, means, monkeypatch):  # noqa: F811
    other = Network("means", "2f", SIZE, 3, means.compute)
    monkeypatch.setattr(workers, "open_network", lambda model: other)
    with pytest.raises(StorageError, match="has another model as efficientnet-lite0"):
        darkroom.embed(records, options=BY_BEAM)
    assert means.asked == 0
