"""Each form of image gives a model the pixels of training everywhere, or is refused.

docs/reference/stored-images.md says in a table which form is which, and the tests read that.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import darkroom
from darkroom.targets.learned import Learned
from darkroom.training.export import export_model

from ..image_forms import FORMS

pytestmark = [pytest.mark.tensorflow, pytest.mark.filterwarnings("ignore::UserWarning")]

_PAGE = Path(__file__).parents[2] / "docs/reference/stored-images.md"
_SIZE, _RESIZE = (24, 40), "center_crop"
# Of smooth pictures that were encoded twice as JPEGs.
_MOST_APART = 12
_DAMAGED = "damaged"


def _read_table() -> dict[str, list[str]]:
    """Returns what the page says of each form, in each column."""
    [table] = re.findall(r"\| form \|.*\n\| --- .*\n((?:\|.*\n)*)", _PAGE.read_text())
    rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines())
    return {form: cells for form, *cells in rows}


TABLE = _read_table()


def _list_images() -> Iterator[tuple[str, str, bytes]]:
    """Yields each image: its form, the name of its file, and its bytes."""
    for number, (form, images) in enumerate(FORMS.items()):
        for place, data in enumerate(images.values()):
            yield form, f"{number:02d}-{place:02d}.png", data


IMAGES = {name: (form, data) for form, name, data in _list_images()}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model whose answers are the pixels that it gets."""
    inputs = keras.Input((*_SIZE, 3), dtype="uint8")
    pixels = keras.layers.Flatten()(keras.layers.Rescaling(1.0)(inputs))
    folder = str(tmp_path_factory.mktemp("served") / "model")
    learned = Learned("numbers", tuple(f"{number}" for number in range(np.prod(_SIZE) * 3)))
    export_model(keras.Model(inputs, pixels), learned, _SIZE, folder, resize=_RESIZE)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for name, (_, data) in IMAGES.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def trained(files, tmp_path_factory):
    """The pixels that training gets, by name, as the model answers."""
    records = tmp_path_factory.mktemp("trained") / "records"
    with (files / "list.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("split", "image_uri", "label", "name"), *(("train", n, "a", n) for n in IMAGES)]
        )
    darkroom.convert(files / "list.csv", records, max_rejects=1)
    shown = {"image_size": _SIZE, "resize": _RESIZE}
    batches = darkroom.load(records, **shown, columns=["name"])["train"]
    return {
        name.decode(): pixels.ravel().astype(np.float32)
        for images, _, columns in batches.as_numpy_iterator()
        for name, pixels in zip(columns["name"], images, strict=True)
    }


@pytest.fixture(scope="module")
def predicted(model, files):
    """The answers of `darkroom predict`, and why images failed, by name."""
    found = darkroom.predict(model, [files / name for name in IMAGES])
    answers = {
        Path(each.path).name: np.float32([*each.values.values()]) for each in found.predictions
    }
    return answers, {Path(each.path).name: each.reason for each in found.failed}


def test_the_page_lists_the_forms_that_are_tested():
    assert list(TABLE) == list(FORMS)


def test_what_is_stored_is_predicted_as_it_was_trained_and_the_rest_is_named(trained, predicted):
    answers, failed = predicted
    assert trained.keys() == answers.keys()
    for name, (form, _) in IMAGES.items():
        stored, _ = TABLE[form]
        assert (name in trained) == (stored == "stored"), form
        if name in trained:
            np.testing.assert_array_equal(answers[name], trained[name], form)
        else:
            assert re.match(r"\w+: .", failed[name]), form


def test_a_server_sees_what_training_saw_or_refuses_the_image_alone(model, trained):
    names = [name for name, (form, _) in IMAGES.items() if form != _DAMAGED]
    serve = tf.saved_model.load(model).signatures["serving_default"]
    answer = serve(image_bytes=tf.constant([IMAGES[name][1] for name in names]))
    values, errors = answer["values"].numpy(), answer["error"].numpy()
    for name, found, error in zip(names, values, errors, strict=True):
        form, _ = IMAGES[name]
        _, said = TABLE[form]
        assert (said == "refused") == bool(error), form
        if said == "refused":
            assert np.isnan(found).all()
            assert re.fullmatch(rb"The image is .+, which this model does not read.", error)
        else:
            apart = np.abs(found - trained[name]).max()
            assert apart <= _MOST_APART * (said == "differs"), (form, name)
    for name in IMAGES.keys() - {*names}:
        assert TABLE[_DAMAGED][1] == "ends the batch"
        with pytest.raises(tf.errors.InvalidArgumentError):
            serve(image_bytes=tf.constant([IMAGES[name][1]]))
