"""Batches of each kind, of records and of files; what training says of what it cannot learn."""

from __future__ import annotations

import numpy as np
import pytest

import darkroom
from darkroom.dataset.index import find_index_files
from darkroom.errors import DataError
from darkroom.options.input import InputOptions
from darkroom.options.manifest import ManifestOptions

from .conftest import OPTIONS

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder")]

NAN = float("nan")


def read(data) -> dict[str, list]:
    """Returns what images are labelled with, sorted, by split."""
    return {
        split: sorted(
            (label.tolist() for _, labels in batches for label in labels.numpy()), key=str
        )
        for split, batches in data.items()
    }


def test_several_labels_are_a_vector_with_ones(datasets):
    data = darkroom.load(datasets["labels"], image_size=8, batch_size=5)
    assert data.labels == ("big", "red", "round")
    batch = next(iter(data["train"]))[1]
    assert (batch.dtype, batch.shape) == (np.float32, (5, 3))
    found = read(data)["eval"]
    vectors = [[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 0, 0], [1, 0, 1], [1, 1, 0]]
    assert str(found) == str([*map(list, np.array(vectors, float).tolist()), *2 * [[NAN] * 3]])


def test_numbers_are_a_vector(datasets):
    data = darkroom.load(datasets["numbers"], image_size=8)
    assert next(iter(data["train"]))[1].dtype == np.float32
    found = read(data)
    assert found["eval"] == [[number / 2, 100 - number] for number in range(24, 32)]
    assert str([1.5, NAN]) in map(str, found["train"])


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_files_give_what_their_records_give(datasets, listed, kind):
    manifest = ManifestOptions.parse(**OPTIONS[kind])
    files = darkroom.load(str(listed(kind)), image_size=8, manifest=manifest)
    records = darkroom.load(datasets[kind], image_size=8)
    found, expected = (read({"eval": data["eval"]}) for data in (files, records))
    assert str(found) == str(expected)


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_mixed_images_have_mixed_vectors(datasets, kind):
    options = InputOptions((8, 8), batch_size=4, augment="mixup=1")
    data = darkroom.load(datasets[kind], training=True, options=options)
    labels = np.concatenate([labels for _, labels in data["train"].take(6)])
    plain = np.concatenate(
        [each for _, each in darkroom.load(datasets[kind], image_size=8)["train"]]
    )
    assert labels.dtype == np.float32
    assert np.nanmin(labels) >= np.nanmin(plain)
    assert np.nanmax(labels) <= np.nanmax(plain)
    assert not np.isin(labels[~np.isnan(labels)], plain).all()


def test_datasets_of_two_kinds_are_not_one(datasets):
    with pytest.raises(DataError, match="labelled with"):
        darkroom.load(f"{datasets['labels'].parent}/*s", image_size=8)


@pytest.mark.crosses
def test_statistics_count_the_labels_of_an_image(datasets, tmp_path):
    from darkroom.validation.statistics import write_statistics

    tfdv = pytest.importorskip("tensorflow_data_validation")
    files = find_index_files(str(datasets["labels"] / "index"))
    write_statistics(files, "train", f"{tmp_path}/stats")
    [found] = tfdv.load_stats_binary(f"{tmp_path}/stats").datasets
    [values] = [each for each in found.features if each.path.step == ["image/class/text"]]
    common = values.string_stats.common_stats
    assert (common.max_num_values, common.num_missing) == (2, 6)
