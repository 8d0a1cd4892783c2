"""Writes the digests that the tags of images have now into the kustomizations of a folder.

    python tools/pin_images.py kubernetes

Run it again after a change of a tag, and to take what a tag has become. `docker buildx` asks the
registries, with the logins of `docker login`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

_FORMAT = "{{.Manifest.Digest}}"
_PLACE = re.compile(r"^( +)newTag: .*\n(?: +digest: .*\n)?", re.M)


def find_digest(image: str) -> str:
    """Returns the digest of an image in its registry; for several platforms, that of their list."""
    command = ["docker", "buildx", "imagetools", "inspect", "--format", _FORMAT, image]
    digest = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise ValueError(f"docker says that the digest of {image} is {digest!r}.")
    return digest


def pin(text: str) -> str:
    """Returns a kustomization with the digest of each image below its `newTag`."""
    images = [each for each in yaml.safe_load(text).get("images", []) if "newTag" in each]
    digests = (
        find_digest(f"{each.get('newName', each['name'])}:{each['newTag']}") for each in images
    )

    def add(found: re.Match[str]) -> str:
        tag = found[0].splitlines()[0]
        return f"{tag}\n{found[1]}digest: {next(digests)}\n"

    return _PLACE.sub(add, text)


if __name__ == "__main__":
    for path in sorted(Path(sys.argv[1]).rglob("kustomization.yaml")):
        path.write_text(pin(path.read_text()))
