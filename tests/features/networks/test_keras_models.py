"""Models of Keras and SavedModels of a user's as networks."""

from __future__ import annotations

import io
import zipfile

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

from darkroom.errors import UsageError
from darkroom.features.networks.opening import open_network

pytestmark = pytest.mark.tensorflow

_NOISE = np.random.default_rng(0).bytes(200_000)


def test_models_of_a_user_give_the_mean_of_places(tmp_path):
    pixels = keras.Input((None, None, 3), dtype="uint8")
    model = keras.Model(pixels, keras.layers.Rescaling(1 / 255)(pixels))
    model.save(tmp_path / "net.keras")
    model.export(tmp_path / "net", verbose=False)
    images = np.random.default_rng(1).integers(0, 256, (5, 224, 224, 3), np.uint8)
    networks = [open_network(str(tmp_path / name)) for name in ("net.keras", "net")]
    for network in networks:
        assert (network.image_size, network.width) == ((224, 224), 3)
        np.testing.assert_allclose(network.compute(images), images.mean((1, 2)) / 255, rtol=1e-5)
    assert len({network.identity for network in networks}) == 2


def test_another_file_is_refused(tmp_path):
    (tmp_path / "net.keras").write_bytes(b"text")
    with pytest.raises(UsageError, match=r"net\.keras is not a model that Keras"):
        open_network(str(tmp_path / "net.keras"))
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "saved_model.pb").write_bytes(b"text")
    with pytest.raises(UsageError, match="net is not a model that Keras"):
        open_network(str(tmp_path / "net"))


def _pack(members):
    """Returns an archive whose members say that they take a byte, as a forger may."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        for member in archive.infolist():
            member.file_size = 1
    return file.getvalue()


def _make_weights(size, **options):
    file = io.BytesIO()
    with h5py.File(file, "w") as weights:
        weights.create_dataset("numbers", (size,), "u1", **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"config.json": bytes(17 << 20), "noise": _NOISE}, r"config\.json takes more than 16,7"),
        ({"assets/a": bytes(18 << 20)}, "it takes more than 16,9"),
        ({"model.weights.h5": _make_weights(18 << 20, compression="gzip")}, "it takes more"),
        ({"model.weights.h5": _make_weights(1 << 50)}, "it takes more"),
    ],
)
def test_a_file_that_grows_when_it_is_unpacked_is_refused(tmp_path, monkeypatch, members, said):
    monkeypatch.setattr(keras.models, "load_model", None)
    (tmp_path / "net.keras").write_bytes(_pack(members))
    with pytest.raises(UsageError, match=rf"{said}.* without compression"):
        open_network(str(tmp_path / "net.keras"))


def test_a_server_of_image_files_is_not_a_model_of_pixels(tmp_path):
    class Server(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def serve(self, image_bytes):
            return {"scores": tf.zeros((tf.size(image_bytes), 2))}

    server = Server()
    tf.saved_model.save(server, tmp_path / "net", {"serving_default": server.serve})
    with pytest.raises(UsageError, match=r"The model net takes string \[None\], expected images"):
        open_network(str(tmp_path / "net"))
