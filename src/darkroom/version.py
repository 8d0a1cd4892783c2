"""Which darkroom this is: its version, its code, and the folder that it was imported from."""

import hashlib
from functools import lru_cache
from pathlib import Path

__version__ = "0.3.0.dev0"

PACKAGE_FOLDER = str(Path(__file__).resolve().parent)

# All code that decides a byte of a dataset.
_MAKES_BYTES = ("conversion", "dataset", "images", "manifest", "targets")


@lru_cache(maxsize=1)
def hash_code() -> str:
    """Returns a hash of the code that makes the bytes of a dataset, 16 hexadecimal digits.

    A version stands for many states of the code between two releases. This tells them apart in a
    checkout, in an image and on a worker alike.
    """
    digest = hashlib.sha256()
    for package in _MAKES_BYTES:
        folder = Path(PACKAGE_FOLDER, package)
        for path in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).parts):
            digest.update(f"{path.relative_to(PACKAGE_FOLDER).as_posix()}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
