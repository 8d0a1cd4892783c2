"""What the traceback of a public call shows: the call, and one error with its hint."""

from __future__ import annotations

import sys
import traceback

import pandas as pd
import pytest

import darkroom
from darkroom.errors import DarkroomError, DataError, MissingExtraError, UsageError
from darkroom.runtime.lazy_names import load_name
from darkroom.runtime.process import begin_at_call


@begin_at_call
def _resize(width, *, height=1):
    return "x" * width + height


def _show(error: BaseException) -> list[str]:
    """Returns the lines from the call on, below those of the test."""
    (_, *frames), last = traceback.extract_tb(error.__traceback__), str(error)
    shown = "".join(traceback.format_exception(error))
    assert shown.count("Traceback (most recent call last)") == 1
    assert shown.endswith(f"{last}\n")
    return [frame.name for frame in frames]


def _call(function, *args, **options):
    with pytest.raises(Exception) as caught:  # noqa: PT011  looked at by the tests
        function(*args, **options)
    return caught.value


FRAME = pd.DataFrame({"image_uri": ["/none/a.png"], "label": ["cat"]})


@pytest.mark.parametrize("name", ["convert", "to_tfrecord", "to_tfr"])
def test_an_error_of_a_conversion_is_shown_below_its_call(name, tmp_path):
    calls = {
        "convert": lambda: darkroom.convert(FRAME, tmp_path / "out", split_ratios="1/2"),
        "to_tfrecord": lambda: FRAME.tensorflow.to_tfrecord(tmp_path / "out", split_ratios="1/2"),
        "to_tfr": lambda: FRAME.tensorflow.to_tfr(tmp_path / "out", compression="zip"),
    }
    error = _call(calls[name])
    assert type(error) is UsageError
    assert _show(error) == ["<lambda>", "call"]


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        ((3,), {"hight": 1}, "got an unexpected keyword argument 'hight'. Did you mean height?"),
        ((3,), {"colour": 1}, "got an unexpected keyword argument 'colour'"),
        ((), {}, "missing 1 required positional argument: 'width'"),
        ((1, 2), {}, "takes 1 positional argument but 2 were given"),
    ],
)
def test_arguments_that_do_not_fit_are_pythons_error_with_the_near_name(arguments, options, said):
    error = _call(_resize, *arguments, **options)
    assert type(error) is TypeError
    assert str(error).replace("'height'?", "height?") == f"_resize() {said}"
    assert _show(error) == ["call"]


def test_a_type_error_of_the_function_itself_keeps_its_frames():
    assert _show(_call(_resize, 3)) == ["call", "_resize"]


@pytest.mark.parametrize(("kind", "frames"), [(DataError, 1), (DarkroomError, 2)])
def test_a_defect_keeps_its_frames(kind, frames):
    @begin_at_call
    def fail():
        raise kind("The plan has no a.")

    assert len(_show(_call(fail))) == frames


def test_a_missing_extra_is_one_exception(tmp_path, monkeypatch):
    (tmp_path / "needs_tfx.py").write_text("import tfx\n\nName = 1\n")
    (tmp_path / "lazily").mkdir()
    (tmp_path / "lazily" / "__init__.py").write_text(
        "from darkroom.runtime import lazy_names\n\n\n"
        "def __getattr__(name):\n"
        "    return lazy_names.load_name('lazily', name, {'Name': 'needs_tfx'})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "tfx", None)

    def import_name():
        from lazily import Name  # noqa: F401

    error = _call(import_name)
    assert type(error) is MissingExtraError
    assert "import_module" not in _show(error)
    error = _call(load_name, "lazily", "Name", {"Name": "needs_tfx"})
    assert _show(error)[-1] == "load_name"
