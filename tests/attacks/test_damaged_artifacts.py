"""Files of a run that are damaged before the next one, which makes them again or names them."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest
from tests.attacks.conftest import SmallRun

from darkroom import verify

pytestmark = [pytest.mark.tfx, pytest.mark.long]

# What a run does not check is what nothing reads: the log, and files of TensorBoard. A page of the
# metadata may be one that is not in use.
_UNCHECKED = ("log.txt", "metadata.sqlite", "tensorboard")
_KINDS = ("deleted", "emptied", "cut", "flipped")


def damage(path: Path, kind: str) -> bool:
    """Damages a file; False where that would change nothing."""
    data = bytearray(path.read_bytes())
    if kind == "deleted":
        path.unlink()
        return True
    if not data:
        return False
    if kind == "flipped":
        position = random.Random(len(data)).randrange(8 * len(data))
        data[position // 8] ^= 1 << position % 8
    path.write_bytes(data if kind == "flipped" else data[: len(data) // 2 * (kind == "cut")])
    return True


def test_damaged_files_are_made_again(small_run: SmallRun, capsys):
    """DARKROOM_DAMAGED_FILES sets how many files are damaged, each in all ways."""
    expected = small_run.run()
    assert expected["code"] == 0, expected
    accuracy = expected["accuracy"]
    small_run.keep()
    root = small_run.root
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    names = [name for name in names if not any(each in name for each in _UNCHECKED)]
    limit = int(os.environ.get("DARKROOM_DAMAGED_FILES", len(names)))
    counts: Counter[str] = Counter()
    for name in sorted(random.Random(7).sample(names, min(limit, len(names)))):
        for kind in _KINDS:
            small_run.restore()
            if not damage(root / name, kind):
                continue
            found = small_run.run()
            text = small_run.runner.output
            where = (name, kind, text[-2000:])
            assert "Traceback" not in text, where
            if found["code"]:
                # The ledger of the root says what is darkroom's: without it, nothing is.
                assert (name, found["code"]) == (".darkroom-files.json", 4), where
                counts["stopped and named"] += 1
                continue
            assert found["accuracy"] == pytest.approx(accuracy), where
            is_record = name.startswith("artifacts/ImageToTFRecord/examples/2/Split-")
            if is_record and kind == "flipped":
                # Nothing reads records in a run that reuses all; a training checks them.
                assert len(found["reused"]) == 11, where
                counts["a record, not read"] += 1
                continue
            assert verify(found["examples"]).is_sound, where
            if name != ".darkroom-files.json" and ".system" not in name:
                assert len(found["reused"]) < 11, where
                counts["made again"] += 1
            again = small_run.run()
            assert (again["code"], len(again["reused"])) == (0, 11), (where, again)
    with capsys.disabled():
        print(f"\n{dict(counts)}")
