"""Remote stores (gs://, s3://) by Beam's FileSystems; for `darkroom.storage` alone."""

from __future__ import annotations

import importlib.util
from typing import Any, cast

from darkroom.errors import StorageError, build_missing_extra_error

_EXTRAS = {"gs": "gcp", "s3": "aws"}


def match(pattern: str) -> list[Any]:
    """Returns Beam's metadata of the files that a pattern names."""
    return cast(list[Any], call(pattern, "match", [pattern])[0].metadata_list)


def uncompressed() -> Any:
    """Returns the setting that keeps Beam from unpacking files by their suffix."""
    from apache_beam.io.filesystem import CompressionTypes

    return CompressionTypes.UNCOMPRESSED


def call(path: str, method: str, *args: Any, **options: Any) -> Any:
    """Calls one of Beam's FileSystems, with its errors turned into the built-in family.

    Args:
        path: What it is about, for messages.
        method: Name of the method.
        *args: Its arguments.
        **options: Its named arguments.

    Raises:
        MissingExtraError: The store needs an extra that is not installed.
        OSError: The store refused or failed.
    """
    from apache_beam.io.filesystem import BeamIOError
    from apache_beam.io.filesystems import FileSystems

    scheme = path.partition("://")[0]
    if scheme == "s3" and importlib.util.find_spec("boto3") is None:
        raise build_missing_extra_error("Storage s3://", _EXTRAS[scheme])
    try:
        return getattr(FileSystems, method)(*args, **options)
    except ValueError as error:
        if "Unable to get filesystem" in str(error) and scheme in _EXTRAS:
            raise build_missing_extra_error(f"Storage {scheme}://", _EXTRAS[scheme]) from error
        raise StorageError(f"{path} cannot be used: {error}") from error
    except BeamIOError as error:
        reasons = " ".join(str(value) for value in (error.exception_details or {}).values())
        text = f"{error} {reasons}"
        if "404" in text or "FileNotFound" in text or "not found" in text.lower():
            raise FileNotFoundError(f"{path} does not exist") from error
        if "403" in text:
            raise PermissionError(f"{path} may not be read or written") from error
        raise StorageError(f"{path}: {method} failed: {error}") from error
