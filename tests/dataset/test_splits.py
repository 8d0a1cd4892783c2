import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.dataset.keys import make_key
from darkroom.dataset.splits import SplitRatios, assign_split, parse_split
from darkroom.errors import UsageError


@pytest.mark.parametrize(
    ("names", "split"),
    [
        (("TRAIN", "train", "Training", " train "), "train"),
        (("VALIDATION", "validation", "VALIDATE", "val", "Eval", "dev"), "eval"),
        (("TEST", "testing"), "test"),
        (("", "  ", "UNASSIGNED", "unassigned"), ""),
        (("tran", "none", "0", "train1"), None),
    ],
)
def test_splits_have_the_names_of_automl_and_vertex(names, split):
    assert {parse_split(name) for name in names} == {split}


@pytest.mark.parametrize("text", ["80/10/10", "0.8,0.1,0.1", "80.0/10/10", " 0.8 / 0.1 / 0.1 "])
def test_ratios_are_read_from_text(text):
    assert SplitRatios.parse(text).as_tuple() == pytest.approx((0.8, 0.1, 0.1))


@pytest.mark.parametrize(
    "text",
    ["", "80/20", "a/b/c", "80/10/10/0", "-1/1/1", "0/0/0", "70/20/20", "8/1/1", "nan/1/1"],
)
def test_invalid_ratios_are_an_error(text):
    with pytest.raises(UsageError, match=r"[Rr]atios"):
        SplitRatios.parse(text)


def test_the_seed_moves_rows():
    keys = [make_key(str(i)) for i in range(1000)]
    first, second = ([assign_split(key, seed, SplitRatios()) for key in keys] for seed in (0, 1))
    assert 200 < sum(a != b for a, b in zip(first, second, strict=True)) < 500


@given(
    st.integers(0, 100).flatmap(lambda a: st.tuples(st.just(a), st.integers(0, 100 - a))),
    st.text("0123456789abcdef", min_size=32, max_size=32),
)
def test_no_row_goes_to_a_split_of_share_zero(shares, key):
    train, evaluation = shares
    ratios = SplitRatios.parse(f"{train}/{evaluation}/{100 - train - evaluation}")
    chosen = assign_split(key, 0, ratios)
    assert getattr(ratios, chosen) > 0
