"""Workers whose versions are not those of the client."""

from __future__ import annotations

import re
from importlib import metadata

import numpy as np
import pytest
from apache_beam.internal import pickler

from darkroom.conversion.beam import versions
from darkroom.conversion.beam.transforms import WriteShardFn
from darkroom.conversion.beam.versions import check_versions, find_versions, list_pins
from darkroom.errors import StorageError


@pytest.fixture
def install(monkeypatch):
    """Makes a distribution look installed in another version, or not at all for None."""

    def install(name: str, version: str | None) -> None:
        found = metadata.version

        def find(asked: str) -> str:
            if asked != name:
                return found(asked)
            if version is None:
                raise metadata.PackageNotFoundError(name)
            return version

        monkeypatch.setattr(metadata, "version", find)

    return install


def test_the_versions_are_few_and_plain(install):
    install("pillow-heif", None)
    assert find_versions().keys() == {
        *("darkroom", "Python", "pyarrow", "Pillow", "simplejpeg", "Beam")
    }
    assert find_versions(compressed=True).keys() - find_versions().keys() == {"zlib"}
    assert all(type(each) is str for each in find_versions(compressed=True).values())
    assert re.fullmatch(r"3\.\d+", find_versions()["Python"])


def test_the_package_pins_what_is_compared_and_what_that_imports(install):
    install("pillow-heif", "1.8.1")
    pins = dict(pin.split("==") for pin in list_pins())
    assert pins.pop("numpy") == np.__version__
    names = find_versions().keys() - {"darkroom", "Python", "Beam"}
    assert pins == {name: find_versions()[name] for name in names}
    assert pins["pillow-heif"] == "1.8.1"


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


@pytest.mark.parametrize(
    ("client", "worker", "said"),
    [
        ("1.8", None, "has no pillow-heif, but the client has pillow-heif 1.8."),
        (None, "1.8", "has pillow-heif 1.8, but the client has no pillow-heif."),
    ],
)
def test_a_codec_that_only_one_of_both_has_stops_the_worker(install, client, worker, said):
    install("pillow-heif", client)
    versions = find_versions()
    install("pillow-heif", worker)
    with pytest.raises(StorageError, match=said):
        check_versions(versions)


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
    with pytest.raises(StorageError, match=r"has no codec, but the client has codec 3"):
        check_versions({**find_versions(), "codec": "3"})


def test_the_client_s_versions_travel_with_the_function(install):
    packed = pickler.dumps(WriteShardFn("run", find_versions()))
    install("pyarrow", "0.5")
    with pytest.raises(StorageError, match=r"has pyarrow 0\.5, but the client has pyarrow [1-9]"):
        pickler.loads(packed).setup()
