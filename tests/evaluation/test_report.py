"""The page of a model and its card: whole, self-contained, and without markup of the user's."""

from __future__ import annotations

import base64
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from darkroom import storage
from darkroom.cli import main
from darkroom.errors import TransientStorageError
from darkroom.evaluation.report.charts import make_chart, make_curve
from darkroom.evaluation.report.facts import Facts, describe_code
from darkroom.evaluation.report.listing import list_recipe
from darkroom.evaluation.report.page import make_model_page
from darkroom.evaluation.report.pictures import PagePictures
from darkroom.evaluation.report.result import Evaluation
from darkroom.targets.description import Caption, Images, View
from darkroom.targets.label.metrics import Bin, Confusion, count_confusions, measure
from darkroom.targets.label.view import (
    MAX_PICTURES,
    choose_labels,
    leave_out,
    make_calibration,
    make_grid,
)

from ..html_page import Page

EVIL = "<script>alert(1)</script> *x* | \u202e &"
PIXEL = "data:image/jpeg;base64,/9j/4AAQ"
HISTORY = [
    {"epoch": 1, "loss": 2.0, "accuracy": 0.2, "val_loss": 1.8, "val_accuracy": 0.3},
    {"epoch": 2, "loss": float("nan"), "accuracy": 0.4, "val_loss": 1.2, "val_accuracy": 0.5},
]
FACTS = Facts(
    recipe={"model": EVIL, "image_size": [64, 32], "seed": 0, "verify": False, "weights": None},
    history=HISTORY,
    exported_epoch=2,
    input={"verdict": "Not input-bound.", "microseconds_an_image": {"decode": 812.4}},
    data={"test": [{"name": EVIL, "fingerprint": "abc123", "records": 1234}]},
    code={"darkroom": "1.2.3"},
)


def make_result(labels=("cat", EVIL, "dog")):
    truth = np.array([0, 0, 1, 1, 2])
    scores = np.eye(3)[[0, 1, 1, 1, 0]] * 0.7 + 0.1
    notes = (f"A note on {EVIL}.",)
    return Evaluation("m", "f" * 64, "test", measure(scores, truth, labels), notes)


def make_gallery(count=1):
    """Some images; `count` is how many cats are taken for the second label."""
    labels = ("cat", EVIL, "dog")
    confusion = count_confusions(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 1, 0]), 3)
    confusion[0, 1] = count
    captions = {
        0: Caption("cat", "0.80", "cat", True),
        1: Caption(EVIL, "0.80", "cat", False),
        4: Caption("cat", "0.80", "dog", False),
    }
    groups = [
        Images("Worst mistakes", "Wrong, and surest of it.", [1, 4]),
        Images("Least certain", "The lowest scores, right or wrong.", [0, 1]),
    ]
    grid = make_grid(confusion, labels, [0, 1, 2], {(0, 1): [1], (0, 0): [0]})
    charts = [make_calibration([Bin(5, 0.8, 0.6)])]
    return PagePictures(
        View(captions, groups, grid, "Calibration", charts),
        thumbnails={0: f"{PIXEL}AAAA", 1: f"{PIXEL}BBBB"},
        names={0: "a/b/c.png", 1: f"d/{EVIL}/e.png"},
    )


def encode_page(found, facts, gallery):
    return make_model_page(found, facts, gallery).to_html()


def encode_card(found, facts):
    return make_model_page(found, facts, make_gallery()).to_markdown()


def make_page():
    return encode_page(make_result(), FACTS, make_gallery())


def test_the_page_has_all_its_parts():
    page = Page(make_page())
    assert make_page() == make_page()
    for title in (
        "60.0% right on the test split",
        *("Training", "Classes", "Confusion", "Worst mistakes", "Least certain", "Calibration"),
        *("Input", "Recipe", "Data", "Code and model"),
    ):
        assert f"{title} " in page.text
    for text in ("Not input-bound.", "decode, µs an image", "812", "64 x 32", "2 of 2", "abc123"):
        assert text in page.text
    assert "1,234 records" in page.text
    assert "1.2.3" in page.text
    assert "f" * 64 in page.text
    # A seed of 0 is not "no".
    assert " seed 0 " in page.text
    assert " verify no " in page.text


def test_a_model_below_its_bounds_is_not_pushed_and_the_headline_says_so():
    found = make_result()
    bound = "the accuracy is 0.4583 (needed at least 0.99)"
    missed = (bound, f"the recall of {EVIL} is 0.1000")
    result = replace(found, missed=missed)
    assert Evaluation.from_dict(json.loads(json.dumps(result.to_dict()))) == result
    page = Page(encode_page(result, FACTS, make_gallery()))
    headline = f"Not good enough: {bound}, and 1 more bound missed"
    assert page.find("h1", class_="verdict bad")
    assert f"{headline} " in page.text
    assert encode_card(replace(found, missed=missed[:1]), FACTS).startswith(
        "# Model: Not good enough: the accuracy is 0.4583 (needed at least 0.99)\n"
    )
    evil = encode_card(replace(found, missed=missed[1:]), FACTS).splitlines()[0]
    assert "<script>" not in evil


def test_a_cell_of_the_matrix_opens_its_images():
    page = Page(make_page())
    titles = [each["title"] for each in page.find("summary")]
    assert titles[0] == "cat, found"
    assert titles[1].startswith("cat, taken for <script>")
    assert len(page.find("details", name="cell")) == 2
    assert len(page.find("div", class_="sheet")) == 2
    # The cell without images of its own has the number alone.
    assert "dog, taken for cat" not in page.text


def test_a_cell_with_more_images_than_it_shows_says_so():
    found = make_result()
    assert "are shown" not in Page(make_page()).text
    page = Page(encode_page(found, FACTS, make_gallery(1211)))
    assert page.text.count("1 of 1,211 are shown.") == 1
    assert page.text.count("are shown.") == 1


def test_an_image_that_is_shown_several_times_is_in_the_page_once():
    text = make_page()
    assert text.count(f"{PIXEL}BBBB") == 1
    assert len(Page(text).find("span", class_="pic i1")) == 4
    assert len(Page(text).find("span", aria_label="no picture of ")) == 1


def test_the_page_requests_nothing_and_has_no_markup_of_the_user():
    text = make_page()
    page = Page(text)
    assert page.tags.isdisjoint({"script", "link", "iframe", "object", "a", "form", "img"})
    for _, attributes in page.elements:
        assert not {"src", "href", "onclick", "onload"} & attributes.keys()
    assert page.policy.startswith("default-src 'none'")
    urls = re.findall(r"url\((.*?)\)", text)
    assert urls
    assert all(each.startswith("data:image/jpeg;base64,") for each in urls)
    assert "@import" not in text
    assert "http:" not in text
    assert "https:" not in text
    assert "\u202e" not in text
    assert page.text.count("<script>alert(1)</script>") >= 6  # as text


def get_luminance(color):
    parts = [part / 255 for part in color]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def parse_color(text):
    digits = text.removeprefix("#")
    digits = "".join(each * 2 for each in digits) if len(digits) == 3 else digits
    return np.array([*bytes.fromhex(digits)])


@pytest.mark.parametrize("is_dark", [False, True])
def test_texts_differ_enough_from_what_is_below_them(is_dark):
    page = make_page()
    colors = {}
    for dark, rules in re.findall(
        r"(@media \(prefers-color-scheme:dark\)\{)?:root\{(.*?)\}", page, re.S
    ):
        if is_dark or not dark:
            colors |= dict(re.findall(r"--([\w-]+):([^;}]+)", rules))

    def find(name):
        value = colors[name].strip()
        return find(value[6:-1]) if value.startswith("var(--") else parse_color(value)

    def mix(name):  # The color of a cell with all images of its row.
        return 0.7 * find(name) + 0.3 * find("tint")

    pairs = [("ink", mix("right")), ("ink", mix("wrong")), ("soft", find("card"))]
    pairs += [(name, find("card")) for name in ("train", "good", "bad")]
    for name, below in pairs:
        light, dark = sorted((get_luminance(find(name)), get_luminance(below)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, name


def test_a_model_without_its_training_says_that_less_is_known():
    found = make_result()
    page = Page(encode_page(found, Facts(), make_gallery()))
    assert "How it was trained is not known" in page.text
    assert "Recipe" not in page.text
    assert "Calibration" in page.text


def test_the_recipe_has_what_was_trained():
    history = [{"epoch": n, "phase": each} for n, each in enumerate(["head"] * 14 + ["top"] * 2, 1)]
    recipe = {"epochs": 30, "fine_tune_epochs": 6, "feature_cache": None, "seed": 0}
    rows = list_recipe(Facts(recipe=recipe, history=history, exported_epoch=4))
    assert rows == [
        ("exported epoch", "4 of 16 (lowest val_loss)"),
        ("epochs", "14 of 30"),
        ("fine_tune_epochs", "2 of 6"),
        ("feature_cache", "default"),
        ("seed", "0"),
    ]
    whole = Facts(recipe={"epochs": 2, "fine_tune_epochs": 0}, history=HISTORY, exported_epoch=2)
    assert list_recipe(whole)[1:] == [("epochs", "2 of 2"), ("fine_tune_epochs", "0")]


def test_many_labels_leave_only_those_with_the_most_mistakes():
    confusion = np.diag(np.full(40, 5))
    confusion[7, 9] = 3
    shown = choose_labels(confusion)
    assert len(shown) == 30
    assert {7, 9} <= set(shown)
    assert shown == sorted(shown)


def test_the_pictures_are_limited():
    cells = {(n, m): [0] * 8 for n in range(10) for m in range(10)}
    limited = leave_out(cells, MAX_PICTURES)
    assert {len(each) for each in limited.values()} == {3}
    assert len(leave_out(cells, 40)) == 40


def test_a_curve_leaves_out_what_is_not_finite():
    chart = str(make_curve(HISTORY, "loss", 2))
    first, second = re.findall(r'<polyline points="([^"]*)"', chart)
    assert (len(first.split()), len(second.split())) == (1, 2)
    assert "epoch 2 is exported" in chart
    assert make_curve(HISTORY, "other", 0) is None
    assert make_curve(HISTORY[:1], "loss", 1) is not None
    long = [{"epoch": n, "loss": 0.0, "val_loss": 0.0} for n in range(1, 100_000)]
    assert len(str(make_curve(long, "loss", 3))) < 30_000


def test_the_calibration_chart_says_its_numbers():
    chart = str(make_chart(make_calibration([Bin(3, 0.4, 0.5), Bin(1, 0.9, 1.0)])))
    assert 'aria-label="accuracy by score: 0.40: 0.50 of 3, 0.90: 1.00 of 1"' in chart


def test_the_card_has_the_same_facts_as_markdown():
    found = make_result()
    card = encode_card(found, FACTS)
    assert card.startswith("# Model: 60.0% right on the test split\n")
    assert "| cat | 0.500 | 0.500 | 0.500 | 2 |" in card
    assert "| test: &lt;script&gt;" in card
    assert "fingerprint abc123" in card
    assert "| image\\_size | 64 x 32 |" in card
    assert "<script>" not in card
    rows = [line for line in card.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows} == {3, 4, 6}


@pytest.mark.parametrize(
    ("count", "said"),
    [(10, None), (12, "and 2 more: see"), (100, "and at least 90 more: see")],
)
def test_the_card_says_how_many_confusions_it_leaves_out(count, said):
    found = make_result()
    pairs = tuple(Confusion("cat", f"label {n}", 1) for n in range(count))
    metrics = replace(found.metrics, confusions=pairs)
    card = encode_card(replace(found, metrics=metrics), FACTS)
    assert card.count("| cat | label ") == 10
    assert re.findall("… (and .* more: see) evaluation.json.", card) == ([said] if said else [])


def test_code_has_the_hash_of_a_model_of_the_user_s(tmp_path, monkeypatch):
    (tmp_path / "my_nets.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert len(describe_code("my_nets:build")["my_nets (SHA-256)"]) == 64
    assert describe_code("keras.applications:VGG16").keys() == describe_code("small_cnn").keys()


@pytest.mark.tensorflow
def test_a_report_of_real_images(model, colors, tmp_path, capsys):
    folder = tmp_path / "report"
    command = ["evaluate", str(model), str(colors), "--report", str(folder)]
    assert main(command) == 0
    assert f"Page       {folder}/model.html" in capsys.readouterr().out
    text = (folder / "model.html").read_text()
    page = Page(text)
    pictures = re.findall(r"\.i(\d+)\{background-image:url\(data:image/jpeg;base64,(.*?)\)\}", text)
    assert len(pictures) == 10
    for _, data in pictures:
        with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
            assert max(picture.size) <= 96
    wrong = [each["aria-label"] for each in page.find("span", role="img")]
    assert any(each.endswith("test/red/wrong.png") for each in wrong)
    values = json.loads((folder / "evaluation.json").read_text())["evaluation"]
    assert values["accuracy"] == 0.7
    assert values["report_path"] == f"{folder}/model.html"
    assert (folder / "model.md").read_text().startswith("# Model: 70.0% right on the test split")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(command) == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.tensorflow
def test_a_report_replaces_no_file_of_the_user(model, colors, tmp_path, capsys):
    (tmp_path / "model.html").write_text("mine")
    command = ["evaluate", str(model), str(colors), "--report", str(tmp_path)]
    assert main(command) == 4
    assert "1 file that darkroom did not write" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["model.html"]


@pytest.mark.tensorflow
def test_pictures_do_not_wait_for_a_store(monkeypatch):
    import tensorflow as tf

    from darkroom.data.splits import ImageSplit
    from darkroom.evaluation.scores.scoring import read_numbered_images
    from darkroom.input.files import FileSource

    asked = []

    def read(path: str, limit_bytes: int | None = None) -> bytes:
        asked.append(path)
        raise TransientStorageError(f"Reading {path} failed once.")

    monkeypatch.setattr(storage, "read_bytes", read)
    monkeypatch.setattr(tf.io.gfile, "get_registered_schemes", lambda: ["", "gs"])
    uris = [f"gs://b/{number}.png" for number in range(3)]
    source = FileSource(ImageSplit("test", "list", ["a"], uris, [0, 0, 0], ""))
    found = [(number, *image) for number, image in read_numbered_images(source, {0, 1, 2})]
    assert found == [(number, f"gs://b/{number}.png", b"") for number in range(3)]
    assert asked == ["gs://b/0.png"]
