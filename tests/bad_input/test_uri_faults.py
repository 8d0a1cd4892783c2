"""Bad inputs 27 to 33, 39 and 40: paths and URIs. Those of stores are in tests/remote."""

from __future__ import annotations

import os
import shutil
import socket
import unicodedata
from pathlib import Path

import pytest

from darkroom import storage
from darkroom.cli import main
from darkroom.conversion.convert import convert
from darkroom.conversion.result import TooManyRejectsError
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.example import decode_example
from darkroom.dataset.rejects import REJECT_HINTS, read_rejects
from darkroom.dataset.tfrecord import read_records
from darkroom.errors import UsageError
from darkroom.manifest.sources.roots import check_inside
from darkroom.options.conversion import ConversionOptions
from darkroom.options.manifest import resolve_roots

pytestmark = pytest.mark.slow


def _convert(source, output_dir, **options):
    """Converts whatever is rejected; returns the rejects by row, and the records by their id."""
    result = convert(source, output_dir, max_rejects=1, **options)
    rejects = {each.row: each for each in read_rejects(f"{output_dir}/rejects.parquet")}
    assert {each.reason for each in rejects.values()} <= REJECT_HINTS.keys()
    records = [
        decode_example(record)
        for split in read_dataset(str(output_dir)).splits.values()
        for shard in split.shards
        for record in read_records(f"{output_dir}/{shard.file}")
    ]
    assert result.rows == len(rejects) + len(records) + result.deduplicated
    return rejects, {record["image/filename"][0].decode(): record for record in records}


@pytest.mark.fault(
    27,
    "a missing file",
    "rejected; over budget, the first ten are listed",
    code="`missing`",
    hint="where relative paths start",
)
def test_missing_files_are_rejected(jpeg_set, tmp_path):
    for number in range(12):
        (jpeg_set.folder / f"{number:02d}.jpg").unlink()
    source = jpeg_set.csv
    with pytest.raises(TooManyRejectsError) as caught:
        convert(source, tmp_path / "out")
    assert caught.value.message.count(": missing (there is no such file)") == 10
    assert f"row 1: missing (there is no such file) {jpeg_set.folder}/00.jpg" in str(caught.value)
    assert REJECT_HINTS["missing"] in caught.value.hint
    rejects, records = _convert(source, tmp_path / "out")
    assert {row: each.reason for row, each in rejects.items()} == dict.fromkeys(
        range(1, 13), "missing"
    )
    assert len(records) == 28


def _deny(monkeypatch, *names):
    """Makes images of these names unreadable; the tests may run as root, who may read all."""
    read_bytes = storage.read_bytes

    def read(path, *args, **options):
        if Path(path).name in names:
            raise PermissionError(13, "Permission denied", path)
        return read_bytes(path, *args, **options)

    monkeypatch.setattr(storage, "read_bytes", read)


@pytest.mark.fault(
    28,
    "a file without permission to read it",
    "rejected without a retry",
    code="`permission_denied`",
    hint="grant the right to read it",
)
def test_an_unreadable_file_is_rejected(jpeg_set, tmp_path, monkeypatch):
    _deny(monkeypatch, "03.jpg")
    rejects, records = _convert(jpeg_set.csv, tmp_path / "out")
    assert {row: each.reason for row, each in rejects.items()} == {4: "permission_denied"}
    assert len(records) == 39


@pytest.mark.fault(
    28,
    "no file may be read",
    "refused at once: the first 16 were tried",
    code="exit 3",
    hint="grant the user, or the service account, the right",
)
def test_a_run_stops_at_once_when_no_image_may_be_read(jpeg_set, refuse, monkeypatch):
    _deny(monkeypatch, *(name for _, name, _ in jpeg_set.rows))
    error = refuse(jpeg_set.csv, exit_code=3)
    assert "None of the first 16 images may be read" in error.message
    assert "Permission denied" in error.message
    assert "service account" in error.hint


@pytest.mark.fault(28, "few files, and none may be read", "the same", code="exit 3")
def test_one_image_that_may_be_read_is_enough(jpeg_set, tmp_path, refuse, monkeypatch):
    jpeg_set.rows = jpeg_set.rows[:2]
    source = jpeg_set.csv
    with monkeypatch.context() as patch:
        _deny(patch, "00.jpg", "01.jpg")
        assert "None of the first 2 images" in refuse(source, exit_code=3).message
    _deny(monkeypatch, "00.jpg")
    rejects, records = _convert(source, tmp_path / "out")
    assert (list(rejects), list(records)) == ([1], ["01.jpg"])


def _make_folder(path):
    path.mkdir()


def _make_device(path):
    path.symlink_to("/dev/zero")


def _make_socket(path):
    # The path of a socket is short by law; its folder may be long.
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(
            _make_folder,
            marks=pytest.mark.fault(
                29, "a folder", "rejected", code="`not_a_file`", hint="name a file"
            ),
            id="folder",
        ),
        pytest.param(
            os.mkfifo,
            marks=pytest.mark.fault(
                31,
                "a pipe, a device, a socket",
                "rejected without waiting or reading",
                code="`not_a_file`",
                hint="name a file",
            ),
            id="pipe",
        ),
        pytest.param(_make_device, id="device"),
        pytest.param(_make_socket, id="socket"),
    ],
)
def test_folders_pipes_and_devices_are_rejected(jpeg_set, tmp_path, make):
    path = jpeg_set.folder / "07.jpg"
    path.unlink()
    make(path)
    rejects, records = _convert(jpeg_set.csv, tmp_path / "out")
    assert {row: each.reason for row, each in rejects.items()} == {8: "not_a_file"}
    assert rejects[8].uri == str(path)
    assert len(records) == 39


@pytest.mark.fault(
    30,
    "a symbolic link that leads nowhere, or to itself",
    "rejected",
    code="`missing`, `link_loop`",
    hint="point it to a file",
)
def test_broken_links_are_rejected(jpeg_set, tmp_path):
    for name, target in (("01.jpg", "nowhere.jpg"), ("02.jpg", "02.jpg"), ("03.jpg", "04.jpg")):
        (jpeg_set.folder / name).unlink()
        (jpeg_set.folder / name).symlink_to(target)
    rejects, records = _convert(jpeg_set.csv, tmp_path / "out")
    assert {row: each.reason for row, each in rejects.items()} == {2: "missing", 3: "link_loop"}
    # A link to an image is an image.
    assert records["03.jpg"]["image/encoded"] == records["04.jpg"]["image/encoded"]


@pytest.fixture
def strays(jpeg_set, tmp_path):
    """Forty images inside, and four ways out: `..`, an absolute path, a link, a linked folder."""
    secret = tmp_path / "secret"
    secret.mkdir()
    for name in "abcd":
        shutil.copy(jpeg_set.folder / "00.jpg", secret / f"{name}.jpg")
    (jpeg_set.folder / "link.jpg").symlink_to(secret / "c.jpg")
    (jpeg_set.folder / "linked").symlink_to(secret)
    for name in ("../secret/a.jpg", str(secret / "b.jpg"), "link.jpg", "linked/d.jpg"):
        jpeg_set.add("TRAIN", name, "cat", None)
    return jpeg_set


@pytest.mark.fault(
    32,
    "`../../etc/passwd`, an absolute path, a link that leads outside, with `--allowed-root DIR`",
    "rejected; links are followed",
    code="`outside_root`",
    hint="move it, or allow its folder",
)
def test_nothing_outside_the_allowed_folders_is_read(strays, tmp_path):
    roots = [tmp_path / "elsewhere" / ".." / "images"]
    (tmp_path / "elsewhere").mkdir()
    rejects, records = _convert(
        strays.csv, tmp_path / "out", options=ConversionOptions(allowed_roots=roots)
    )
    assert {row: each.reason for row, each in rejects.items()} == dict.fromkeys(
        range(41, 45), "outside_root"
    )
    assert f"it leads to {tmp_path}/secret/c.jpg" in rejects[43].detail
    assert len(records) == 40


@pytest.mark.fault(32, "the same without `--allowed-root`", "read: your list is yours")
def test_without_allowed_folders_every_place_is_read(strays, tmp_path):
    rejects, records = _convert(strays.csv, tmp_path / "out")
    assert rejects == {}
    assert len(records) == 44


@pytest.mark.fault(32, "several `--allowed-root`", "each is allowed")
def test_the_command_line_takes_several_allowed_folders(strays, tmp_path, capsys):
    command = ["convert", str(strays.csv), "--output-dir", str(tmp_path / "out")]
    assert main([*command, "--allowed-root", str(strays.folder)]) == 1
    assert "outside_root" in capsys.readouterr().err
    for folder in (strays.folder, tmp_path / "secret"):
        command += ["--allowed-root", str(folder)]
    assert main(command) == 0


@pytest.mark.fault(
    32,
    "an allowed root that is not a folder",
    "refused",
    code="exit 2",
    hint="pass an existing folder",
)
def test_an_allowed_folder_must_be_there(jpeg_set, refuse, tmp_path):
    error = refuse(jpeg_set.csv, exit_code=2, allowed_roots=[tmp_path / "typo"])
    assert "typo is not a folder" in error.message


def test_stores_are_roots_by_their_prefix():
    roots = resolve_roots(["gs://bucket/images/", "s3://other"])
    for uri in ("gs://bucket/images/a/b.jpg", "s3://other/a.jpg"):
        check_inside(uri, roots)
    for uri in ("gs://bucket/images2/a.jpg", "gs://bucket/images/../a.jpg", "s3://othe/a", "/a"):
        with pytest.raises(Exception, match="outside the allowed folders"):
            check_inside(uri, roots)
    with pytest.raises(UsageError):
        resolve_roots([""])


@pytest.mark.fault(
    33,
    "names with `%20`, white space, `#`, `?`, `[`, letters in either Unicode form",
    "literal: the file with exactly that name is read, nothing is decoded",
)
def test_names_are_literal(jpeg_set, tmp_path):
    names = ["a b.jpg", "a%20b.jpg", "a+b.jpg", "a#b?c=d.jpg", "[ab]*.jpg", "~b.jpg", "$HOME.jpg"]
    names += [unicodedata.normalize("NFC", "é1.jpg"), unicodedata.normalize("NFD", "é2.jpg")]
    rows, contents = [], {}
    for number, name in enumerate(names):
        (jpeg_set.folder / f"{number:02d}.jpg").rename(jpeg_set.folder / name)
        contents[unicodedata.normalize("NFC", name)] = (jpeg_set.folder / name).read_bytes()
        rows.append(("TRAIN", f"file://{jpeg_set.folder}/{name}" if number % 2 else name, "cat"))
    jpeg_set.rows = rows
    rejects, records = _convert(jpeg_set.csv, tmp_path / "out")
    assert rejects == {}
    # The key is that of the composed form, so that it is the same on every system.
    assert {name: record["image/encoded"][0] for name, record in records.items()} == contents


@pytest.mark.fault(
    39,
    "`http://`, metadata servers, `ftp://`, `data:` and other schemes",
    "rejected without a request",
    code="`unsupported_scheme`",
    hint="download the images, or gs:// or s3://",
)
def test_other_schemes_are_rejected_without_a_request(plan, monkeypatch):
    def connect(*_):
        raise AssertionError("a host was called")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", connect)
    uris = [
        "http://example.com/a.jpg",
        "https://example.com/a.jpg",
        "HTTP://169.254.169.254/computeMetadata/v1/",
        "ftp://host/a.jpg",
        "hdfs://host/a.jpg",
        "data:image/png;base64,iVBORw0KGgo=",
        "gopher://[::1]:70/a.jpg",
    ]
    text = "image_uri,label\n" + "".join(f'"{uri}",cat\n' for uri in ["a.jpg", *uris])
    planned = plan(text)
    assert planned.reasons == dict.fromkeys(range(2, len(uris) + 2), "unsupported_scheme")
    assert planned.rejects[2].uri == uris[0]
    assert planned.labels == ["cat"]


@pytest.mark.fault(
    40,
    "a file of 2 GB under an image's name",
    "rejected by its size (64 MiB at most), before it is read",
    code="`too_large`",
    hint="give a smaller image",
)
def test_a_huge_file_is_not_read(jpeg_set, tmp_path, monkeypatch):
    with (jpeg_set.folder / "05.jpg").open("r+b") as file:
        file.truncate(2 << 30)
    rejects, records = _convert(jpeg_set.csv, tmp_path / "out")
    assert {row: each.reason for row, each in rejects.items()} == {6: "too_large"}
    assert len(records) == 39
