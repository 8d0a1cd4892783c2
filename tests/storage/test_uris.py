import unicodedata

import pytest

from darkroom.storage.uris import (
    absolute,
    has_scheme,
    normalise_uri,
    relative_identity,
    resolve_uri,
)


@pytest.mark.parametrize(
    ("uri", "normal"),
    [
        ("/data/a.jpg", "/data/a.jpg"),
        ("/data/./x/../a.jpg", "/data/a.jpg"),
        ("//data//a.jpg", "/data/a.jpg"),
        ("../a.jpg", "../a.jpg"),
        ("./a.jpg", "a.jpg"),
        ("/data/.hidden/a.jpg", "/data/.hidden/a.jpg"),
        ("/data/a..b.jpg", "/data/a..b.jpg"),
        ("/50%20 off #1?.jpg", "/50%20 off #1?.jpg"),
        ("gs://bucket/x/../a.jpg", "gs://bucket/a.jpg"),
        ("gs://bucket/../../a.jpg", "gs://bucket/a.jpg"),
        ("gs://bucket/a//b.jpg", "gs://bucket/a//b.jpg"),
        ("gs://bucket", "gs://bucket"),
        ("gs://Bucket/A#1?v=2", "gs://Bucket/A#1?v=2"),
    ],
)
def test_dots_are_resolved_and_nothing_else_is_interpreted(uri, normal):
    assert normalise_uri(uri) == normal


def test_a_composed_and_a_decomposed_name_are_one_identity():
    name = "/data/Brötchen.jpg"
    assert normalise_uri(unicodedata.normalize("NFD", name)) == name


def test_a_resolved_uri_keeps_its_own_spelling():
    decomposed = unicodedata.normalize("NFD", "/data/./Brötchen.jpg")
    assert resolve_uri(decomposed) == decomposed.replace("/./", "/")
    assert resolve_uri("gs://bucket/a//b/./c.jpg") == "gs://bucket/a//b/c.jpg"


def test_the_identity_of_a_uri_below_the_base_is_its_path_from_there():
    assert relative_identity("/data/x/a.jpg", "/data") == "x/a.jpg"
    assert relative_identity("/database/a.jpg", "/data") == "/database/a.jpg"
    assert relative_identity("gs://b/m/a.jpg", "gs://b/m") == "a.jpg"
    assert relative_identity("/data/a.jpg", "") == "/data/a.jpg"


def test_a_scheme_is_found_only_at_the_start():
    assert has_scheme("gs://b/a.jpg")
    assert has_scheme("http://host/a.jpg")
    assert not has_scheme("/a://b.jpg")
    assert not has_scheme("C:\\a.jpg")


def test_a_leading_tilde_is_the_home_folder_and_no_other_is(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.chdir(tmp_path)
    assert absolute("~") == "/home/me"
    assert absolute("~/a/../b") == "/home/me/b"
    assert absolute("~me/b") == f"{tmp_path}/~me/b"
    assert absolute("./~") == f"{tmp_path}/~"
    assert absolute("a/~/b") == f"{tmp_path}/a/~/b"
    assert absolute("gs://bucket/~/b") == "gs://bucket/~/b"


def test_a_uri_of_kubeflow_is_read_by_the_client_of_s3():
    assert absolute("minio://mlpipeline/v2/artifacts/a/") == "s3://mlpipeline/v2/artifacts/a"
