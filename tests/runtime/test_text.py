from darkroom.runtime.text import format_count, list_first, make_visible


def test_invisible_characters_are_shown_as_code_points():
    assert make_visible("Käse 猫 שלום.jpg") == "Käse 猫 שלום.jpg"
    assert make_visible("a\u200bb\x00\ud800\n") == "a<U+200B>b<U+0000><U+D800><U+000A>"
    assert make_visible("a" * 400) == "a" * 200 + "…" + "a" * 99
    assert make_visible("a" * 300) == "a" * 300


def test_a_count_has_its_noun_in_singular_or_plural():
    found = [format_count(count, "row") for count in (0, 1, 1801)]
    assert found == ["0 rows", "1 row", "1,801 rows"]
    assert format_count(2, "class") == "2 classes"
    assert format_count(2, "anomaly") == "2 anomalies"
    assert format_count(2, "pair of images") == "2 pairs of images"


def test_what_is_counted_does_something_in_singular_or_plural():
    verbs = ("are", "were", "have", "look", "reach", "cannot")
    one, two = ([format_count(count, "row", verb) for verb in verbs] for count in (1, 2))
    assert one == [f"1 row {verb}" for verb in ("is", "was", "has", "looks", "reaches", "cannot")]
    assert two == [f"2 rows {verb}" for verb in verbs]
    counts = [format_count(*each) for each in ((1, "row", "are", 1), (1, "row", "are", 9))]
    assert counts == ["1 of 1 row is", "1 of 9 rows is"]
    assert format_count(2, "row", "are", 1900) == "2 of 1,900 rows are"


def test_ten_names_are_listed_and_the_others_counted():
    names = [str(number) for number in range(2000)]
    assert list_first(names[:1]) == "0"
    assert list_first(names[:10]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    assert list_first(names) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 1,990 more"
    assert list_first(["a\n", "b"]) == "a<U+000A>, b"
