"""GPUs of this machine, and what is said of one that TensorFlow does not use."""

from __future__ import annotations

from pathlib import Path

import pytest

from darkroom.runtime import gpus


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
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "void")
    path = tmp_path / "[system]" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert gpus.may_have_gpu(str(tmp_path / "[system]")) is expected
    # As an image for GPUs has it.
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "all")
    assert gpus.may_have_gpu(str(tmp_path / "[system]"))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch) -> tuple[Path, Path]:
    """The folder of installed packages, and the root of a machine with a GPU."""
    for name in ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    packages, system = tmp_path / "site-packages", tmp_path / "[system]"
    packages.mkdir()
    (system / "dev").mkdir(parents=True)
    (system / "dev/nvidia0").touch()
    return packages, system


def explain(machine: tuple[Path, Path], version: str = "2.21.0") -> str | None:
    return gpus.explain_idle_gpu(version, *map(str, machine))


def test_without_a_gpu_nothing_is_said(machine):
    _, system = machine
    (system / "dev/nvidia0").rename(system / "dev/nvidiactl")  # there without a GPU, too
    (system / "proc/driver/nvidia").mkdir(parents=True)
    assert explain(machine) is None


def test_a_gpu_that_was_hidden_on_purpose_is_left_alone(machine, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert explain(machine) is None


def test_without_its_libraries_a_command_installs_them(machine):
    assert explain(machine, "2.16.2") == (
        "This machine has a GPU (/dev/nvidia0), but TensorFlow finds none and uses the processor. "
        "To install its libraries: pip install 'tensorflow[and-cuda]==2.16.2'."
    )


def test_2_21_is_told_where_cusolver_is(machine, monkeypatch):
    solver = machine[0] / "nvidia/cusolver/lib"
    solver.mkdir(parents=True)
    said = explain(machine)
    assert said
    assert said.endswith(
        f"2.21.0 does not find cuSOLVER: start it with {solver} in LD_LIBRARY_PATH."
    )
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/usr/lib:{solver}")
    for_another_reason = explain(machine)
    assert for_another_reason
    assert for_another_reason.endswith("TF_CPP_MAX_VLOG_LEVEL=1 shows the missing libraries.")
    monkeypatch.delenv("LD_LIBRARY_PATH")
    assert explain(machine, "2.20.0") == for_another_reason
