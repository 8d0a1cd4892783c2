"""What TensorFlow may print when a library call imports it."""

from __future__ import annotations

from pathlib import Path

import pytest

from darkroom.runtime import logs


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("nothing", "", False),
        ("proc/driver/nvidia", "", True),
        ("dev/dxg", "", True),
        ("dev/kfd", "", True),
        ("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n", True),
        ("sys/bus/pci/devices/0000:01:00.0/vendor", "0x8086\n", False),
    ],
)
def test_a_gpu_is_seen_with_its_driver_and_without(
    tmp_path: Path, monkeypatch, name, text, expected
):
    monkeypatch.delenv("NVIDIA_VISIBLE_DEVICES", raising=False)
    path = tmp_path / "[system]" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert logs._may_have_gpu(str(tmp_path / "[system]")) is expected


@pytest.mark.parametrize(
    ("value", "expected"), [("all", True), ("0", True), ("void", False), ("none", False)]
)
def test_an_image_for_gpus_says_so(tmp_path: Path, monkeypatch, value, expected):
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", value)
    assert logs._may_have_gpu(str(tmp_path)) is expected


@pytest.mark.parametrize(
    ("has_gpu", "given", "expected"),
    [(False, None, "3"), (True, None, "2"), (False, "0", "0"), (True, "0", "0")],
)
def test_errors_of_tensorflow_are_shown_where_a_gpu_may_fail(monkeypatch, has_gpu, given, expected):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", given or "")
    if given is None:
        monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL")
    monkeypatch.delitem(logs.sys.modules, "tensorflow", raising=False)
    monkeypatch.setattr(logs, "_may_have_gpu", lambda: has_gpu)
    logs.quiet_tensorflow()
    assert logs.os.environ["TF_CPP_MIN_LOG_LEVEL"] == expected
