"""What TensorFlow may print when a library call imports it."""

from __future__ import annotations

import pytest

from darkroom.runtime import streams


@pytest.mark.parametrize(
    ("has_gpu", "given", "expected"),
    [(False, None, "3"), (True, None, "2"), (False, "0", "0"), (True, "0", "0")],
)
def test_errors_of_tensorflow_are_shown_where_a_gpu_may_fail(monkeypatch, has_gpu, given, expected):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", given or "")
    if given is None:
        monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL")
    monkeypatch.delitem(streams.sys.modules, "tensorflow", raising=False)
    monkeypatch.setattr(streams, "may_have_gpu", lambda: has_gpu)
    streams.quiet_tensorflow()
    assert streams.os.environ["TF_CPP_MIN_LOG_LEVEL"] == expected
