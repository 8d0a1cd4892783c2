"""No memory and no space are faults of the environment, in whatever words a library says so."""

from __future__ import annotations

import errno
import os

import pytest

from darkroom.errors import StorageError, convert_error, is_environment
from darkroom.storage import convert_os_error


def make_tensorflow_error(name: str, text: str) -> Exception:
    return type(name, (Exception,), {"__module__": "tensorflow.python.framework"})(text)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        ImportError("/x/libarrow.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
        RuntimeError(
            "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 833. KiB for an array "
            "[while running 'WriteDataset/WriteShards']"
        ),
        make_tensorflow_error("ResourceExhaustedError", "OOM when allocating tensor"),
    ],
)
def test_no_memory_is_the_environment(error):
    found = convert_error(error)
    assert (found.exit_code, found.code) == (3, "environment")
    assert found.message.startswith("There is not enough memory: ")
    assert "while running" not in found.message
    assert "--batch-size" in found.hint


@pytest.mark.parametrize(
    "error",
    [
        make_tensorflow_error("PermissionDeniedError", "/x/variables"),
        make_tensorflow_error("UnknownError", "/x/variables; Permission denied"),
        PermissionError("not allowed"),
        OSError(errno.EIO, "Input/output error"),
        ValueError("Unable to open /x: No space left on device"),
        MemoryError(),
        StorageError("The token has expired."),
    ],
)
def test_an_error_of_the_machine_damages_no_file(error):
    assert is_environment(error)
    assert convert_error(error).exit_code == 3
    assert not is_environment(ValueError("no signature"))


def test_the_cause_is_found_behind_other_errors():
    error = ValueError("the batch is missing")
    error.__cause__ = RuntimeError("a worker ended")
    error.__cause__.__cause__ = MemoryError()
    assert convert_error(error).message == "There is not enough memory: MemoryError."
    error.__cause__.__cause__ = KeyError("image")
    assert convert_error(error).exit_code == 70


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_what_the_system_has_no_more_of_is_the_environment(number):
    text = os.strerror(number)
    told = [
        OSError(number, text, "/x/ckpt"),
        make_tensorflow_error("UnknownError", f"/x/ckpt; {text}"),
        RuntimeError(f"OSError: [Errno {number}] {text}: '/x/ckpt' [while running 'Write']"),
    ]
    for error in told:
        found = convert_error(error)
        assert found.exit_code == 3
        assert "/x/ckpt" in found.message
        assert text in found.message
        assert "space on disk" in found.hint


def test_an_error_of_tensorflow_without_a_text_says_so():
    found = convert_error(make_tensorflow_error("NotFoundError", ""))
    assert found.message == "NotFoundError: TensorFlow does not name the file."


@pytest.mark.parametrize("convert", [convert_error, convert_os_error])
def test_the_system_without_memory_is_not_told_of_disks(convert):
    found = convert(OSError(errno.ENOMEM, "Cannot allocate memory", "/tmp/x"))
    assert found.exit_code == 3
    assert "more memory" in found.hint


def test_another_error_is_a_defect():
    assert convert_error(make_tensorflow_error("UnknownError", "something else")).exit_code == 70
    assert convert_error(ImportError("no name x")).exit_code == 70
