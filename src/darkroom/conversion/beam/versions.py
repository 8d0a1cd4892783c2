"""The versions that a worker must share with the client, so that all bytes are equal.

The client's versions travel with the tasks. A worker that has others stops the job before it writes
anything: its files would differ from those of other workers and of other runs.
"""

from __future__ import annotations

import platform
import zlib
from collections.abc import Mapping

import PIL
import pyarrow as pa
import simplejpeg

from darkroom.errors import StorageError
from darkroom.runtime.plain_beam import beam
from darkroom.version import __version__, hash_code

# Each of these can change a byte of a dataset:
# - darkroom makes the records, the index and the lists (a hash of that code is compared, too);
# - Python reads the pickles of another one, which is promised for equal minor versions;
# - pyarrow writes its own version, and its own choice of encodings, into index and rejects;
# - Pillow and simplejpeg have codecs, which decode and encode the images that are not copied;
# - zlib compresses gzip files, so it only counts if any exist.
# Beam only moves tasks and reports, and the last number of Python's version fixes errors: a mix of
# these changes nothing. They are told, because they help to understand a failure.
_TOLD = ("Beam",)


def find_versions(*, compressed: bool = False) -> dict[str, str]:
    """Returns the versions that this process has, by name: plain text, which any version reads.

    Args:
        compressed: Whether record files are gzip.
    """
    found = {
        "darkroom": f"{__version__} (code {hash_code()})",
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "pyarrow": str(pa.__version__),
        "Pillow": PIL.__version__,
        "simplejpeg": str(simplejpeg.__version__),
    }
    if compressed:
        found["zlib"] = zlib.ZLIB_RUNTIME_VERSION
    return {**found, "Beam": str(beam.__version__)}


def check_versions(client: Mapping[str, str]) -> None:
    """Checks that this worker writes the same bytes as the client would.

    Args:
        client: The result of `find_versions` there.

    Raises:
        StorageError: It may not.
    """
    own = find_versions(compressed="zlib" in client)
    differing = [name for name in client if own.get(name) != client[name]]
    if not set(differing).difference(_TOLD):
        return
    here, there = (
        ", ".join(f"{name} {versions.get(name, 'unknown')}" for name in differing)
        for versions in (own, client)
    )
    raise StorageError(
        f"A worker ({platform.node()}) has {here}, but the client has {there}. The files that it "
        "writes would differ.",
        "Install the client's versions where the workers run, or run the client in their image.",
    )
