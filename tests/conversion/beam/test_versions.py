"""Workers whose versions are not those of the client."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from apache_beam.internal import pickler

from darkroom.conversion.beam import versions
from darkroom.conversion.beam.transforms import WriteShardFn
from darkroom.conversion.beam.versions import check_versions, find_versions
from darkroom.errors import StorageError


def test_the_versions_are_few_and_plain():
    assert find_versions().keys() == {
        *("darkroom", "Python", "pyarrow", "Pillow", "simplejpeg", "Beam")
    }
    assert find_versions(compressed=True).keys() - find_versions().keys() == {"zlib"}
    assert all(type(each) is str for each in find_versions(compressed=True).values())
    assert re.fullmatch(r"3\.\d+", find_versions()["Python"])


@pytest.mark.parametrize("name", ["darkroom", "Python", "pyarrow", "Pillow", "simplejpeg", "zlib"])
def test_a_worker_that_would_write_other_bytes_stops(name):
    client = find_versions(compressed=True)
    own = client[name]
    with pytest.raises(StorageError) as stop:
        check_versions({**client, name: "0.0", "Beam": "1.0"})
    assert f"has {name} {own}, Beam" in stop.value.message
    assert f"the client has {name} 0.0, Beam 1.0." in stop.value.message
    assert "Install the client's versions" in stop.value.hint
    assert stop.value.exit_code == 3


def test_the_code_is_compared_too(monkeypatch):
    client = find_versions()
    monkeypatch.setattr(versions, "hash_code", lambda: "0" * 16)
    with pytest.raises(StorageError, match=r"darkroom \S+ \(code 0{16}\), but the client has"):
        check_versions(client)


def test_another_beam_and_another_zlib_without_gzip_change_nothing(monkeypatch):
    client = {**find_versions(), "Beam": "1.0"}
    monkeypatch.setattr("zlib.ZLIB_RUNTIME_VERSION", "0.0")
    monkeypatch.setattr(
        "platform.python_version_tuple", lambda: (*client["Python"].split("."), "99")
    )
    check_versions(client)
    with pytest.raises(StorageError, match=r"zlib 0\.0, but the client .* zlib 1\.2\.13\."):
        check_versions({**client, "zlib": "1.2.13"})


def test_a_worker_that_does_not_know_a_package_of_the_client_stops():
    with pytest.raises(StorageError, match=r"has codec unknown, but the client has codec 3"):
        check_versions({**find_versions(), "codec": "3"})


def test_the_client_s_versions_travel_with_the_function(monkeypatch):
    packed = pickler.dumps(WriteShardFn("run", find_versions()))
    monkeypatch.setattr(pa, "__version__", "0.5")
    with pytest.raises(StorageError, match=r"has pyarrow 0\.5, but the client has pyarrow [1-9]"):
        pickler.loads(packed).setup()
