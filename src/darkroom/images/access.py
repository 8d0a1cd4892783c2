"""Why an image file cannot be read, as a reason code, and whether any can be read at all."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from darkroom import storage
from darkroom.dataset.rejects import Reject
from darkroom.errors import NOT_THE_DATA, AccessError, RejectError, StorageError
from darkroom.images import pillow
from darkroom.images.prepare import MAX_IMAGE_BYTES
from darkroom.storage import FileTooLargeError, NotAFileError

PROBED_IMAGES = 16
# The process or the machine has no more files or memory, or what a folder is mounted from does not
# answer: that says nothing about an image.
NOT_THE_IMAGE = frozenset(
    {
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM),
        *(errno.ETIMEDOUT, errno.ESTALE, errno.ENOTCONN, errno.ENETDOWN, errno.ENETUNREACH),
        *(errno.EHOSTDOWN, errno.EHOSTUNREACH),
        *(errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET),
    }
)
_DENIED = "permission_denied"
_GRANT_HINT = (
    "Grant this user, or its service account, permission to read them. Without the right to list, "
    "S3 answers the same for images that do not exist."
)


def describe_failure(error: OSError | ValueError) -> RejectError:
    """Returns the reason why an image file could not be read.

    Args:
        error: The error of `storage.read_bytes`; not one of `NOT_THE_DATA` or `NOT_THE_IMAGE`.
    """
    if isinstance(error, FileNotFoundError):
        return RejectError("missing", "there is no such file")
    if isinstance(error, AccessError):
        return RejectError(_DENIED, error.message)
    if isinstance(error, PermissionError):
        return RejectError(_DENIED, "the file, or a folder above it, may not be read")
    # A socket cannot even be opened.
    is_socket = isinstance(error, OSError) and error.errno == errno.ENXIO
    if is_socket or isinstance(error, NotAFileError | IsADirectoryError | NotADirectoryError):
        return RejectError("not_a_file", "it is a folder, a device, a pipe or a socket")
    if isinstance(error, FileTooLargeError):
        return RejectError("too_large", f"it has more than {MAX_IMAGE_BYTES:,} bytes")
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return RejectError("link_loop", "it is a symbolic link that leads back to itself")
    # The whole message repeats the path, which may be an image in a cell, of any length.
    return RejectError("unreadable", getattr(error, "strerror", None) or str(error))


def check_access(uris: Sequence[str]) -> None:
    """Tries to read some images, so that wrong permissions do not reject every row.

    Args:
        uris: The images to try.

    Raises:
        StorageError: All of them exist and none may be read, or their store fails.
    """
    with ThreadPoolExecutor(PROBED_IMAGES) as pool:
        errors = list(pool.map(_try_to_read, uris))
    if errors and all(errors):
        many = f"None of the first {len(errors)} images" if len(errors) > 1 else "The only image"
        raise StorageError(
            f"{many} may be read: {uris[0]} ({errors[0]}).",
            _GRANT_HINT,
        )


def check_not_all_denied(rejected: Mapping[str, int], listed: str) -> None:
    """Checks why a conversion wrote no record: that no image may be read is not their fault.

    Args:
        rejected: Number of rejected rows by reason code.
        listed: The first of them, as text.

    Raises:
        StorageError: All were rejected because they may not be read.
    """
    if set(rejected) == {_DENIED}:
        raise StorageError(f"None of the images may be read. {listed}", _GRANT_HINT)


def is_readable_now(reject: Reject) -> bool:
    """Tells whether the image of a reject could not be read then, and can be now."""
    if reject.reason == _DENIED:
        return _try_to_read(reject.uri) is None
    return reject.reason == "unsupported_format" and pillow.has_reader_now(reject.detail)


def _try_to_read(uri: str) -> PermissionError | None:
    """Opens an image; returns the error if it may not be read.

    Returns None for an image with any other fault, which its row tells later. Errors of its store
    (`NOT_THE_DATA`) are raised.
    """
    try:
        # Opens the file, which is then too large to be read.
        storage.read_bytes(uri, limit_bytes=0)
    except PermissionError as error:
        return error
    except NOT_THE_DATA:
        raise
    except (OSError, ValueError):
        return None  # conversion will report it
    return None
