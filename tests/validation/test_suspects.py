"""Labels and numbers that are probably wrong, and splits that differ: planted in drawn features."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from darkroom.features.table import write_features
from darkroom.targets.suspects import find_suspecting
from darkroom.validation.foretold import compare_looks, foretell
from darkroom.validation.suspects import _heed_copies

from .test_judge import found, judge, record  # noqa: F401  the fixture

RANDOM = np.random.default_rng(7)
CENTERS = RANDOM.normal(size=(8, 48))


def draw(classes, noise=0.7):
    """Returns features of images of classes, float32 [N, 48]."""
    random = np.random.default_rng(len(classes))
    return (CENTERS[classes] + noise * random.normal(size=(len(classes), 48))).astype(np.float32)


def doubt(kind, values, targets, names, contents=None):
    looks = compare_looks(values, np.arange(len(values)) if contents is None else contents)
    suspecting = find_suspecting(kind)
    given = suspecting.encode(targets, names)
    told = foretell(looks, given, suspecting)
    return suspecting.judge(given, told, targets, names), told


def test_a_wrong_label_is_found_with_the_right_one():
    true = np.arange(160) % 4
    given = true.copy()
    given[[3, 50, 91]] = [0, 0, 1]
    doubts, told = doubt("label", draw(true), given, ("cat", "dog", "emu", "fox"))
    assert dict(zip(doubts.images.tolist(), doubts.suggested, strict=True)) == {
        3: "fox",
        50: "emu",
        91: "fox",
    }
    assert not doubts.untold
    assert (np.diff(doubts.scores) >= 0).all()
    assert doubts.scores[-1] < 0.2
    assert np.allclose(told.sum(1), 1, atol=1e-5)


def test_clean_labels_are_left_alone():
    doubts, _ = doubt("label", draw(np.arange(160) % 4), np.arange(160) % 4, tuple("abcd"))
    assert not len(doubts.images)
    assert not doubts.untold


def test_copies_with_one_wrong_label_do_not_vouch_for_each_other():
    true = np.arange(200) % 4
    values, contents, given = draw(true), np.arange(200), true.copy()
    # Seven copies of an image, some with changed bytes, all with the same wrong label.
    copies = np.arange(8, 36, 4)
    values[copies] = values[8] + 0.02 * RANDOM.normal(size=(7, 48))
    contents[copies[:4]] = 8
    given[copies] = 2
    looks = compare_looks(values, contents)
    assert len(set(looks.folds[copies])) == 1
    assert not np.isin(looks.neighbours[copies], copies)[looks.votes[copies] > 0].any()
    doubts, _ = doubt("label", values, given, tuple("abcd"), contents)
    assert set(doubts.images.tolist()) == set(copies.tolist())
    assert set(doubts.suggested) == {"a"}


def test_of_two_copies_with_two_labels_the_less_likely_one_is_doubted():
    known = np.eye(3, dtype=np.float32)[[0, 1, 2, 2, 0]]
    told = np.array([[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.1, 0.1, 0.8], [0.9, 0, 0.1], [1, 0, 0]])
    # The second pair has one label; nothing is known of the last image.
    known[4] = np.nan
    heeded = _heed_copies(known, told, np.array([[1, 0], [2, 3], [0, 4]]))
    assert heeded[1] == pytest.approx([0.95, 0.04, 0.01])
    assert (heeded[[0, 2, 3, 4]] == told[[0, 2, 3, 4]]).all()


@pytest.mark.fault(
    83,
    "a label that features do not tell",
    "named; none of its images is called wrong",
    code="finding",
)
def test_labels_that_images_do_not_tell_are_named_and_not_listed():
    true = np.arange(240) % 4
    given = true.copy()
    given[RANDOM.choice(240, 40, replace=False)] = 4  # from all classes
    doubts, _ = doubt("label", draw(true), given, (*"abcd", "misc"))
    assert doubts.untold == ["misc"]
    assert "misc" not in doubts.suggested
    assert not (given[doubts.images] == 4).any()
    # Nothing is foretold of noise.
    noise = RANDOM.normal(size=(240, 48)).astype(np.float32)
    doubts, _ = doubt("label", noise, true, tuple("abcd"))
    assert not len(doubts.images)
    assert doubts.untold == [*"abcd"]


def test_one_class_and_classes_with_few_images_are_not_judged():
    given = np.array([0] * 30 + [1] * 4)
    doubts, _ = doubt("label", draw(np.zeros(34, int)), given, ("a", "rare"))
    assert not len(doubts.images)


def test_one_of_several_labels_is_missing_or_too_many():
    first, second = np.arange(200) % 2, np.arange(200) // 2 % 2
    targets = np.column_stack([first, second, np.ones(200)]).astype(np.float32)
    values = draw(first) + draw(second + 2)
    targets[20, 0], targets[31, 1], targets[60] = 1, 0, np.nan
    doubts, _ = doubt("labels", values, targets, ("car", "sun", "all"))
    assert dict(zip(doubts.images.tolist(), doubts.suggested, strict=True)) == {
        20: ["all"],
        31: ["car", "sun", "all"],
    }
    assert not doubts.untold


def test_a_wrong_number_is_far_from_what_its_image_tells():
    length = RANDOM.uniform(1, 9, 200)
    values = (0.25 * length[:, None] * CENTERS[0] + RANDOM.normal(size=(200, 48))).astype(
        np.float32
    )
    targets = np.column_stack([length, RANDOM.normal(size=200), np.full(200, np.nan)])
    targets[5, 0], targets[6, 0] = 1_000 * length[5], np.nan
    doubts, _ = doubt("numbers", values, targets.astype(np.float32), ("length", "luck", "none"))
    assert doubts.images.tolist() == [5]
    assert doubts.untold == ["luck"]
    assert doubts.suggested[0][0] == pytest.approx(length[5], abs=2)
    assert doubts.scores[0] > 100


def test_the_check_lists_wrong_labels_but_not_those_that_people_ignore(judge, tmp_path):  # noqa: F811
    true = np.arange(80) % 4
    records = [record(n + 1, "train", "abcd"[name], height=20) for n, name in enumerate(true)]
    values = draw(true)
    values[29] = (values[29] + draw(true[::-1])[29]) / 2  # of two classes
    records[3]["label"] = records[50]["label"] = records[61]["label"] = "a"
    for row in records:
        row["ignored"] = "*" if row["row"] in (51, 62) else None
    # A black image has a finding of its own.
    records[70]["luminance"] = 1.0
    for folder in ("all", "shown"):
        (tmp_path / folder).mkdir()
        with open(tmp_path / folder / "features.parquet", "wb") as file:
            write_features(file, "drawn 1", 48, [(pa.Table.from_pylist(records), values)])
    shown = found(judge(records, folder="shown"))["suspect_labels"]
    [first], [second, *others] = shown.rows, shown.next_rows
    assert (first["row"], first["label"], first["suggested"]) == (4, "a", "d")
    # The next ones by doubt, without those that people ignore.
    assert (shown.count, second["row"]) == (1, 30)
    assert second.keys() == {"row", "uri", "split", "label"}
    assert {row["row"] for row in others} == {*range(1, 81)} - {4, 30, 51, 62, 71}
    for row in records:
        del row["ignored"]
    suspects = found(judge(records, folder="all"))["suspect_labels"]
    assert {row["row"]: row["suggested"] for row in suspects.rows} == {4: "d", 51: "c", 62: "b"}
    assert (suspects.policy, suspects.count) == ("warn", 3)
