"""The list of packages in an image, made for this environment."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATUS = """\
Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.41-12+deb13u1
Description: GNU C Library
 Version: of a continued line

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1.0

Package: tzdata
Status: install ok installed
Architecture: all
Version: 1:2025b-4
"""


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("sbom")
    (folder / "status").write_text(STATUS)
    output = folder / "sbom.json"
    command = [sys.executable, str(ROOT / "tools/make_sbom.py"), "--output", str(output)]
    subprocess.run([*command, "--packages", str(folder / "status")], check=True)
    return json.loads(output.read_text())


def test_it_lists_the_installed_packages_of_debian(document: dict[str, Any]) -> None:
    purls = [each["purl"] for each in document["components"] if each["purl"].startswith("pkg:deb/")]
    assert purls == [
        "pkg:deb/debian/libc6@2.41-12%2Bdeb13u1?arch=amd64",
        "pkg:deb/debian/tzdata@1%3A2025b-4?arch=all",
    ]


def test_it_lists_every_package_of_python_with_its_version(document: dict[str, Any]) -> None:
    found = {each["purl"] for each in document["components"]}
    for name in ("apache-beam", "pyarrow", "numpy", "pytest"):
        assert f"pkg:pypi/{name}@{importlib.metadata.version(name)}" in found
    python = [purl for purl in found if purl.startswith("pkg:generic/python@")]
    assert python == [f"pkg:generic/python@{'.'.join(map(str, sys.version_info[:3]))}"]


def test_it_names_licences_by_spdx(document: dict[str, Any]) -> None:
    subject = document["metadata"]["component"]
    assert subject["type"] == "application"
    assert subject["licenses"] == [{"expression": "Apache-2.0"}]
    found = {each["name"]: each.get("licenses") for each in document["components"]}
    # By expression, by classifier, and in words that leave open which one.
    assert found["pytest"] == [{"license": {"id": "MIT"}}] or found["pytest"] == [
        {"expression": "MIT"}
    ]
    assert found["apache-beam"] == [{"license": {"id": "Apache-2.0"}}]
    for licences in filter(None, found.values()):
        for each in licences:
            assert "expression" in each or each["license"].keys() <= {"id", "name"}


def test_each_reference_leads_to_one_component(document: dict[str, Any]) -> None:
    subject = document["metadata"]["component"]
    references = [each["bom-ref"] for each in [subject, *document["components"]]]
    assert len(references) == len(set(references))
    edges = {each["ref"]: each["dependsOn"] for each in document["dependencies"]}
    assert {*edges, *(to for ends in edges.values() for to in ends)} <= set(references)


def test_darkroom_depends_on_its_requirements_and_not_on_its_extras(
    document: dict[str, Any],
) -> None:
    edges = {each["ref"]: each["dependsOn"] for each in document["dependencies"]}
    needs = edges[document["metadata"]["component"]["bom-ref"]]
    names = {need.removeprefix("pkg:pypi/").partition("@")[0] for need in needs}
    assert {"msgspec", "pyarrow", "duckdb"} <= names
    assert names & {"apache-beam", "pytest", "tfx", "tensorflow"} == set()
