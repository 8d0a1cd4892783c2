"""Keras with another backend than TensorFlow: what needs it says so, the rest does without."""

from __future__ import annotations

import sys
import types

import pytest

from darkroom.cli import main
from darkroom.errors import UsageError
from darkroom.training.devices.environment import check_backend


@pytest.fixture
def without_keras(monkeypatch, tmp_path):
    """As a process that has not imported Keras, with a home of its own."""
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("text", ["", "[]", "{", '{"epsilon": 1}', '{"backend": "tensorflow"}'])
def test_tensorflow_is_what_keras_chooses_itself(without_keras, text):
    check_backend()
    (without_keras / "keras.json").write_text(text)
    check_backend()


def test_another_backend_is_named(without_keras, monkeypatch):
    (without_keras / "keras.json").write_text('{"backend": "torch"}')
    with pytest.raises(UsageError, match="Keras has the backend torch"):
        check_backend()
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    with pytest.raises(UsageError, match="Keras has the backend jax") as caught:
        check_backend()
    assert caught.value.hint.startswith("Unset KERAS_BACKEND")
    # What is imported cannot be changed.
    config = types.SimpleNamespace(backend=lambda: "tensorflow")
    monkeypatch.setitem(sys.modules, "keras", types.SimpleNamespace(config=config))
    check_backend()


@pytest.mark.parametrize(
    "command",
    [
        ["train", "--data", "records", "--checkpoint-dir", "run"],
        ["run", "--data", "photos", "--root", "root"],
        ["demo", "--root", "root"],
    ],
)
def test_a_command_that_trains_says_what_it_needs(
    without_keras, monkeypatch, tmp_path, capsys, command
):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "Keras has the backend jax, and darkroom trains and exports with TensorFlow." in said
    assert "Traceback" not in said
    assert not list(tmp_path.iterdir())


@pytest.mark.tensorflow
def test_a_model_is_asked_without_keras(model, colors, monkeypatch, capsys):
    """Here neither Keras can be imported, nor a module of darkroom that has imported it."""
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    for name, module in [*sys.modules.items()]:
        if name == "keras" or (name.startswith("darkroom.") and hasattr(module, "keras")):
            monkeypatch.setitem(sys.modules, name, None)
    assert main(["evaluate", str(model), str(colors)]) == 0
    assert "Accuracy" in capsys.readouterr().out
    assert main(["predict", str(model), str(colors / "test")]) == 0
