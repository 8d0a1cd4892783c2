"""Maps the repository's folders to import packages. All metadata is in pyproject.toml.

src/darkroom/  -> darkroom
components/    -> darkroom.components
pipelines/     -> darkroom.pipelines

Must not import the project: Beam runs this file on its own when it stages an sdist.
"""

from setuptools import find_packages, setup

_MAPPED = {"darkroom.components": "components", "darkroom.pipelines": "pipelines"}

_packages = find_packages("src")
for _name, _dir in _MAPPED.items():
    _packages += [_name, *(f"{_name}.{sub}" for sub in find_packages(_dir))]

setup(packages=_packages, package_dir={"": "src", **_MAPPED})
