"""What a model says of the rows of a gallery: from the file of `darkroom predict` to the page."""

import json
from pathlib import Path

import numpy as np
import pytest

import darkroom
from darkroom.cli import main
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.index import read_index
from darkroom.errors import DataError, UsageError
from darkroom.evaluation.predict import encode_predictions
from darkroom.options import ConversionOptions
from darkroom.targets.label.scoring import LabelPrediction
from darkroom.validation.browse import write_gallery
from darkroom.validation.gallery.predictions import read_predictions
from darkroom.validation.gallery.rows import read_rows

from ...html_page import Page
from ...pictures import encode, make_noise

pytestmark = pytest.mark.crosses


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight images of cats and dogs, and the dataset of them."""
    folder = tmp_path_factory.mktemp("told")
    for number in range(8):
        (folder / f"{number}.png").write_bytes(encode(make_noise(number, 9, 9)))
    lines = [f"train,{number}.png,{'dog' if number % 2 else 'cat'}" for number in range(8)]
    (folder / "images.csv").write_text("\n".join(["split,image,label", *lines]))
    darkroom.convert(folder / "images.csv", folder / "records")
    return folder


def predict(folder: Path, name: str, *said: tuple[object, str, float]) -> Path:
    """Writes predictions as `darkroom predict` does."""
    found = [LabelPrediction(f"{folder}/{number}.png", *rest) for number, *rest in said]
    (folder / name).write_bytes(encode_predictions(f"{folder}/{name}", found, ".6f"))
    return folder / name


def read(folder: Path, path: Path):
    index = str(folder / "records/index")
    return read_predictions(path, index, read_rows(index), read_dataset(str(folder / "records")))


@pytest.mark.parametrize("name", ["told.csv", "told.jsonl"])
def test_the_page_has_what_a_model_says_and_its_most_certain_mistakes(folder: Path, name: str):
    said = (0, "cat", 0.9), (1, "cat", 0.6), (2, "dog", 0.75), (3, "dog", 0.8), (5, "cat", 0.7)
    path = predict(folder, name, *said)
    page = Page(write_page(folder, path))
    names = [Path(uri).stem for uri in read_index(str(folder / "records/index"))["uri"].to_pylist()]
    told = dict(zip(names, page.read_array("rows-told").tolist(), strict=True))
    labels = ["", *page.blocks["facts"]["labels"]]
    expected = {str(number): label for number, label, _ in said}
    assert {stem: labels[number] for stem, number in told.items() if number} == expected
    scores = {Path(tile["uri"]).stem: tile["score"] for tile in page.blocks["tiles"]}
    assert scores == {**dict.fromkeys(names), **{str(number): score for number, _, score in said}}
    mistakes = page.blocks["facts"]["findings"][-1]
    assert (mistakes["check"], mistakes["policy"], mistakes["count"]) == ("mistakes", "model", 3)
    assert mistakes["message"] == "The model gives another label to 3 of 5 images."
    assert [names[item["places"][0]] for item in mistakes["items"]] == ["2", "5", "1"]
    # So they have tiles in a large dataset, too.
    assert [Path(tile["uri"]).stem for tile in page.blocks["tiles"]][:3] == ["2", "5", "1"]


def write_page(folder: Path, predictions: Path) -> str:
    output = folder / "gallery.html"
    write_gallery(folder / "records", output, predictions=predictions, overwrite=True)
    return output.read_text("utf-8")


def test_lines_that_say_nothing_of_the_dataset_are_named(folder: Path):
    path = predict(folder, "some.csv", (0, "dog", 0.9), ("gone", "cat", 0.8), (1, "fox", 0.7))
    with path.open("a") as file:
        file.write("3.png,,0.5\n4.png,cat,often\n5.png,cat,1.5\n")
    found = read(folder, path)
    assert np.count_nonzero(found.label) == 1
    assert found.finding.message == (
        "The model gives another label to 1 of 1 image. Left out: 3 damaged lines (row 4: the "
        f"label cell is empty), 1 image outside the dataset ({folder}/gone.png), 1 label outside "
        "the label map (fox)."
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image_uri,label,score\nx.png,cat,0.5\n", "nothing about the images of this dataset."),
        ("image_uri,label,score\n1.png,fox,0.5\n", r"1 label outside the label map \(fox\)"),
        ("image_uri,label\n1.png,cat\n", r"Columns \['score'\] are missing.* one label an image"),
        ("image_uri,labels,scores\n1.png,cat,0.5\n", r"\['label', 'score'\] are missing"),
        ("", "is empty"),
    ],
)
def test_a_file_of_something_else_is_refused(folder: Path, text: str, message: str):
    path = folder / "other.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read(folder, path)


def test_several_labels_an_image_are_refused(folder: Path, tmp_path: Path):
    lines = [{"image": f"{folder}/{number}.png", "label": ["cat", "dog"]} for number in (0, 1)]
    (tmp_path / "images.jsonl").write_text("\n".join(map(json.dumps, lines)))
    options = ConversionOptions(label_kind="labels", split_ratios="100/0/0")
    darkroom.convert(tmp_path / "images.jsonl", tmp_path / "records", options=options)
    with pytest.raises(UsageError, match="labelled with labels, and the gallery shows predictions"):
        read(tmp_path, predict(folder, "told.csv", (0, "cat", 0.9)))


def test_the_command_looks_for_the_predictions_before_the_dataset(tmp_path: Path, capsys):
    command = ["gallery", str(tmp_path / "records"), "--predictions", str(tmp_path / "told.csv")]
    assert main(command) == 3
    assert f"{tmp_path}/told.csv" in capsys.readouterr().err
