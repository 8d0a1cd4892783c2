"""Maps the repository's folders to import packages. All metadata is in pyproject.toml.

src/darkroom/  -> darkroom
components/    -> darkroom.components
pipelines/     -> darkroom.pipelines

The long description is the README without the links that lead to files of the repository: an
index of packages has none of them.

Must not import the project: Beam runs this file on its own when it stages an sdist.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup

_MAPPED = {"darkroom.components": "components", "darkroom.pipelines": "pipelines"}

_packages = find_packages("src")
for _name, _dir in _MAPPED.items():
    _packages += [_name, *(f"{_name}.{sub}" for sub in find_packages(_dir))]

_readme = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
_readme = re.sub(r"^!\[[^\]]*\]\((?!https:)[^)]*\)\n\n", "", _readme, flags=re.MULTILINE)
_readme = re.sub(r"\[([^\]]*)\]\((?!https:)[^)]*\)", r"\1", _readme)

setup(
    packages=_packages,
    package_dir={"": "src", **_MAPPED},
    long_description=_readme,
    long_description_content_type="text/markdown",
)
