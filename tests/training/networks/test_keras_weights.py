from __future__ import annotations

import errno
import io
import zipfile

import h5py
import keras
import numpy as np
import pytest

from darkroom.errors import DataError, UsageError
from darkroom.training.networks.keras_weights import load_keras_weights

pytestmark = pytest.mark.tensorflow


def _build(units=2):
    inputs = keras.Input((3,))
    return keras.Model(inputs, keras.layers.Dense(units, name="dense")(inputs), name="own")


def _list_datasets(file):
    found = []
    file.visititems(lambda _, each: found.append(each) if isinstance(each, h5py.Dataset) else None)
    return found


@pytest.fixture(params=["w.weights.h5", "w.keras", "old.h5"])
def path(request, tmp_path):
    path = tmp_path / request.param
    model = _build()
    model.save_weights(path) if "weights" in path.name else model.save(path)
    return path


def _change(path, change):
    """Changes the weights in a file, whatever its form."""
    if path.suffix == ".h5":
        with h5py.File(path, "r+") as file:
            change(file)
        return
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    inner = io.BytesIO(members["model.weights.h5"])
    with h5py.File(inner, "r+") as file:
        change(file)
    members["model.weights.h5"] = inner.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def _replace(dataset, values):
    parent, name = dataset.parent, dataset.name.rpartition("/")[2]
    del parent[name]
    parent[name] = values


def test_weights_are_those_of_the_file(path):
    def fill(file):
        for each in _list_datasets(file):
            each[...] = 0.5

    _change(path, fill)
    model = _build()
    load_keras_weights(model, str(path))
    for each in model.get_weights():
        np.testing.assert_array_equal(each, np.full(each.shape, 0.5))


@pytest.mark.parametrize("share", [0, 0.95])
def test_a_file_that_is_cut_is_damaged(path, share):
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(DataError, match=r" is damaged: "):
        load_keras_weights(_build(), str(path))


def test_weights_of_another_network_do_not_fit(path):
    with pytest.raises(UsageError, match="do not fit own"):
        load_keras_weights(_build(3), str(path))


def test_weights_that_grow_when_they_are_unpacked_do_not_fit(path, monkeypatch):
    """Zeros take a thousandth of their bytes in HDF5, and in an archive."""
    monkeypatch.setattr(keras.Model, "load_weights", None)

    def inflate(file):
        file.create_dataset("more", (32 << 20,), "u1", compression="gzip", fillvalue=0)

    def expand():
        with pytest.raises(UsageError, match="do not fit own: it takes more than 16,777,472 bytes"):
            load_keras_weights(_build(), str(path))

    _change(path, inflate)
    assert path.stat().st_size < 100_000
    expand()
    if path.suffix == ".keras":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("model.weights.h5", bytes(32 << 20))
        expand()


def test_weights_that_are_not_finite_are_refused(path):
    def spoil(file):
        first, *_ = _list_datasets(file)
        first[...] = np.inf

    _change(path, spoil)
    with pytest.raises(DataError, match="has numbers that are not finite"):
        load_keras_weights(_build(), str(path))


def test_complex_weights_are_refused(path):
    def spoil(file):
        for each in _list_datasets(file):
            _replace(each, each[...].astype(np.complex64))

    _change(path, spoil)
    with pytest.raises(DataError, match="has complex numbers"):
        load_keras_weights(_build(), str(path))


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.EMFILE, "Too many open files"),
        ValueError("Unable to write: [Errno 28] No space left on device"),
    ],
)
def test_an_error_of_the_machine_is_not_a_damaged_file(tmp_path, error):
    class Network:
        def count_params(self):
            return 0

        def load_weights(self, place):
            raise error

    h5py.File(tmp_path / "w.h5", "w").close()
    with pytest.raises(type(error)):
        load_keras_weights(Network(), str(tmp_path / "w.h5"))
