"""The seal of a compiled file: a line with the hash of all other lines.

It proves that `darkroom compile` wrote the file and that nobody changed it since, wherever the file
was copied to. So the file may be replaced.
"""

from __future__ import annotations

import hashlib
import os
import re

from darkroom import storage
from darkroom.errors import OutputError
from darkroom.options.targets import KUBEFLOW, VERTEX

# After this line comes the seal: as a comment, or as a label, because JSON has no comments.
_PLACES = {
    KUBEFLOW: ("# PIPELINE DEFINITION\n", "# SHA-256 of the other lines, its first half: {}\n"),
    VERTEX: (' "labels": {\n', '  "darkroom_sha256": "{}",\n'),
}
# A label of Vertex has at most 63 characters.
_HEX_DIGITS = 32
_SEALS = "|".join(line.format(f"[0-9a-f]{{{_HEX_DIGITS}}}") for _, line in _PLACES.values())
_SEAL = re.compile(f"(?m)^(?:{_SEALS})")
_MAX_BYTES = 1 << 26


def seal_text(text: str, target: str) -> str:
    """Returns the text of a compiled file with its seal.

    Args:
        text: As `format_documents` returns it.
        target: `kubeflow` or `vertex`.
    """
    place, line = _PLACES[target]
    return text.replace(place, place + line.format(_hash(text)), 1)


def check_replaceable(path: str, text: str) -> None:
    """Checks that a path is free, or has a compiled file that nobody changed.

    Args:
        path: Where a compiled file will be written.
        text: The text that will be written there.

    Raises:
        OutputError: There is another file.
    """
    if storage.exists(path) and not _can_go(path, text):
        raise OutputError(
            f"{path} is a file that darkroom did not write, or that changed since.",
            "Move it elsewhere, or choose another file with -o.",
        )


def _can_go(path: str, text: str) -> bool:
    if not storage.is_remote(path) and os.path.islink(storage.local_path(path)):
        return False
    try:
        there = storage.read_bytes(path, _MAX_BYTES).decode()
    except (*storage.UNUSABLE, UnicodeDecodeError):
        return False
    # A file of version 0.1.0 has no seal.
    return there in ("", text, _unseal(text)) or _is_sealed(there)


def _unseal(text: str) -> str:
    return _SEAL.sub("", text, count=1)


def _is_sealed(text: str) -> bool:
    rest = _unseal(text)
    return rest != text and any(seal_text(rest, target) == text for target in _PLACES)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HEX_DIGITS]
