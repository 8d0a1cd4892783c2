"""The versions that a worker must share with the client, so that all bytes are equal.

The client's versions travel with the tasks. A worker that has others stops the job before it writes
anything: its files would differ from those of other workers and of other runs.
"""

from __future__ import annotations

import platform
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import metadata

from darkroom.errors import StorageError
from darkroom.runtime.plain_beam import beam
from darkroom.version import __version__, hash_code

# Each of these can change a byte of a dataset:
# - darkroom makes the records, the index and the lists (a hash of that code is compared, too);
# - Python reads the pickles of another one, which is promised for equal minor versions;
# - pyarrow writes its own version, and its own choice of encodings, into index and rejects;
# - Pillow, pillow-heif and simplejpeg have codecs, which decode and encode the images that are not
#   copied;
# - zlib compresses gzip files, so it only counts if any exist.
# Beam only moves tasks and reports, and the last number of Python's version fixes errors: a mix of
# these changes nothing. They are told, because they help to understand a failure.
_MAKE_BYTES = ("Pillow", "pillow-heif", "pyarrow", "simplejpeg")
# What is computed by it is exact in any version, but these import only with the one of their time.
_NEEDED = "numpy"
_TOLD = ("Beam",)


def find_versions(*, compressed: bool = False) -> dict[str, str]:
    """Returns the versions that this process has, by name: plain text, which any version reads.

    Args:
        compressed: Whether record files are gzip.
    """
    found = {
        "darkroom": f"{__version__} (code {hash_code()})",
        "Python": ".".join(platform.python_version_tuple()[:2]),
        **dict(_find_installed(*_MAKE_BYTES)),
    }
    if compressed:
        found["zlib"] = zlib.ZLIB_RUNTIME_VERSION
    return {**found, "Beam": str(beam.__version__)}


def list_pins() -> list[str]:
    """Returns what a worker installs to have this process's versions, as pip reads it."""
    return [f"{name}=={version}" for name, version in _find_installed(*_MAKE_BYTES, _NEEDED)]


def _find_installed(*names: str) -> Iterator[tuple[str, str]]:
    """Yields those distributions that are installed, with their versions."""
    for name in names:
        with suppress(metadata.PackageNotFoundError):
            yield name, metadata.version(name)


def format_versions(versions: Mapping[str, str], names: Iterable[str]) -> str:
    """Returns versions in words: "Python 3.10, no pillow-heif"."""
    return ", ".join(
        f"{name} {versions[name]}" if name in versions else f"no {name}" for name in names
    )


def check_versions(client: Mapping[str, str]) -> None:
    """Checks that this worker writes the same bytes as the client would.

    Args:
        client: The result of `find_versions` there.

    Raises:
        StorageError: It may not.
    """
    own = find_versions(compressed="zlib" in client)
    differing = [name for name in {**client, **own} if own.get(name) != client.get(name)]
    if not set(differing).difference(_TOLD):
        return
    here, there = (format_versions(versions, differing) for versions in (own, client))
    raise StorageError(
        f"A worker ({platform.node()}) has {here}, but the client has {there}. The files that it "
        "writes would differ.",
        "Install the client's versions where the workers run, or run the client in their image.",
    )
