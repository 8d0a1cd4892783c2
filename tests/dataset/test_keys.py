import unicodedata

import pytest

from darkroom.dataset.keys import hash_split, make_key, make_order_hash, row_identity
from darkroom.storage.uris import is_remote, normalise_uri, relative_identity, resolve_uri


def test_a_key_is_128_bits_of_blake2b_and_never_changes():
    assert make_key("a.jpg") == "cde2f4fce9daad975ab1202fd69b5951"


def test_the_order_changes_with_the_seed_and_fits_a_signed_column():
    key = make_key("a.jpg")

    assert make_order_hash(0)(key) == make_order_hash(0)(key) != make_order_hash(1)(key)
    assert all(0 <= make_order_hash(0)(make_key(str(i))) < 1 << 63 for i in range(1000))


def test_a_split_is_no_contiguous_piece_of_the_order():
    keys = sorted((make_key(str(i)) for i in range(1000)), key=make_order_hash(0))

    low = sum(hash_split(key, 0) < 0.5 for key in keys[:500])

    assert 200 < low < 300


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


def test_what_is_opened_keeps_its_own_spelling():
    decomposed = unicodedata.normalize("NFD", "/data/./Brötchen.jpg")
    assert resolve_uri(decomposed) == decomposed.replace("/./", "/")
    assert resolve_uri("gs://bucket/a//b/./c.jpg") == "gs://bucket/a//b/c.jpg"


def test_a_uri_below_the_base_is_known_by_its_path_from_there():
    assert relative_identity("/data/x/a.jpg", "/data") == "x/a.jpg"
    assert relative_identity("/database/a.jpg", "/data") == "/database/a.jpg"
    assert relative_identity("gs://b/m/a.jpg", "gs://b/m") == "a.jpg"
    assert relative_identity("/data/a.jpg", "") == "/data/a.jpg"


def test_cells_do_not_run_into_each_other():
    assert row_identity(["ab", "c"], 0) != row_identity(["a", "bc"], 0)
    assert row_identity(["a"], 1) != row_identity(["a"], 2)


def test_a_scheme_makes_a_uri_remote():
    assert is_remote("gs://b/a.jpg")
    assert is_remote("http://host/a.jpg")
    assert not is_remote("/a://b.jpg")
    assert not is_remote("C:\\a.jpg")
