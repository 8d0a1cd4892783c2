"""`darkroom evaluate`: what a server would answer for a split, in numbers."""

from __future__ import annotations

import errno
import json
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

import darkroom
from darkroom.cli import main
from darkroom.data.open import open_data
from darkroom.errors import CredentialsError
from darkroom.evaluation.report.facts import Facts, encode_evaluation
from darkroom.evaluation.report.result import Evaluation, describe_use
from darkroom.evaluation.scores.serving import identify_model
from darkroom.options.conversion import ConversionOptions
from darkroom.targets.label.confusion import ConfusionMatrix
from darkroom.targets.label.metrics import ClassScore, Confusion, measure

from .conftest import COLORS, write_pictures

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def records(colors, tmp_path_factory):
    folder = tmp_path_factory.mktemp("converted") / "records"
    darkroom.convert(colors, folder)
    return folder


def test_the_numbers_of_a_split(model, records):
    found = darkroom.evaluate(model, records)
    assert (found.split, found.metrics.records, found.accuracy) == ("test", 10, 0.7)
    assert found.metrics.classes == (
        ClassScore("blue", 2, 0, None, 0.0, 0.0),
        ClassScore("green", 3, 6, 0.5, 1.0, 6 / 9),
        ClassScore("red", 5, 4, 1.0, 0.8, 8 / 9),
    )
    assert found.metrics.confusions == (Confusion("blue", "green", 2), Confusion("red", "green", 1))
    assert found.metrics.matrix == ConfusionMatrix(
        ("blue", "green", "red"), ((0.0, 2.0, 0.0), (0.0, 3.0, 0.0), (0.0, 1.0, 4.0))
    )
    assert found.notes == (
        "The recall is 0 for blue: not one of their images is found.",
        "The accuracy is not surely better than that of always predicting red.",
    )
    assert found.model_dir == str(model)
    assert found.model_sha256 == identify_model(str(model))
    assert Evaluation.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert found.metrics.top5_accuracy is None


def test_how_a_model_was_made_is_also_found_in_its_own_folder(
    exported, model, records, tmp_path, monkeypatch
):
    monkeypatch.setattr("tensorflow.saved_model.load", lambda _: exported[1])
    alone = tmp_path / "artifact" / "model"
    shutil.copytree(model, alone)
    facts = Facts(exported_epoch=3, data={"train": [read_part(records, "train")]})
    (alone / "evaluation.json").write_bytes(
        encode_evaluation(darkroom.evaluate(model, records), facts)
    )
    found = darkroom.evaluate(alone, records, "train")
    assert found.notes[0].startswith("The model was trained on these records")
    assert found.model_sha256 == identify_model(str(model))


def read_part(records, split):
    [part] = open_data([records]).find_split(split).data
    return part


def test_records_images_and_raw_pixels_give_the_same(model, colors, records, tmp_path):
    darkroom.convert(colors, tmp_path / "raw", options=ConversionOptions(encoding="raw"))
    found, pictures = [], []
    for source in (records, colors, tmp_path / "raw"):
        found.append(darkroom.evaluate(model, source, report_dir=tmp_path / "report"))
        page = (tmp_path / "report" / "model.html").read_text()
        pictures.append(sorted(re.findall(r"background-image:url\(.*?\)", page)))
    assert found[0] == found[1] == found[2]
    assert pictures[0] == pictures[1] == pictures[2]
    assert len(pictures[0]) == 10


def test_all_splits_count_together(model, records, colors, capsys):
    found = [darkroom.evaluate(model, each, split="all") for each in (records, colors)]
    for each in found:
        assert (each.split, each.metrics.records, each.accuracy) == ("all", 22, 19 / 22)
        assert "on all splits of 22 records" in each.to_text()
    second = darkroom.evaluate(model, [records, records], split="all")
    assert second == found[0]


def test_labels_are_compared_by_their_text(model, tmp_path):
    # Without green, red has another number in the records than in the model.
    rows = {f"val/{name}/{n}.png": name for name in ("blue", "red") for n in range(2)}
    source = write_pictures(tmp_path / "two", rows)
    found = darkroom.evaluate(model, source, split="validation")
    assert (found.split, found.accuracy) == ("eval", 1.0)
    assert found.notes[0] == "No record of the eval split has the label green."


def test_one_class_only_is_said(model, tmp_path):
    source = write_pictures(tmp_path / "one", {f"test/red/{n}.png": "red" for n in range(3)})
    found = darkroom.evaluate(model, source)
    assert found.notes == (
        "All records have the label red, so the accuracy is the recall of that class alone.",
    )
    assert found.metrics.classes[0].recall is None


@pytest.mark.parametrize(
    ("split", "fingerprint", "said"),
    [
        ("eval", "a", "The training chose its best epoch by these records"),
        ("train", "a", "The model was trained on these records"),
        ("test", "a", ""),
        ("all", "a", "The model was trained on these records"),
        ("eval", "b", ""),
        ("train", "b", ""),
    ],
)
def test_numbers_from_records_that_the_training_used_say_so(split, fingerprint, said):
    used = {name: [{"name": "x", "fingerprint": "a"}] for name in ("train", "eval", "test")}
    named = SimpleNamespace(name=split, data=[{"name": "y", "fingerprint": fingerprint}])
    notes = describe_use(Facts(data=used).find_use(named))
    assert " ".join(notes)[: len(said) or None] == said


def test_a_folder_is_not_recognized_as_the_source_of_records(colors, records):
    """As the guide says: by the fingerprint of a dataset, or of the images of one split."""

    def find_use(trained, given, split):
        data = {"train": open_data([trained]).find_split("train").data}
        return Facts(data=data).find_use(open_data([given]).find_split(split))

    assert [find_use(records, records, each) for each in ("train", "all")] == ["train"] * 2
    assert [find_use(records, colors, each) for each in ("train", "all")] == [""] * 2
    assert [find_use(colors, colors, each) for each in ("train", "all")] == ["train", ""]


def test_the_command_prints_numbers_and_classes(model, records, capsys):
    assert main(["evaluate", str(model.parent), str(records)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "Accuracy   0.7000 on the test split of 10 records (95 % interval 0.397 to 0.892, Wilson)"
    )
    assert "Baseline   0.5000 (always red)" in lines
    assert [each.split() for each in lines[4:8]] == [
        ["class", "precision", "recall", "F1", "records"],
        ["blue", "-", "0.000", "0.000", "2"],
        ["green", "0.500", "1.000", "0.667", "3"],
        ["red", "1.000", "0.800", "0.889", "5"],
    ]
    assert main(["evaluate", str(model), str(records), "--split", "training", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["split"], found["records"], found["accuracy"]) == ("train", 12, 1.0)
    assert found["classes"][2] == {
        "label": "red",
        "support": 4,
        "predicted": 4,
        "precision": 1.0,
        "recall": 1.0,
        "f1": 1.0,
    }


def test_a_notebook_shows_a_card_without_markup_of_the_user(model, records):
    found = darkroom.evaluate(model, records)
    page = found._repr_html_()
    assert "0.7000 on the test split of 10 records" in page
    assert "<td>green</td>" in re.sub(r' class="[^"]*"', "", page)
    assert repr(found).startswith("Evaluation(model_dir='")


def test_many_classes_are_cut_to_those_with_the_lowest_recall():
    labels = [f"l{number:02}" for number in range(30)]
    truth = np.arange(30).repeat(2)
    scores = np.eye(30)[np.where(truth == 29, 0, truth)]
    found = Evaluation("m", "h", "test", measure(scores, truth, labels))
    lines = found.to_text().splitlines()
    assert lines[6].split()[:3] == ["l29", "-", "0.000"]
    assert "  and 10 more with a higher recall: see --json" in lines


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["{model}", "{records}", "--split", "eval"], 1, "Its splits are train, test"),
        (["{model}", "{records}", "--split", "dog"], 2, "'dog', expected train, eval, test, all"),
        (["{colors}", "{records}"], 1, "There is no saved_model.pb in {colors}."),
        (["{records}/dataset.json", "{records}"], 1, "There is no saved_model.pb in {records}/"),
        (["{records}", "{colors}"], 1, "or the results of a detector by results (--results)."),
        (["{model}s", "{records}"], 3, "{model}s does not exist"),
        (["{model}", "{model}s"], 3, "does not exist"),
        (["{model}", "{records}", "{colors}"], 2, "must come from one list"),
    ],
)
def test_what_cannot_be_evaluated(model, colors, records, capsys, arguments, code, message):
    names = {"model": model, "colors": colors, "records": records}
    assert main(["evaluate", *(each.format(**names) for each in arguments)]) == code
    assert message.format(**names) in capsys.readouterr().err


@pytest.mark.parametrize(("inside", "is_its_own"), [("", True), ("report", True), ("", False)])
def test_a_report_is_not_written_into_a_dataset(model, colors, records, capsys, inside, is_its_own):
    before = sorted(records.rglob("*"))
    source = records if is_its_own else colors
    assert main(["evaluate", str(model), str(source), "--report", str(records / inside)]) == 4
    said = capsys.readouterr().err
    assert f"The report would be in the dataset {records}, which it is not a part of." in said
    assert "Choose another folder for it." in said
    assert sorted(records.rglob("*")) == before


def test_labels_that_the_model_does_not_know(model, tmp_path, capsys):
    source = tmp_path / "animals"
    write_pictures(source, {"test/cat/a.png": "red", "test/red/b.png": "red"})
    assert main(["evaluate", str(model), str(source)]) == 1
    said = capsys.readouterr().err
    assert "The records have 1 of 2 labels that the model does not know: cat." in said
    assert "It knows blue, green, red." in said


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("saved_model.pb", 0.5),
        pytest.param("variables/variables.index", 0, marks=pytest.mark.long),
        ("variables/variables.data-00000-of-00001", 0.5),
        ("assets/target.json", 0.5),
    ],
)
def test_a_damaged_model(model, records, tmp_path, capsys, name, share):
    folder = shutil.copytree(model, tmp_path / "model")
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: int(share * len(data))])
    assert main(["evaluate", str(folder), str(records)]) == 1
    said = capsys.readouterr().err
    assert f"The model in {folder} is damaged (" in said
    assert "delete the folder model in it, and run the same darkroom train again" in said


def test_a_model_of_another_tool(records, tmp_path, capsys):
    import tensorflow as tf

    module = tf.Module()
    module.answer = tf.function(lambda x: x, input_signature=[tf.TensorSpec([None])])
    tf.saved_model.save(module, str(tmp_path / "other"))
    assert main(["evaluate", str(tmp_path / "other"), str(records)]) == 1
    assert "has no label map, assets/labels.txt" in capsys.readouterr().err
    (tmp_path / "other" / "assets").mkdir(exist_ok=True)
    (tmp_path / "other" / "assets" / "labels.txt").write_text("a\nb\n")
    assert main(["evaluate", str(tmp_path / "other"), str(records)]) == 1
    assert "lack 'scores'" in capsys.readouterr().err


def test_a_model_in_a_folder_with_the_name_of_a_pattern(model, records, tmp_path):
    folder = tmp_path / "run[1]" / "model"
    shutil.copytree(model, folder)
    assert darkroom.evaluate(folder, records).accuracy == 0.7


@pytest.mark.parametrize(
    "error",
    [CredentialsError("The token has expired."), OSError(errno.EROFS, "Read-only file system")],
)
def test_an_error_of_the_machine_does_not_make_a_model_damaged(
    model, records, capsys, monkeypatch, error
):
    def load(folder):
        raise error

    monkeypatch.setattr("tensorflow.saved_model.load", load)
    assert main(["evaluate", str(model), str(records)]) == 3
    assert "damaged" not in capsys.readouterr().err


def test_a_damaged_image_is_named(model, tmp_path, capsys):
    rows = {f"test/{name}/{n}.png": name for name in COLORS for n in range(2)}
    source = write_pictures(tmp_path / "colors", rows)
    broken = source / "test/blue/1.png"
    broken.write_bytes(broken.read_bytes()[:60])
    assert main(["evaluate", str(model), str(source)]) == 1
    assert str(broken) in capsys.readouterr().err
