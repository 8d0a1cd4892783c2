"""What the targets share: their command line, and the inputs that they start from.

    python tests/fuzz/fuzz_TARGET.py FOLDER [options of libFuzzer]   look for faults
    python tests/fuzz/fuzz_TARGET.py FILE                            run one input again

FOLDER keeps what was found: inputs that reach new code in `corpus`, and faults beside it.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import atheris

_MAX_INPUT_BYTES = 4096
# An input that takes longer, or a process that grows larger, is a fault, too.
_MAX_SECONDS = 20
_MAX_MEBIBYTES = 2048


def fuzz(
    check: Callable[[bytes], None], seeds: Iterable[bytes], tokens: Sequence[bytes] = ()
) -> None:
    """Runs a target until the time is over or `check` raises; never returns.

    Args:
        check: Called with every input; whatever it raises is a fault.
        seeds: The inputs to start from.
        tokens: Words of the format, which random bytes would hardly ever spell.
    """
    given, *options = sys.argv[1:]
    folder = Path(given)
    if folder.is_file():
        options.append(given)
    else:
        options += [*_write_inputs(folder, seeds, tokens), f"-artifact_prefix={folder}/"]
        options += [f"-max_len={_MAX_INPUT_BYTES}", f"-timeout={_MAX_SECONDS}"]
        options += [f"-rss_limit_mb={_MAX_MEBIBYTES}", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *options], check)
    # libFuzzer exits when it is done. Then libraries take themselves down in an order in which one
    # of them uses memory of another, which sometimes ends a run without a fault as a crash.
    ctypes.CDLL(None).on_exit(_end, None)
    atheris.Fuzz()


@ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p)
def _end(code: int, _: object) -> None:
    sys.stdout.flush()
    os._exit(code)


def _write_inputs(folder: Path, seeds: Iterable[bytes], tokens: Sequence[bytes]) -> list[str]:
    corpus, words = folder / "corpus", folder / "words.txt"
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        (corpus / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
    if not tokens:
        return [str(corpus)]
    escaped = ("".join(f"\\x{byte:02x}" for byte in token) for token in tokens)
    words.write_text("".join(f'"{token}"\n' for token in escaped))
    return [str(corpus), f"-dict={words}"]
