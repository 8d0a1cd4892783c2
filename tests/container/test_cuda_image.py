"""The image with CUDA, built and run (make test-image): needs a container engine and a C compiler.

DARKROOM_CUDA_IMAGE names an image that was built already. BUILD_FLAGS is passed to the build. It
needs no GPU: a stand-in for the driver has one, and nothing runs on it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import darkroom

ROOT = Path(__file__).resolve().parents[2]
ENGINE = os.environ.get("DOCKER", "docker")
CONFINED = (
    "--read-only", "--network=none", "--tmpfs=/tmp", "--cap-drop=ALL",
    "--security-opt=no-new-privileges", "--user=65532:65532",
)  # fmt: skip
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


def call(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def image() -> str:
    if not shutil.which(ENGINE) or call(ENGINE, "info").returncode:
        pytest.skip("no container engine runs here")
    name = os.environ.get("DARKROOM_CUDA_IMAGE", "")
    if not name:
        name = "darkroom:test-cuda"
        subprocess.run(["make", "image", "STAGE=cuda", f"IMAGE={name}"], cwd=ROOT, check=True)
    return name


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
    done = call(ENGINE, "run", "--rm", *CONFINED, *options, image, *arguments)
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
