"""Writes the Python and Debian packages of an image as a CycloneDX document.

The build of the image runs it with the interpreter of the environment to list. It needs only the
standard library. The document has no time and no serial number, so that the same packages give the
same bytes.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from urllib.parse import quote

Component = dict[str, object]

_NAME = "darkroom-data"
# What packages write instead of SPDX's id. "BSD License" is left out: there are several.
_SPDX = {
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 2-Clause": "BSD-2-Clause",
    "BSD 3-Clause": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
_MARKER = re.compile(r"""extra\s*==\s*['"]""")


def build_document(debian: str) -> dict[str, object]:
    """Builds the CycloneDX 1.6 document of this environment.

    Args:
        debian: Text of dpkg's status file.

    Returns:
        The document: darkroom as its subject, every other package as a component.
    """
    found = {normalize(each.metadata["Name"]): each for each in distributions()}
    python = [build_python_component(each) for name, each in sorted(found.items()) if name != _NAME]
    system = [build_debian_component(fields) for fields in parse_packages(debian)]
    interpreter = build_component("application", "python", platform.python_version(), "generic")
    subject = {**build_python_component(found[_NAME]), "type": "application"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": subject},
        "components": [interpreter, *python, *system],
        "dependencies": [build_dependency(each, found) for _, each in sorted(found.items())],
    }


def build_component(kind: str, name: str, release: str, ecosystem: str) -> Component:
    """Builds a component whose reference is its package URL."""
    purl = f"pkg:{ecosystem}/{quote(name)}@{quote(release, safe='')}"
    return {"type": kind, "bom-ref": purl, "name": name, "version": release, "purl": purl}


def build_python_component(package: Distribution) -> Component:
    """Builds the component of a Python package, with what it says of its licence."""
    component = build_component(
        "library", normalize(package.metadata["Name"]), package.version, "pypi"
    )
    if licences := list_licences(package):
        component["licenses"] = licences
    return component


def list_licences(package: Distribution) -> list[dict[str, object]]:
    """Lists the licences of a package: by SPDX where that is clear, else in its own words."""
    metadata = package.metadata
    if expression := metadata["License-Expression"]:
        return [{"expression": expression}]
    classifiers = metadata.get_all("Classifier") or []
    names = [each.split(" :: ")[-1] for each in classifiers if each.startswith("License :: ")]
    # Some put the whole text of the licence here.
    text = (metadata["License"] or "").strip()
    if text in _SPDX.values():
        return [{"license": {"id": text}}]
    if not names and text and "\n" not in text:
        names = [text]
    return [
        {"license": {"id": _SPDX[name]} if name in _SPDX else {"name": name}}
        for name in sorted({*names})
    ]


def build_debian_component(fields: dict[str, str]) -> Component:
    """Builds the component of a Debian package from its fields in dpkg's status file."""
    component = build_component("library", f"debian/{fields['Package']}", fields["Version"], "deb")
    purl = f"{component['purl']}?arch={fields['Architecture']}"
    return {**component, "name": fields["Package"], "purl": purl, "bom-ref": purl}


def build_dependency(package: Distribution, found: dict[str, Distribution]) -> dict[str, object]:
    """Builds the edges from a Python package to its installed requirements.

    Requirements of extras are left out.
    """
    needs = [need for need in package.requires or () if not _MARKER.search(need)]
    names = {normalize(re.split(r"[^A-Za-z0-9._-]", need, maxsplit=1)[0]) for need in needs}
    return {"ref": _refer(package), "dependsOn": sorted(_refer(found[n]) for n in names & {*found})}


def parse_packages(status: str) -> Iterator[dict[str, str]]:
    """Yields the fields of each installed package of a dpkg status file, in its order."""
    for paragraph in status.split("\n\n"):
        fields = dict(re.findall(r"^(\S+): (.*)$", paragraph, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            yield fields


def normalize(name: str) -> str:
    """Returns a Python package's name as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _refer(package: Distribution) -> str:
    name = normalize(package.metadata["Name"])
    return str(build_component("library", name, package.version, "pypi")["purl"])


def main() -> None:
    """Reads dpkg's status file and writes the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=Path, required=True, help="dpkg's status file")
    parser.add_argument("--output", type=Path, required=True, help="the document")
    arguments = parser.parse_args()
    document = build_document(arguments.packages.read_text(encoding="utf-8"))
    arguments.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
