from darkroom.dataset.keys import hash_split, make_key, make_order_hash, row_identity


def test_a_key_is_128_bits_of_blake2b_and_never_changes():
    assert make_key("a.jpg") == "cde2f4fce9daad975ab1202fd69b5951"


def test_the_order_changes_with_the_seed_and_fits_a_signed_column():
    key = make_key("a.jpg")

    assert make_order_hash(0)(key) == make_order_hash(0)(key) != make_order_hash(1)(key)
    assert all(0 <= make_order_hash(0)(make_key(str(i))) < 1 << 63 for i in range(1000))


def test_a_split_is_spread_over_the_order():
    keys = sorted((make_key(str(i)) for i in range(1000)), key=make_order_hash(0))

    low = sum(hash_split(key, 0) < 0.5 for key in keys[:500])

    assert 200 < low < 300


def test_cells_are_kept_apart():
    assert row_identity(["ab", "c"], 0) != row_identity(["a", "bc"], 0)
    assert row_identity(["a"], 1) != row_identity(["a"], 2)
