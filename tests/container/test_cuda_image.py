"""The image with CUDA, built or named by DARKROOM_CUDA_IMAGE, and run; needs a C compiler.

It needs no GPU: a stand-in for the driver has one, and nothing runs on it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import darkroom

from .conftest import find_image, run_image

# Where Docker, and where GKE's nodes, mount the driver.
FOLDERS = ["/usr/lib/x86_64-linux-gnu", "/usr/local/nvidia/lib64"]
DRIVER = ("libcuda.so.1", "libnvidia-ml.so.1")
LIST_GPUS = """
import json
import tensorflow as tf
gpus = len(tf.config.list_physical_devices("GPU"))
with open("/proc/self/maps") as maps:
    paths = {line.split()[-1] for line in maps if "/nvidia/" in line}
print(json.dumps([gpus, sorted({path.partition("/nvidia/")[2].split("/")[0] for path in paths})]))
"""

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def image() -> str:
    return find_image("DARKROOM_CUDA_IMAGE", "darkroom:test-cuda", "STAGE=cuda")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the libraries of a driver that has one GPU."""
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("driver")
    source = str(Path(__file__).with_name("driver.c"))
    for name in DRIVER:
        flags = ("-shared", "-fPIC", f"-Wl,-soname,{name}")
        subprocess.run(["cc", *flags, "-o", str(folder / name), source], check=True)
    return folder


def run(image: str, *arguments: str, options: tuple[str, ...] = ()) -> str:
    done = run_image(image, *arguments, options=options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def list_gpus(image: str, *options: str) -> tuple[int, set[str]]:
    """Returns how many GPUs TensorFlow finds, and the packages of NVIDIA that it has loaded."""
    out = run(image, "-c", LIST_GPUS, options=("--entrypoint=python", *options))
    gpus, packages = json.loads(out.splitlines()[-1])
    return gpus, set(packages)


@pytest.mark.parametrize("folder", FOLDERS)
def test_tensorflow_finds_the_gpu_and_all_libraries(image: str, driver: Path, folder: str) -> None:
    mounted = [f"--volume={driver / name}:{folder}/{name}:ro" for name in DRIVER]
    gpus, packages = list_gpus(image, *mounted)
    assert gpus == 1
    assert packages >= {"cublas", "cuda_runtime", "cudnn", "cufft", "cusolver", "cusparse"}


def test_without_a_driver_it_is_the_same_program(image: str) -> None:
    assert list_gpus(image)[0] == 0
    assert run(image, "--version").strip() == f"darkroom {darkroom.__version__}"


def test_its_list_of_packages_has_the_libraries(image: str) -> None:
    code = "print(open('/opt/darkroom/sbom.cdx.json').read())"
    document = json.loads(run(image, "-c", code, options=("--entrypoint=python",)))
    purls = {each["purl"].partition("@")[0] for each in document["components"]}
    assert {f"pkg:pypi/nvidia-{name}-cu12" for name in ("cudnn", "cusolver", "nccl")} <= purls
    assert "pkg:pypi/tfx" in purls
