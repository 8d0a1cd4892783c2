"""What TensorFlow may print when a library call imports it."""

from __future__ import annotations

import os

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
    with streams.quiet_tensorflow():
        assert streams.os.environ["TF_CPP_MIN_LOG_LEVEL"] == expected


def test_what_a_signal_interrupts_is_written_once(tmp_path, monkeypatch):
    write = streams._PatientFile.write

    def interrupted(self, data):
        write(self, data)
        raise KeyboardInterrupt

    path = tmp_path / "out"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    with streams.open_patiently(descriptor, "utf-8", None, closes=True) as stream:
        with monkeypatch.context() as patch:
            patch.setattr(streams._PatientFile, "write", interrupted)
            with pytest.raises(KeyboardInterrupt):
                print("once", file=stream, flush=True)
        print("then", file=stream)
    assert path.read_text() == "once\nthen\n"
