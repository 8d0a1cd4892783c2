"""`darkroom predict`: what a server would say of new images, as a source for a conversion."""

from __future__ import annotations

import csv
import json
from contextlib import nullcontext

import numpy as np
import pytest

import darkroom
from darkroom.cli import main
from darkroom.errors import DataError
from darkroom.evaluation import predict as module
from darkroom.evaluation.predict import (
    FailedImage,
    Predictions,
    encode_predictions,
    list_image_files,
)
from darkroom.evaluation.scores.serving import load_model
from darkroom.runtime import streams
from darkroom.targets.label.scoring import LabelPrediction

from ..pictures import encode
from .conftest import write_pictures

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def new(tmp_path):
    rows = {"sub/a.png": "red", "b.PNG": "blue", "sub/c, d.png": "green"}
    folder = write_pictures(tmp_path / "new", rows)
    (folder / "notes.txt").write_text("no image")
    return folder


def test_each_image_gets_the_label_that_a_server_answers(model, new):
    import tensorflow as tf

    found = darkroom.predict(model, new)
    labels = {each.path.removeprefix(f"{new}/"): each.label for each in found.predictions}
    assert labels == {"b.PNG": "blue", "sub/a.png": "red", "sub/c, d.png": "green"}
    served = tf.saved_model.load(str(model)).signatures["serving_default"]
    for each in found.predictions:
        with open(each.path, "rb") as file:
            answer = served(image_bytes=tf.constant([file.read()]))
        assert each.label == answer["label"].numpy()[0].decode()
        assert each.score == pytest.approx(float(answer["score"][0]), rel=1e-6)
    assert (found.failed, found.output) == ((), None)


def test_the_file_is_a_source_for_a_conversion(model, new, tmp_path, capsys):
    output = new / "predicted.csv"
    command = ["predict", str(model), str(new), "--output", str(output)]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "Predicted  3 of 3 images  (blue 1, red 1, green 1)" in said
    assert f"Written    {output}" in said
    result = darkroom.convert(output, tmp_path / "records", split_ratios="100/0/0")
    assert (result.written, list(result.labels)) == (3, ["blue", "green", "red"])
    assert darkroom.evaluate(model, tmp_path / "records", split="train").accuracy == 1.0
    # The file is not an image, and is replaced only when that is asked for.
    before = output.read_bytes()
    output.write_bytes(b"mine")
    assert main(command) == 4
    assert f"{output} exists already." in capsys.readouterr().err
    assert output.read_bytes() == b"mine"
    assert main([*command, "--overwrite"]) == 0
    assert output.read_bytes() == before


def test_the_form_of_the_lines():
    found = [
        LabelPrediction("/a/b/c.png", "naïve, cat", 0.1234567),
        LabelPrediction("/x/y.png", "d", 1.0),
    ]
    lines = encode_predictions("/a/p.csv", found, ".6f").decode().splitlines()
    assert list(csv.reader(lines)) == [
        ["image_uri", "label", "score"],
        ["b/c.png", "naïve, cat", "0.123457"],
        ["/x/y.png", "d", "1.000000"],
    ]
    objects = encode_predictions("/a/p.JSONL", found, ".6f").decode().splitlines()
    assert json.loads(objects[0]) == {
        "image_uri": "b/c.png",
        "label": "naïve, cat",
        "score": 0.123457,
    }


def test_images_that_a_conversion_rejects_are_counted_and_named(model, new, capsys):
    (new / "broken.png").write_bytes(encode(np.zeros((9, 9, 3), np.uint8))[:40])
    (new / "broken.gif").write_bytes(encode(np.zeros((9, 9, 3), np.uint8), "GIF")[:20])
    (new / "page.bmp").write_bytes(b"<!doctype html>")
    (new / "empty.jpg").write_bytes(b"")
    blue = np.full((9, 9, 3), (0, 0, 255), np.uint8)
    (new / "scan.tif").write_bytes(encode(blue, "TIFF"))
    assert main(["predict", str(model), str(new), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    reasons = {each["path"].removeprefix(f"{new}/"): each["reason"] for each in found["failed"]}
    assert reasons == {
        "broken.gif": "undecodable: its header is not one of GIF, or is damaged",
        "broken.png": "truncated: it ends early",
        "empty.jpg": "empty: the file has no bytes",
        "page.bmp": "not_an_image: it looks like HTML",
    }
    # A server reads no TIFF.
    assert [each["label"] for each in found["predictions"]] == ["blue", "blue", "red", "green"]
    assert main(["predict", str(model), str(new)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(f"  blue  {new}/b.PNG")
    assert lines[4].startswith(f"Failed     {new}/broken.gif: undecodable: its header")


def test_batches_do_not_change_the_answers(model, new, monkeypatch):
    (new / "broken.png").write_bytes(b"no")
    whole = darkroom.predict(model, new)
    for size in (1, 2):
        monkeypatch.setattr(module, "_BATCH_SIZE", size)
        parts = darkroom.predict(model, new)
        assert parts.failed == whole.failed
        assert [each.label for each in parts.predictions] == [
            each.label for each in whole.predictions
        ]


def test_what_is_named_several_times_is_one_image(new):
    paths = [f"{new}/sub", f"{new}/sub/a.png", f"{new}/**/*.png", f"{new}/b.PNG"]
    names = [path.removeprefix(f"{new}/") for path in list_image_files(paths)]
    assert names == ["sub/a.png", "sub/c, d.png", "b.PNG"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["{new}/no.png"], 3, "The image {new}/no.png does not exist."),
        (["{new}/*.gif"], 1, "{new}/*.gif names no file with an image's ending."),
        (["{new}/notes.txt"], 1, "None of 1 image can be used: {new}/notes.txt (not_an_image"),
        (["{new}", "--output", "{new}/x.txt"], 2, "expected a name that ends in .csv or .jsonl"),
        (["{new}", "--output", "{new}/mine.csv"], 4, "{new}/mine.csv exists already."),
    ],
)
def test_what_cannot_be_predicted(model, new, capsys, arguments, code, message):
    (new / "mine.csv").write_text("mine")
    assert main(["predict", str(model), *(each.format(new=new) for each in arguments)]) == code
    assert message.format(new=new) in capsys.readouterr().err
    assert (new / "mine.csv").read_text() == "mine"


def test_a_name_that_is_not_utf_8_is_a_failed_image(model, new):
    import os

    odd = os.fsencode(str(new)) + b"/\xff.png"
    with open(odd, "wb") as file:
        file.write((new / "b.PNG").read_bytes())
    found = darkroom.predict(model, new)
    assert len(found.predictions) == 3
    assert [each.reason for each in found.failed] == ["not named in UTF-8"]


def test_a_notebook_shows_the_first_ones_without_markup_of_the_user():
    rows = tuple(LabelPrediction(f"/{n}<b>.png", "<i>cat", 0.5) for n in range(30))
    found = Predictions("m", rows, (FailedImage("/<u>.png", "damaged"),))
    page = found._repr_html_()
    assert "30 predictions" in page
    assert "and 20 more" in page
    assert not any(each in page for each in ("<b>", "<i>cat", "<u>"))
    many = Predictions("m", rows[:1], tuple(FailedImage(f"{n}", "x") for n in range(12)), "f.csv")
    assert "Failed     and 2 more" in many.to_text()


def test_tensorflow_is_loaded_without_its_lines_about_this_machine(monkeypatch):
    # A notebook shows all that is written to the standard error of its process.
    asked = []
    monkeypatch.setattr(streams, "quiet_tensorflow", lambda: nullcontext(asked.append("quiet")))
    with pytest.raises(DataError):
        load_model("none")
    assert asked == ["quiet"]
