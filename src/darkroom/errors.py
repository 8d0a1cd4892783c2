"""The kinds of errors, by who must act: each class has its exit code.

A damaged image is never an exception: it is a rejected row, counted and listed.
"""

from __future__ import annotations

import errno
import re
import sys

__all__ = [
    "AccessError",
    "ChangedError",
    "CredentialsError",
    "DamagedFileError",
    "DarkroomError",
    "DataError",
    "DeniedPathError",
    "LostDatasetError",
    "MissingExtraError",
    "MissingKeyError",
    "MissingNameError",
    "MissingPathError",
    "OutputError",
    "RejectError",
    "StorageError",
    "TransientStorageError",
    "UsageError",
]

# What is before the host of a URL. A colon and a `/` are part of a password that was not
# encoded, unless the two have a port between them.
_USERINFO = re.compile(r"""(?<=://)(?:[^/\s"<>]*|[^/\s":<>]*:(?!\d*[/?#])[^\s"<>]{,999})@""")
# What urllib3 takes for a host may be a password that was not encoded.
_UNPARSED = re.compile(r"(?<=Failed to parse: )\S+")


def hide_passwords(text: str) -> str:
    """Returns a text without the user and password of each URL in it.

    Libraries put the URLs that they were given, as AWS_ENDPOINT_URL, into messages and logs.
    """
    text = _UNPARSED.sub("***", text)
    return _USERINFO.sub("***@", text) if "@" in text else text


class DarkroomError(Exception):
    """Base of every error that darkroom raises on purpose.

    It shows no password: libraries' messages and settings become part of its own.

    Attributes:
        exit_code: Exit code of the command line for this class of error.
        code: Short machine-readable name of the class.
        hint: One sentence that says what to do, or the empty string.
    """

    exit_code = 70
    code = "internal"
    # Beam's own mark: it writes the name of its step into the message of an error without it.
    _tagged_with_step = True

    def __init__(self, message: str, hint: str = "") -> None:
        # Both are arguments, from which Beam builds a worker's error again.
        self.hint = hide_passwords(hint)
        super().__init__(hide_passwords(message), self.hint)

    def __str__(self) -> str:
        # After a list, the hint would look like its last entry.
        space = "\n" if "\n" in self.message else " "
        return f"{self.message}{space}{self.hint}" if self.hint else self.message

    @property
    def message(self) -> str:
        """The message, without the hint."""
        return str(self.args[0])

    def to_dict(self) -> dict[str, str]:
        """Returns the error as values that JSON knows."""
        return {"code": self.code, "message": self.message, "hint": self.hint}

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions travel between Beam workers by pickle; the default would lose the hint.
        return (type(self), (self.message, self.hint))


class RejectError(Exception):
    """A row of the source, or an object of it, cannot be used: it is counted and listed.

    Readers raise it, or give it with the row or the object. `dataset.rejects.Reject` is the row of
    the list.

    Attributes:
        reason: Reason code.
        detail: The problem, in words for a person.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return self.detail


class DataError(DarkroomError):
    """The data failed a check: an unusable source, too many rejects, a damaged dataset."""

    exit_code = 1
    code = "data"


class DamagedFileError(DataError, OSError):
    """The bytes that a store has of a file do not have the checksum that it has of them."""

    def __str__(self) -> str:
        return DarkroomError.__str__(self)


class LostDatasetError(DataError):
    """Decisions are about a dataset that is not there, or not seen from here."""


class UsageError(DarkroomError, ValueError):
    """A setting or an argument is wrong; nothing was started."""

    exit_code = 2
    code = "usage"


class MissingKeyError(UsageError, KeyError):
    """A mapping that darkroom returned does not have a key."""


class StorageError(DarkroomError, OSError):
    """The environment fails: input or output, permissions, disk."""

    exit_code = 3
    code = "environment"

    def __str__(self) -> str:
        return DarkroomError.__str__(self)


class MissingPathError(StorageError, FileNotFoundError):
    """There is nothing at a path."""


class DeniedPathError(StorageError, PermissionError):
    """The system denies access to a path."""


class AccessError(StorageError, PermissionError):
    """A remote store denies access to an object."""

    code = "access"


class CredentialsError(StorageError):
    """A remote store does not accept who asks: for it, all objects are the same.

    Credentials are missing, wrong or expired, or this machine's clock is off.
    """

    code = "access"


# The hint of the next one. Where only workers cannot reach the store, it is taken out again.
STORE_IS_DOWN = "This is the store or the network, not the data: run again when it is back."


class TransientStorageError(StorageError):
    """A remote store or the network failed, and kept failing when tried again.

    This says nothing about the data, so it must not reject a row.
    """

    code = "transient"


class ChangedError(StorageError):
    """A file in a remote store has another version than the one that was expected."""


class MissingExtraError(StorageError):
    """An optional dependency is not installed."""

    code = "missing-extra"


# They say nothing about the data, so no row may be rejected for them.
NOT_THE_DATA = (TransientStorageError, CredentialsError, MissingExtraError)


class MissingNameError(DarkroomError, AttributeError):
    """A name of a package needs an extra that is not installed; `hasattr` answers False."""

    exit_code = 3
    code = "missing-extra"


class OutputError(DarkroomError):
    """The output is locked by another run, or contains unrelated files."""

    exit_code = 4
    code = "output"


STORAGE_HINT = "Check the path, the permissions and the space on disk."
DEFECT_HINT = "This is a bug in darkroom: please report it with the lines above."

_INSTALL_HINT = "pip install 'darkroom-data[{extra}]', or in a checkout {other}."
_TFX_VERSIONS = ((3, 10), (3, 11))

_EXTRAS = {
    "apache_beam": "beam",
    "cv2": "reader",
    "tensorflow": "tf",
    "keras": "tf",
    "kfp": "kfp",
    "tfx": "tfx",
    "ml_metadata": "tfx",
    "tensorflow_data_validation": "tfx",
    "tensorflow_metadata": "tfx",
    "tensorflow_model_analysis": "tfx",
}


def find_missing_extra(error: Exception) -> MissingExtraError | None:
    """Returns the error to show when an extra is missing; None when that is not the cause."""
    module = (getattr(error, "name", None) or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or module not in _EXTRAS:
        return None
    return build_missing_extra_error(f"The module {module}", _EXTRAS[module])


def build_missing_extra_error(what: str, extra: str) -> MissingExtraError:
    """Returns the one-line error for `what`, which needs the extra `extra`."""
    return MissingExtraError(
        f"{what} needs the extra '{extra}', which is not installed.",
        describe_install(extra),
    )


def describe_install(extra: str, python: tuple[int, int] = sys.version_info[:2]) -> str:
    """Returns how to install an extra for a version of Python."""
    if extra != "tfx":
        return _INSTALL_HINT.format(extra=extra, other=f"pip install '.[{extra}]'")
    if python in _TFX_VERSIONS:
        other = "make setup; TFX exists for Python 3.10 and 3.11"
        return _INSTALL_HINT.format(extra=extra, other=other)
    return (
        f"TFX exists for Python 3.10 and 3.11, and this is Python {python[0]}.{python[1]}. In a "
        "checkout of darkroom, make setup gets one of them and installs TFX for it in a separate "
        "environment."
    )


def describe_os_error(error: OSError) -> str:
    """Returns the system's message as a sentence that begins with the path, if there is one."""
    if isinstance(error, DarkroomError):
        return str(error)  # its arguments are not the system's number and text
    # When a rename fails, the new name is the one that the caller asked for.
    path = error.filename2 or error.filename
    if path is None:
        return f"{(error.strerror or str(error) or type(error).__name__).rstrip('.')}."
    if isinstance(error, FileNotFoundError) and error.filename2 is None:
        return f"{path} does not exist."
    return f"{path} cannot be read or written: {error.strerror or error}."


# TensorFlow's errors of files and servers are not OSErrors. Names, so that it is not imported.
_DAMAGED_HINT = "The file is damaged or cut short, or not of this kind: make it again."
_TENSORFLOW_STORAGE = {
    **dict.fromkeys(("NotFoundError", "PermissionDeniedError", "UnavailableError"), STORAGE_HINT),
    **dict.fromkeys(
        ("AbortedError", "DeadlineExceededError", "UnauthenticatedError"), STORAGE_HINT
    ),
    **dict.fromkeys(("DataLossError", "OutOfRangeError"), _DAMAGED_HINT),
}
_MEMORY_HINT = (
    "Take a smaller --batch-size or --image-size, a machine with more memory, or in a cluster a "
    "greater memory_gb."
)
# The limits of a machine, by the messages of libraries. Most have no class of
# exceptions for it, and Beam keeps only the text of a worker's error.
_EXHAUSTED = (
    (
        "Something cannot be read or written",
        "No space left on device|Disk quota exceeded|Read-only file system|Too many open files|"
        "Input/output error|Permission denied|PermissionDeniedError",
        STORAGE_HINT,
    ),
    (
        "There is not enough memory",
        "MemoryError|OutOfMemory|out of memory|ResourceExhaustedError|Cannot allocate memory|"
        "bad_alloc|failed to map segment|can't start new thread",
        _MEMORY_HINT,
    ),
)


def is_environment(error: Exception) -> bool:
    """Tells whether an error is the machine's or a store's, and no file is damaged for it."""
    return isinstance(error, StorageError | PermissionError) or _find_exhaustion(error) is not None


def choose_os_hint(error: OSError) -> str:
    """Returns what to do about an error of the system."""
    return _MEMORY_HINT if error.errno == errno.ENOMEM else STORAGE_HINT


def convert_error(error: Exception) -> DarkroomError:
    """Returns any error as a darkroom error, with its exit code and a hint."""
    if isinstance(error, DarkroomError):
        return error
    if isinstance(error, OSError):
        return StorageError(describe_os_error(error), choose_os_hint(error))
    if missing := find_missing_extra(error) or _find_exhaustion(error):
        return missing
    kind = type(error)
    hint = _TENSORFLOW_STORAGE.get(kind.__name__)
    if kind.__module__.startswith("tensorflow.") and hint:
        said = str(error) or "TensorFlow does not name the file."
        return StorageError(f"{kind.__name__}: {said}", hint)
    return DarkroomError(f"{type(error).__name__}: {error}", DEFECT_HINT)


def _find_exhaustion(error: BaseException | None) -> StorageError | None:
    """Returns the error to show when memory or disk ran out, here or in the cause of an error."""
    while error is not None:
        said = f"{type(error).__name__}: {error}"
        for what, texts, hint in _EXHAUSTED:
            if found := re.search(f"^.*?({texts}).*$", said, re.MULTILINE):
                line = found[0].partition(" [while running")[0].strip().rstrip(":.")
                return StorageError(f"{what}: {line}.", hint)
        error = error.__cause__
    return None
