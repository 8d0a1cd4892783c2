"""`darkroom evaluate --results`: how good a detector is, whatever it is, by its results."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest

import darkroom
from darkroom.cli import main
from darkroom.errors import DataError, OutputError, UsageError
from darkroom.evaluation.report.result import Evaluation, Slice
from darkroom.steps.known import STEPS

from ..html_page import Page
from ..pictures import encode, make_noise

# By name: split, group and objects, in images of 200 x 100 pixels.
CAT, DOG = {"label": "cat", "box": [10, 10, 60, 60]}, {"label": "dog", "box": [100, 20, 140, 90]}
LISTED = {
    "a": ("train", "one", [CAT, DOG]),
    "b": ("eval", "one", [CAT]),
    "c": ("eval", "two", [DOG, {**CAT, "is_crowd": 1}]),
    "d": ("eval", "two", None),
    "e": ("test", "two", []),
}
RIGHT = {"cat": [10, 10, 50, 50], "dog": [100, 20, 40, 70]}


def make_result(image, label, box=None, score=0.9):
    number = ["cat", "dog"].index(label) + 1
    return {"image_id": image, "category_id": number, "bbox": box or RIGHT[label], "score": score}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("detected")
    rows = []
    for number, (name, (split, group, objects)) in enumerate(LISTED.items()):
        (folder / f"{name}.png").write_bytes(encode(make_noise(number, 100, 200)))
        rows.append(
            {"image_uri": f"{name}.png", "split": split, "objects": objects, "group": group}
        )
    (folder / "list.jsonl").write_text("\n".join(map(json.dumps, rows)))
    darkroom.convert(folder / "list.jsonl", folder / "records")
    return folder / "records"


@pytest.fixture
def write(tmp_path):
    def write(*results):
        path = tmp_path / "results.json"
        path.write_text(json.dumps(results))
        return path

    return write


def test_results_are_scored_for_the_split(records, write, tmp_path):
    path = write(make_result("b", "cat"), make_result("a", "dog"), make_result("d", "dog"))
    found = darkroom.evaluate(None, records, "val", tmp_path / "report", results=path)
    metrics = found.metrics
    assert (found.kind, found.split, metrics.records, metrics.objects) == ("boxes", "eval", 2, 2)
    # One of two classes is found; the image that nobody looked at does not count.
    assert found.score == metrics.average_precision_50 == 0.5
    assert metrics.errors["missing"] == 1
    assert found.notes == ("1 image of the eval split without a result.",)
    assert Evaluation.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert found.model_dir == str(path)
    text = found.to_text()
    assert "AP         0.5000 on the eval split of 2 images" in text
    assert "Errors     missing 1 (from the best score on)" in text
    page = Page((tmp_path / "report/model.html").read_text())
    assert "Average precision 0.500 on the eval split, 0.500 at 0.5" in page.text
    card = (tmp_path / "report/model.md").read_text()
    assert "| cat | 1.000 | 1.000 | 1.000 | 1.000 | 1 | 1 |" in card
    assert "Precision and recall from a score on" in card
    assert "results (SHA-256)" in card


def test_the_page_draws_objects_and_results_in_two_colors(records, write, tmp_path):
    path = write(make_result("b", "dog", RIGHT["cat"], 0.95), make_result("c", "dog"))
    darkroom.evaluate(None, records, "eval", tmp_path / "report", results=path)
    html = (tmp_path / "report/model.html").read_text()
    assert "1 confused" in html
    assert '<rect stroke="#76b7b2" x="10" y="10" width="50" height="50"><title>cat</title>' in html
    assert '<rect stroke="#f28e2b" x="10" y="10" width="50" height="50"><title>dog 0.95<' in html
    # Rows are the list: of the cat one result is a dog.
    assert "cat, taken for dog: 1" in html


def test_all_splits_are_compared_with_each_other(records, write):
    path = write(make_result("b", "cat"), make_result("a", "dog"))
    found = darkroom.evaluate(None, records, "all", results=path)
    assert found.metrics.records == 4
    assert found.slices == (Slice("split", "eval", 3, 0.5), Slice("split", "train", 1, 0.5))
    assert "| split | eval | 0.500 | 3 |" not in found.to_text()


def test_groups_are_compared_with_each_other(records, write, tmp_path):
    darkroom.convert(
        records.parent / "list.jsonl",
        tmp_path / "grouped",
        group_column="group",
    )
    path = write(make_result("b", "cat"), make_result("a", "cat"))
    found = darkroom.evaluate(None, tmp_path / "grouped", "all", results=path)
    groups = [each for each in found.slices if each.column == "group"]
    assert groups == [Slice("group", "two", 3, 0.0), Slice("group", "one", 2, 0.5)]


def test_numbers_of_classes_that_are_shifted_by_one_are_refused(records, write):
    shifted = [
        {**make_result("a", "cat"), "category_id": 2},
        {**make_result("b", "cat"), "category_id": 2},
    ]
    with pytest.raises(
        DataError,
        match=r"shifted by one: 0% of .* about an object of their class, and 100% .* before",
    ):
        darkroom.evaluate(None, records, "eval", results=write(*shifted))


def test_results_of_another_split_name_it(records, write):
    with pytest.raises(DataError, match="no result for the test split, but for eval") as caught:
        darkroom.evaluate(None, records, results=write(make_result("b", "cat")))
    assert caught.value.hint.startswith("Name the split: --split eval. Or, if ids mean other ima")


def test_a_split_that_is_not_there_has_another_one_instead(tmp_path, write):
    (tmp_path / "a.png").write_bytes(encode(make_noise(1, 100, 200)))
    row = {"image_uri": "a.png", "split": "eval", "objects": [CAT]}
    (tmp_path / "list.jsonl").write_text(json.dumps(row))
    darkroom.convert(tmp_path / "list.jsonl", tmp_path / "records")
    with pytest.raises(DataError, match="no record of the test split") as caught:
        darkroom.evaluate(None, tmp_path / "records", results=write(make_result("a", "cat")))
    assert caught.value.hint.startswith("Score another split: --split eval (split= in Python). If")


CLASSES = ("ant", "bee", "cow", "dog")


@pytest.fixture(scope="module")
def scattered(tmp_path_factory):
    """Thirty images of three objects at any place; their folder, and results that are right."""
    folder = tmp_path_factory.mktemp("scattered")
    rng = np.random.default_rng(1)
    rows, right = [], []
    for image in range(30):
        (folder / f"{image}.png").write_bytes(encode(make_noise(image, 100, 200)))
        objects = []
        for _ in range(3):
            left, top, label = (int(rng.integers(most)) for most in (160, 70, 4))
            objects.append({"label": CLASSES[label], "box": [left, top, left + 40, top + 30]})
            found = {"image_id": image, "category_id": 1 + label, "bbox": [left, top, 40, 30]}
            right.append({**found, "score": 0.6})
        rows.append({"image_uri": f"{image}.png", "split": "eval", "objects": objects})
    (folder / "list.jsonl").write_text("\n".join(map(json.dumps, rows)))
    darkroom.convert(folder / "list.jsonl", folder / "records")
    return folder / "records", right


def confuse_images(result):
    return {**result, "image_id": (result["image_id"] + 11) % 30}


def confuse_classes(result):
    return {**result, "category_id": (0, 3, 4, 1, 2)[result["category_id"]]}


@pytest.mark.parametrize("confuse", [confuse_images, confuse_classes])
def test_results_that_are_right_by_chance_alone_say_nothing_of_a_list(
    scattered, write, confuse, caplog
):
    records, right = scattered
    path, what = write(*map(confuse, right)), r"only [0-3]% of the results are about .* by chance"
    with pytest.raises(DataError, match=rf"{what}\. Ids"):
        darkroom.validate(records, results=path)
    darkroom.evaluate(None, records, "eval", results=path)
    assert re.search(what, caplog.text)


def test_a_weak_detector_is_judged(scattered, write, caplog):
    records, right = scattered
    others = [{**each, "bbox": [each["bbox"][0] + 30, *each["bbox"][1:]]} for each in right[5:]]
    found = darkroom.evaluate(None, records, "all", results=write(*right[:5], *others))
    assert 0 < found.score < 0.1
    assert re.search(
        r"only \d% of the results are about an object of their class\. Ids", caplog.text
    )


def test_results_that_are_few_or_unsure_may_be_right_by_chance(scattered, write, caplog):
    records, right = scattered
    others = [*map(confuse_images, right)]
    for results in (others[:40], [{**each, "score": 0.2} for each in others]):
        caplog.clear()
        darkroom.validate(records, results=write(*results))
        assert "of the results are about an object of their class, no more than by" in caplog.text


def test_results_of_images_that_nobody_annotated_are_not_doubted(records, write, caplog):
    darkroom.validate(records, results=write(make_result("d", "cat")))
    assert "no more than by chance" not in caplog.text


def test_wrong_usage_is_said(records, write, tmp_path, colors):
    path = write(make_result("b", "cat"))
    with pytest.raises(UsageError, match="A model and results are both given"):
        darkroom.evaluate("model", records, results=path)
    with pytest.raises(UsageError, match="Neither a model nor results are given"):
        darkroom.evaluate(None, records)
    with pytest.raises(UsageError, match="annotations are for the results"):
        darkroom.evaluate("model", records, annotations=path)
    with pytest.raises(UsageError, match="compared with one dataset"):
        darkroom.evaluate(None, colors, results=path)
    darkroom.convert(colors, tmp_path / "labels")
    with pytest.raises(UsageError, match=r"the images in .* are labelled with label"):
        darkroom.evaluate(None, tmp_path / "labels", results=path)
    (tmp_path / "report").mkdir()
    (tmp_path / "report/model.html").write_text("mine")
    with pytest.raises(OutputError):
        darkroom.evaluate(None, records, "eval", tmp_path / "report", results=path)


@pytest.mark.parametrize("order", [["--results", "", "records"], ["records", "--results", ""]])
def test_the_command_takes_results_in_place_of_a_model(records, write, capsys, order):
    path = str(write(make_result("b", "cat")))
    given = {"": path, "records": str(records)}
    arguments = [given.get(each, each) for each in order]
    assert main(["evaluate", *arguments, "--split", "val", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["average_precision"] == 0.5


@pytest.mark.parametrize("command", ["evaluate", "validate", "inspect"])
def test_annotations_are_given_once(command, capsys):
    files = ["--results", "r.json", "--annotations", "a.json", "--annotations", "b.json"]
    assert main([command, "records", *files]) == 2
    assert "--annotations is given twice. Give one file." in " ".join(
        capsys.readouterr().err.split()
    )


def test_the_command_says_what_is_missing(records, write, capsys):
    path = str(write(make_result("b", "cat")))
    assert main(["evaluate", "--results", path, "model", str(records)]) == 2
    assert "A model and results are both given" in capsys.readouterr().err
    assert main(["evaluate", str(records)]) == 2
    assert "The following arguments are required: RECORDS" in capsys.readouterr().err
    assert main(["evaluate", "--results", path]) == 2
    assert "arguments are required: MODEL" in capsys.readouterr().err


def test_the_step_of_a_pipeline_scores_results(records, write):
    paths = {"results": str(write(make_result("b", "cat"))), "dataset": str(records)}
    options = {"split": "eval", "min_accuracy": 0.6, "min_recall": 0.0}
    made = STEPS["evaluate_detector"].run(paths, options)
    assert made.results == {"score": 0.5, "accuracy": -1}
    assert made.numbers["eval_average_precision_50"] == 0.5
    assert "the average precision is 0.5000 (needed at least 0.6)" in str(made.error)
    assert b"Not good enough: the average precision is 0.5000" in made.files["evaluation_page"]


def test_tensorflow_is_not_loaded(records, write):
    path = str(write(make_result("b", "cat")))
    code = (
        "import sys; from darkroom.cli import main; main(sys.argv[1:]); "
        "print({'tensorflow', 'keras'} & {*sys.modules})"
    )
    arguments = ["evaluate", "--results", path, str(records), "--split", "eval"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "set()"
