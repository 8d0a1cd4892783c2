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


def test_ten_names_are_listed_and_the_others_counted():
    names = [str(number) for number in range(2000)]
    assert list_first(names[:1]) == "0"
    assert list_first(names[:10]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    assert list_first(names) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 1,990 more"
    assert list_first(["a\n", "b"]) == "a<U+000A>, b"
