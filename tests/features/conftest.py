"""What tests of features share: the index of a few images."""

from __future__ import annotations

import pytest

import darkroom

from ..pictures import encode, make_noise


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The index of ten images, in rows 1 to 10."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "in" / "cat").mkdir(parents=True)
    for number in range(10):
        data = encode(make_noise(number, 8, 8), "PNG")
        (folder / "in" / "cat" / f"{number}.png").write_bytes(data)
    darkroom.convert(folder / "in", folder / "records")
    return str(folder / "records/index")
