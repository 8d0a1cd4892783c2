"""Wrong arguments of the public functions: each ends in an error of ours, before anything starts.

`tests/input/test_misuse.py` has those of `load`, which needs TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import darkroom
from darkroom.errors import DarkroomError, DataError, UsageError
from darkroom.options.conversion import ConversionOptions

from ..signatures import call

pytestmark = pytest.mark.slow

THING = object()
CONVERT = [
    *[("source", value) for value in (None, 5, 1.5, b"x", [], {}, THING, "", "\0", ("a",), "x")],
    *[("output_dir", value) for value in (None, 5, b"x", [], THING, "", "\0", "/", "/proc/x")],
    *[("output_dir", value) for value in ("/proc/self/fd/x/y", "/dev/null", "/dev/null/x")],
    *[("columns", value) for value in (5, 1.5, b"x", [], THING, "", "x", "[]", {"a": 5})],
    *[("columns", value) for value in ({}, {"a": "imaeg"}, {5: "image"}, {"": "image"})],
    *[("label_map", value) for value in (5, 1.5, THING, "", "\0", [], [5], ["a", "a"], "none")],
    *[("split_ratios", value) for value in (5, [], THING, "", "80/20", "nan/nan/nan")],
    *[("seed", value) for value in ("5", 1.5, THING, True, 10**30, -(10**4000))],
    *[("source_encoding", value) for value in (None, 5, b"x", THING, "", "\0", "utf-99", "hex")],
    *[("allowed_roots", value) for value in (None, 5, 1.5, THING, True, [None], ["\0"], ["none"])],
    *[("exclude", value) for value in (5, b"x", [], THING, "", "\0", "none", "/", "/dev/zero")],
    *[("image_check", value) for value in (None, 5, [], {}, THING, "", "fully")],
    *[("resize_short_side", value) for value in (0, -1, 1.5, "256", True, THING, 10**30)],
    *[("encoding", value) for value in (None, 5, [], THING, "", "jpeg")],
    *[("jpeg_quality", value) for value in (None, 0, 101, 1.5, "90", True, THING, 10**30)],
    *[("compression", value) for value in (None, 5, [], {}, THING, "", "zip")],
    *[("num_shards", value) for value in (-1, 1.5, "8", True, [], THING, {"tran": 8})],
    *[("num_shards", value) for value in ({"train": 0}, {"train": "8"}, {5: 8, "x": 8})],
    *[("max_rejects", value) for value in (-1, 2, "0.5", [], THING, float("nan"))],
    *[("overwrite", value) for value in (None, "no", 5, [], THING)],
    *[("wait", value) for value in (None, "no", 5)],
    *[("runner", value) for value in (5, [5], THING, "x")],
    *[("project", value) for value in (5, "x")],
    *[("region", value) for value in (5, "x")],
    *[("options", value) for value in (5, {}, THING, {"image_check": "full"})],
    *[("beam_options", value) for value in (5, "x", THING, {"none": 1}, {5: 1})],
]
DIRECTORIES = (None, 5, 1.5, b"x", [], {}, THING, "", "\0", "none", "/dev/null", "none/*")
VERIFY = [
    *[("num_threads", value) for value in (-1, 0, 1.5, float("nan"), "8", b"8", THING, 10**30)],
    *[("num_threads", value) for value in (True, [])],
]
INSPECT = [
    *[("split", value) for value in (None, 5, [], THING, "", "tran", "TEST/../x")],
    *[("n", value) for value in (None, 0, -1, 1.5, "5", True, THING, 10**30)],
    *[("output_dir", value) for value in (None, 5, b"x", THING, "", "\0", "/proc/x", "/dev/null")],
]
DUPLICATES = [("output", value) for value in (5, b"x", [], THING, "", "\0", "/proc/x", "/", "no/x")]


@pytest.fixture
def csv(jpeg_set, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return jpeg_set.csv


def _end(call: Callable[..., object], name: str, value: object) -> str:
    """Returns how a call ends: the class of its error, or "accepted"."""
    try:
        call(**{name: value})
    except DarkroomError as error:
        return "defect" if error.exit_code == DarkroomError.exit_code else type(error).__name__
    except Exception as error:  # noqa: BLE001  any other one is what is looked for
        return f"{type(error).__name__}: {error}"
    return "accepted"


def _find_others(call: Callable[..., object], cases: list[tuple[str, object]]) -> list[str]:
    """Returns the calls that do not end in an error of ours."""
    ends = ((name, f"{value!s:.40}", _end(call, name, value)) for name, value in cases)
    return [
        f"{name}={value}: {end}"
        for name, value, end in ends
        if not end.endswith("Error") or ":" in end
    ]


def test_convert_refuses_wrong_arguments(csv):
    def convert(source: object = csv, output_dir: object = "out", **options: Any) -> None:
        call(darkroom.convert, ConversionOptions, source, output_dir, **options)

    assert len(CONVERT) > 100
    assert _find_others(convert, CONVERT) == []
    assert not Path("out/dataset.json").exists()


@pytest.mark.parametrize("function", ["verify", "inspect", "find_duplicates"])
def test_a_folder_must_be_one(csv, function):
    for directory in DIRECTORIES:
        if function == "verify" and directory == "/dev/null":
            assert not darkroom.verify(directory).is_sound
            continue
        with pytest.raises(DarkroomError) as caught:
            getattr(darkroom, function)(directory)
        assert caught.value.exit_code in (1, 2, 3), directory


def test_the_others_refuse_wrong_arguments(csv):
    darkroom.convert(csv, "records")
    functions = {"verify": VERIFY, "inspect": INSPECT, "find_duplicates": DUPLICATES}
    for name, cases in functions.items():
        assert _find_others(partial(getattr(darkroom, name), "records"), cases) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"allowed_roots": 5}, "allowed_roots must be a list of folders, got 5"),
        ({"overwrite": "no"}, "overwrite is 'no', expected True or False"),
        ({"seed": 10**30}, "seed is 10+, which is too large"),
    ],
)
def test_the_error_names_the_argument(csv, arguments, said):
    with pytest.raises(UsageError, match=said):
        call(darkroom.convert, ConversionOptions, csv, "out", **arguments)


def test_one_folder_may_be_given_as_such(csv):
    assert darkroom.convert(csv, "out", options=ConversionOptions(allowed_roots=csv.parent)).written


@pytest.mark.parametrize("options", [{"num_shards": -1}, {"schema": 5}, {"dataflow_options": 5}])
def test_a_frame_refuses_wrong_arguments(csv, options):
    pd = pytest.importorskip("pandas")
    with pytest.raises(DarkroomError):
        pd.read_csv(csv).tensorflow.to_tfr("out", **options)


def test_a_label_that_is_not_one_rejects_its_row(csv):
    pd = pytest.importorskip("pandas")
    frame = pd.read_csv(csv)
    frame["image_uri"] = [str(csv.parent / uri) for uri in frame["image_uri"]]
    labels: list[object] = frame["label"].tolist()
    labels[:3] = [THING, 1e300, {"a": 1}]
    frame["label"] = pd.Series(labels, dtype=object)
    result = frame.tensorflow.to_tfrecord("out", max_rejects=1)
    assert result.rejected == {"bad_value": 3}
    assert not any("0x" in label or "e+300" in label for label in result.labels)


def test_labels_in_the_index_or_under_a_number_are_not_lost(csv):
    pd = pytest.importorskip("pandas")
    frame = pd.read_csv(csv)
    with pytest.raises(DataError, match=r"no text for a name: \[0\].*rename"):
        frame.rename(columns={"label": 0}).tensorflow.to_tfrecord("out")
    with pytest.raises(DataError, match=r"index .*\['split', 'label'\].*reset_index"):
        frame.set_index(["split", "label"]).tensorflow.to_tfrecord("out")
